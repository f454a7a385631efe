"""The compression of batches: reading what clients wrote, and what compression.type has rewritten.

A few bytes can unpack to gigabytes, so every codec writes into a buffer of bounded size and never
past it. cramjam does the work: one wheel with snappy, lz4 and zstd, kept up to date and without
system libraries.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum

import cramjam

from minicluster.log.errors import UndecodableBatch
from minicluster.log.format.limits import DecompressionBudget
from minicluster.protocol.varint import decode_uvarint

_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"  # independent blocks of 64 KiB, no checksums
_LZ4_PLAIN_BLOCK = 1 << 31
_LZ4_BLOCK_BYTES = 64 * 1024
_XERIAL_BLOCK_BYTES = 32 * 1024
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES = 16  # magic and two versions
_ZSTD_LEVEL = 3
_PIECE_BYTES = 64 * 1024
_OVERFLOW = "failed to write whole buffer"  # cramjam's text for a full output


class Codec(IntEnum):
    """The low three attribute bits of a batch."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def decompress(codec: int, body: bytes, budget: DecompressionBudget) -> bytes:
    """Unpack the records of a batch, on the budget of its file.

    Errors:  UndecodableBatch for an unknown codec, bytes that it cannot unpack, or a spent budget.
    """
    if codec == Codec.NONE:
        return body
    if codec not in _UNPACK:
        raise UndecodableBatch(f"compression codec {codec} is not known")
    try:
        return _UNPACK[codec](body, budget)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise UndecodableBatch(
            f"the {Codec(codec).name.lower()} data cannot be unpacked"
        ) from error


def compress(codec: int, records: bytes) -> bytes:
    """Pack the records of a batch, in the frames that Kafka's clients read.

    Source:  GzipCompression, SnappyCompression, Lz4Compression (Lz4BlockOutputStream: cramjam's own
             frames have blocks that depend on each other, which Kafka rejects), ZstdCompression.
    """
    if codec == Codec.GZIP:
        worker = zlib.compressobj(wbits=zlib.MAX_WBITS | 16)
        return worker.compress(records) + worker.flush()
    if codec == Codec.SNAPPY:
        out = bytearray(_XERIAL + b"\x00\x00\x00\x01" * 2)
        for start in range(0, len(records), _XERIAL_BLOCK_BYTES):
            block = bytes(cramjam.snappy.compress_raw(records[start : start + _XERIAL_BLOCK_BYTES]))
            out += len(block).to_bytes(4, "big") + block
        return bytes(out)
    if codec == Codec.LZ4:
        out = bytearray(_LZ4_HEADER)
        for start in range(0, len(records), _LZ4_BLOCK_BYTES):
            plain = records[start : start + _LZ4_BLOCK_BYTES]
            block = bytes(cramjam.lz4.compress_block(plain, store_size=False))
            size = len(block)
            if size >= len(plain):
                block, size = plain, len(plain) | _LZ4_PLAIN_BLOCK
            out += size.to_bytes(4, "little") + block
        return bytes(out + b"\x00" * 4)
    if codec == Codec.ZSTD:
        return bytes(cramjam.zstd.compress(records, level=_ZSTD_LEVEL))
    return records


def _gzip(body: bytes, budget: DecompressionBudget) -> bytes:
    """One member or several, each in pieces."""
    out = bytearray()
    while body:
        worker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        while not worker.eof:
            piece = worker.decompress(body, _PIECE_BYTES)
            if not piece and not worker.eof:
                raise UndecodableBatch("the gzip data cannot be unpacked: it ends too early")
            budget.spend(len(piece))
            out += piece
            body = worker.unconsumed_tail
        body = worker.unused_data
    return bytes(out)


def _snappy(body: bytes, budget: DecompressionBudget) -> bytes:
    if not body.startswith(_XERIAL):
        return _snappy_block(body, budget)
    out, position = bytearray(), _XERIAL_HEADER_BYTES
    while position + 4 <= len(body):
        size = int.from_bytes(body[position : position + 4], "big")
        position += 4
        if position + size > len(body):
            raise UndecodableBatch("a snappy block is longer than the batch")
        out += _snappy_block(body[position : position + size], budget)
        position += size
    return bytes(out)


def _snappy_block(block: bytes, budget: DecompressionBudget) -> bytes:
    """A block begins with the number of bytes that it unpacks to."""
    try:
        size, _ = decode_uvarint(block, 0)
    except (IndexError, ValueError):
        raise UndecodableBatch("the snappy data cannot be unpacked: no size at its start") from None
    budget.spend(size)
    return bytes(cramjam.snappy.decompress_raw(block))


def _lz4(body: bytes, budget: DecompressionBudget) -> bytes:
    return _into_buffers(cramjam.lz4.decompress_into, body, budget)


def _zstd(body: bytes, budget: DecompressionBudget) -> bytes:
    return _into_buffers(cramjam.zstd.decompress_into, body, budget)


def _into_buffers(
    decompress_into: Callable[[bytes, bytearray], int], body: bytes, budget: DecompressionBudget
) -> bytes:
    """Unpack into a buffer, into a larger one if that is full, at most into what is left."""
    size = max(_PIECE_BYTES, 4 * len(body))
    while True:
        buffer = bytearray(min(size, budget.left_bytes))
        try:
            written = decompress_into(body, buffer)
        except cramjam.DecompressionError as error:
            if _OVERFLOW not in str(error):
                raise
            if size >= budget.left_bytes:
                raise budget.exceeded() from None
            size *= 4
            continue
        budget.spend(written)
        return bytes(memoryview(buffer)[:written])


_UNPACK: Mapping[int, Callable[[bytes, DecompressionBudget], bytes]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: _lz4,
    Codec.ZSTD: _zstd,
}
