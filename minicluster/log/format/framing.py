"""The fields of a record inside of a batch, zig-zag varints, and the values of records alone."""

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


NUMBERS_BYTES_MAX = 12  # attributes, time, offset and a byte: too few for a time above 64 bits


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


def framed_values(body: bytes, count: int) -> list[bytes] | None:
    """The values of records, empty where a record has none, without anything else of them.

    None if a record has headers, or a number that is longer than most: then the records themselves
    tell what they are, or what is wrong with them. Varints are read in place: this loop is most of
    the reading of a long log, and a fifth of what the records cost.
    """
    values = []
    position = 0
    try:
        for _ in range(count):
            length = body[position]
            position += 1
            if length > 127:
                second = body[position]
                if second > 127:
                    return None
                length += (second << 7) - 128
                position += 1
            end = position + (length >> 1)
            at = position + 1  # after the attributes
            while body[at] > 127:  # the time
                at += 1
            at += 1
            while body[at] > 127:  # the offset
                at += 1
            key = body[at + 1]
            at += 2
            if length & 1 or at - position > NUMBERS_BYTES_MAX:
                return None
            if key > 127:
                second = body[at]
                if second > 127:
                    return None
                key += (second << 7) - 128
                at += 1
            if not key & 1:
                at += key >> 1
            size = body[at]
            at += 1
            if size > 127:
                second = body[at]
                if second > 127:
                    return None
                size += (second << 7) - 128
                at += 1
            stop = at if size & 1 else at + (size >> 1)
            if stop + 1 != end or body[stop] != 0:
                return None
            values.append(body[at:stop])
            position = end
    except IndexError:
        return None
    return values if position == len(body) else None


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


def read_headers(body: bytes, position: int) -> tuple[tuple[tuple[str, bytes | None], ...], int]:
    """The headers at a position, and the position behind them.

    Errors:  InvalidBatch.
    """
    count, position = read_varint(body, position)
    if count == 0:
        return (), position
    if not 0 <= count <= len(body) - position:
        raise InvalidBatch(f"{count} headers do not fit into a record")
    headers = []
    for _ in range(count):
        name, position = read_bytes(body, position)
        value, position = read_bytes(body, position)
        try:
            headers.append(((name or b"").decode(), value))
        except UnicodeDecodeError:
            raise InvalidBatch("a header's name is not UTF-8") from None
    return tuple(headers), position
