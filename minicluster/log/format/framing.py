"""The records inside of a batch: their frames, their fields, zig-zag varints.

Source:  DefaultRecord.readFrom, DefaultRecordBatch.RecordIterator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from minicluster.log.errors import InvalidBatch

# --- varints ------------------------------------------------------------------------------------


def write_varint(out: bytearray, value: int) -> None:
    """Append a signed integer of up to 64 bits."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out.append((rest & 0x7F) | 0x80)
        rest >>= 7
    out.append(rest)


def read_varint(buffer: bytes, position: int) -> tuple[int, int]:
    """Read a signed integer.

    Shapes:  bytes, position -> (value, position after it).
    Errors:  InvalidBatch at the end of the bytes, and for more than 64 bits.
    """
    raw = shift = 0
    try:
        byte = buffer[position]
        if byte < 0x80:  # most of them
            return (byte >> 1) ^ -(byte & 1), position + 1
        if (second := buffer[position + 1]) < 0x80:  # most of the others
            raw = (byte & 0x7F) | second << 7
            return (raw >> 1) ^ -(raw & 1), position + 2
        while True:
            byte = buffer[position]
            position += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > 63:
                break
    except IndexError:
        raise InvalidBatch("a record ends inside a varint") from None
    if byte > 0x7F or raw >> 64:
        raise InvalidBatch(f"a varint before byte {position} is longer than 64 bits")
    return (raw >> 1) ^ -(raw & 1), position


# --- records ------------------------------------------------------------------------------------


_SIGNED = tuple((byte >> 1) ^ -(byte & 1) for byte in range(128))
"""The number that each byte of a varint is alone."""

Fields = tuple[int, int, bytes | None, bytes | None, int]
"""Of a record: the deltas of its time and offset, its key and value, where its headers begin."""


def value_frames(values: Iterable[bytes]) -> Iterator[bytes]:
    """The records of a batch that have a value alone, all at the time of the batch."""
    for offset_delta, value in enumerate(values):
        frame = bytearray(2)  # attributes and time
        write_varint(frame, offset_delta)
        frame.append(1)  # no key
        write_varint(frame, len(value))
        prefix = bytearray()
        write_varint(prefix, len(frame) + len(value) + 1)
        yield b"".join((prefix, frame, value, b"\0"))  # no headers


def fields_of_records(body: bytes, count: int) -> Iterator[Fields]:
    """The fields of each record of a batch, as they are stored.

    A broker does this with every record that it gets, and the reader of a long log with all of
    them, so numbers of one byte are read in place: calls for them would take twice as long.

    Errors:  InvalidBatch where the bytes do not hold so many records, and nothing else.
    """
    position, body_end = 0, len(body)
    try:
        for _ in range(count):
            length, at = read_varint(body, position)
            end = at + length
            if length < 0 or end > body_end:
                raise InvalidBatch(f"a record of {length} bytes does not fit into its batch")
            at += 1  # the attributes, which mean nothing
            byte = body[at]
            time_delta, at = (_SIGNED[byte], at + 1) if byte < 128 else read_varint(body, at)
            byte = body[at]
            offset_delta, at = (_SIGNED[byte], at + 1) if byte < 128 else read_varint(body, at)
            byte = body[at]
            size, at = (_SIGNED[byte], at + 1) if byte < 128 else read_varint(body, at)
            key = None if size < 0 else body[at : (at := at + size)]
            byte = body[at]
            size, at = (_SIGNED[byte], at + 1) if byte < 128 else read_varint(body, at)
            value = None if size < 0 else body[at : (at := at + size)]
            if (at + 1 if body[at] == 0 else skip_headers(body, at)) != end:
                raise InvalidBatch(f"a record is not as long as its prefix, {length} bytes")
            yield time_delta, offset_delta, key, value, at
            position = end
    except IndexError:
        raise InvalidBatch("the batch ends inside a record") from None
    if position != body_end:
        raise InvalidBatch(f"{body_end - position} bytes follow the batch's last record")


def write_bytes(out: bytearray, value: bytes | None) -> None:
    """Append a field of bytes, which may be null."""
    if value is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(value))
        out += value


def read_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    """The field of bytes at a position, and the position behind it.

    Errors:  InvalidBatch.
    """
    length, position = read_varint(body, position)
    if length < 0:
        return None, position
    if position + length > len(body):
        raise InvalidBatch(f"a field of {length} bytes does not fit into its record")
    return body[position : position + length], position + length


def read_headers(body: bytes, position: int) -> tuple[tuple[str, bytes | None], ...]:
    """The headers at a position, which ``skip_headers`` has passed.

    Errors:  InvalidBatch for a name that is not UTF-8.
    """
    count, position = read_varint(body, position)
    headers = []
    for _ in range(count):
        name, position = read_bytes(body, position)
        value, position = read_bytes(body, position)
        try:
            headers.append(((name or b"").decode(), value))
        except UnicodeDecodeError:
            raise InvalidBatch("a header's name is not UTF-8") from None
    return tuple(headers)


def skip_headers(body: bytes, position: int) -> int:
    """The position behind the headers at a position; nobody looks into a name.

    Errors:  InvalidBatch.
    """
    count, position = read_varint(body, position)
    if not 0 <= count <= len(body) - position:
        raise InvalidBatch(f"{count} headers do not fit into a record")
    for _ in range(count):
        name, position = read_bytes(body, position)
        if name is None:
            raise InvalidBatch("a header has no name")
        _, position = read_bytes(body, position)
    return position
