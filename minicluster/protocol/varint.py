"""Unsigned variable-length integers: seven bits a byte, the lowest first (KIP-482)."""

from __future__ import annotations

SINGLE = tuple(bytes((n,)) for n in range(128))
"""The encoding of 0 to 127, by value."""


def encode_uvarint(value: int) -> bytes:
    """An unsigned number.

    Errors:  ValueError if it is negative or needs more than 32 bits.
    """
    if 0 <= value < 128:
        return SINGLE[value]
    if not 0 <= value <= 0xFFFF_FFFF:
        raise ValueError(f"{value} is not an unsigned 32-bit number")
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_uvarint(data: bytes, offset: int) -> tuple[int, int]:
    """An unsigned 32-bit number and the offset behind it.

    Errors:  IndexError if the data ends first, ValueError if it is longer than five bytes or
             does not fit 32 bits.
    """
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            break
        shift += 7
        if shift > 28:
            break
    if byte > 127 or value > 0xFFFF_FFFF:
        raise ValueError("the varint is longer than 32 bits")
    return value, offset
