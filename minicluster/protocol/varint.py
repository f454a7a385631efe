"""Variable-length integers: seven bits a byte, the lowest first (KIP-482, record batches)."""

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
        raise ValueError(f"{value} is no unsigned 32-bit number")
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


def encode_varint(value: int) -> bytes:
    """A signed 32- or 64-bit number, zig-zag coded as in record batches."""
    if not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"{value} is no signed 64-bit number")
    rest = (value << 1) ^ (value >> 63)
    if rest < 128:
        return SINGLE[rest]
    out = bytearray()
    while rest > 127:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def decode_varint(data: bytes, offset: int, bits: int = 64) -> tuple[int, int]:
    """A zig-zag coded number of at most 32 or 64 bits and the offset behind it.

    Errors:  IndexError if the data ends first, ValueError if the number is too long.
    """
    value = shift = 0
    while True:
        byte = data[offset]
        offset += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            break
        shift += 7
        if shift >= bits:
            raise ValueError(f"the varint is longer than {bits} bits")
    if value >> bits:
        raise ValueError(f"the varint is longer than {bits} bits")
    return (value >> 1) ^ -(value & 1), offset
