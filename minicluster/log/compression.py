"""Compressed batches, on reading only: this package writes its batches plain.

cramjam does the work: one wheel with snappy, lz4 and zstd, kept up to date and without system
libraries.
"""

from __future__ import annotations

import zlib
from enum import IntEnum

import cramjam

from minicluster.log.errors import InvalidBatch

MAX_UNCOMPRESSED_BYTES = 256 * 1024 * 1024
_XERIAL = b"\x82SNAPPY\x00"


class Codec(IntEnum):
    """The low three attribute bits of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: int, body: bytes) -> bytes:
    """Unpack the records part of a batch.

    Errors:  InvalidBatch for an unknown codec or bytes that it cannot unpack.
    """
    try:
        match codec:
            case Codec.NONE:
                return body
            case Codec.GZIP:
                worker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
                plain = worker.decompress(body, MAX_UNCOMPRESSED_BYTES)
                if worker.unconsumed_tail:
                    raise InvalidBatch(f"the batch unpacks to over {MAX_UNCOMPRESSED_BYTES} bytes")
                return plain
            case Codec.SNAPPY:
                return _snappy(body)
            case Codec.LZ4:
                return bytes(cramjam.lz4.decompress(body))
            case Codec.ZSTD:
                return bytes(cramjam.zstd.decompress(body))
    except (cramjam.DecompressionError, zlib.error) as error:
        raise InvalidBatch(f"the {Codec(codec).name.lower()} data cannot be unpacked") from error
    raise InvalidBatch(f"compression codec {codec} is not known")


def _snappy(body: bytes) -> bytes:
    if not body.startswith(_XERIAL):
        return bytes(cramjam.snappy.decompress_raw(body))
    out, position = bytearray(), 16  # magic, two versions
    while position + 4 <= len(body):
        size = int.from_bytes(body[position : position + 4], "big")
        position += 4
        if position + size > len(body):
            raise InvalidBatch("a snappy block is longer than the batch")
        out += bytes(cramjam.snappy.decompress_raw(body[position : position + size]))
        position += size
    return bytes(out)
