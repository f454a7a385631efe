"""Zig-zag variable-length integers as record batches hold them."""

from __future__ import annotations

from minicluster.log.errors import InvalidBatch


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
