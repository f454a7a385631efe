"""Record batches: what is written reads back, and damage is never read as something else."""

from __future__ import annotations

import gc
import gzip
import struct

import cramjam
import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.log.batch import HEADER_BYTES, Record, RecordBatch, metadata_batch
from minicluster.log.errors import InvalidBatch
from minicluster.log.format.compression import Codec
from minicluster.log.format.framing import read_varint, write_varint
from minicluster.log.records import Records, packed
from minicluster.protocol.records import FeatureLevelRecord, NoOpRecord, VersionedRecord

texts = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), texts), max_size=3).map(tuple)


@st.composite
def batches(draw: st.DrawFn) -> RecordBatch:
    base = draw(st.integers(0, 2**62))
    rows = draw(st.lists(st.tuples(st.integers(0, 2**40), texts, texts, headers), min_size=1))
    records = [Record(base + i, t, k, v, h) for i, (t, k, v, h) in enumerate(rows)]
    return RecordBatch.of(
        records,
        leader_epoch=draw(st.integers(0, 2**31 - 1)),
        producer_id=draw(st.integers(-1, 2**63 - 1)),
        producer_epoch=draw(st.integers(-1, 2**15 - 1)),
        base_sequence=draw(st.integers(-1, 2**31 - 1)),
    )


@given(batches())
def test_a_batch_reads_back_as_itself(batch: RecordBatch) -> None:
    again = RecordBatch.decode(batch.encoded)
    assert again == batch
    assert again.records == batch.records
    assert (again.crc, again.size) == (batch.crc, len(batch.encoded))


@given(batches())
def test_J02_a_header_takes_61_bytes_and_the_checksum_covers_what_follows_it(
    batch: RecordBatch,
) -> None:
    assert HEADER_BYTES == 61
    assert batch.encoded[16] == 2
    (checksum,) = struct.unpack(">I", batch.encoded[17:21])
    assert checksum == crc32c.crc32c(batch.encoded[21:])


@given(batches(), st.integers(0, 2**62), st.integers(0, 2**31 - 1))
def test_a_moved_batch_keeps_its_records_and_checksum(
    batch: RecordBatch, base: int, epoch: int
) -> None:
    moved = batch.with_base(base, epoch)
    read = RecordBatch.decode(moved.encoded)
    assert [r.value for r in read.records] == [r.value for r in batch.records]
    assert read.records[0].offset == base
    assert (read.leader_epoch, read.crc) == (epoch, batch.crc)


@given(batches(), st.data())
def test_no_flipped_bit_goes_unseen(batch: RecordBatch, data: st.DataObject) -> None:
    encoded = bytearray(batch.encoded)
    unprotected = set(range(8)) | set(range(12, 16))  # base offset and leader epoch
    at = data.draw(st.sampled_from([i for i in range(len(encoded)) if i not in unprotected]))
    encoded[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(InvalidBatch):
        RecordBatch.decode(bytes(encoded))


@given(st.binary(max_size=200))
def test_any_bytes_are_a_batch_or_refused(noise: bytes) -> None:
    with pytest.raises(InvalidBatch):
        RecordBatch.decode(noise)


@given(batches(), st.integers(0, 60))
def test_damage_inside_the_records_is_refused_even_under_a_right_checksum(
    batch: RecordBatch, cut: int
) -> None:
    body = batch.encoded[HEADER_BYTES:]
    shorter = body[: max(0, len(body) - 1 - cut)]
    forged = RecordBatch(
        base_offset=0,
        last_offset=batch.count - 1,
        leader_epoch=0,
        base_timestamp=0,
        max_timestamp=0,
        count=batch.count,
        body=shorter,
    )
    with pytest.raises(InvalidBatch):
        _ = RecordBatch.decode(forged.encoded).records


def test_a_batch_of_metadata_records_remembers_them() -> None:
    values = [
        VersionedRecord(FeatureLevelRecord(name="metadata.version", feature_level=30), 0),
        VersionedRecord(NoOpRecord(), 0),
    ]
    batch = metadata_batch(7, 3, 1_000, values)
    assert batch.metadata_records is batch.metadata_records
    assert RecordBatch.decode(batch.encoded).metadata_records == tuple(values)
    assert (batch.base_offset, batch.last_offset, batch.count) == (7, 8, 2)


def compressed(codec: int, body: bytes, count: int) -> bytes:
    return RecordBatch(
        base_offset=5,
        last_offset=4 + count,
        leader_epoch=1,
        base_timestamp=10,
        max_timestamp=10,
        count=count,
        attributes=codec,
        body=body,
    ).encoded


def xerial(body: bytes) -> bytes:
    packed = bytes(cramjam.snappy.compress_raw(body))
    return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + struct.pack(">i", len(packed)) + packed


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        (1, gzip.compress),
        (2, lambda body: bytes(cramjam.snappy.compress_raw(body))),
        (2, xerial),
        (3, lambda body: bytes(cramjam.lz4.compress(body))),
        (4, lambda body: bytes(cramjam.zstd.compress(body))),
    ],
)
def test_compressed_batches_are_read(codec: int, pack: object) -> None:
    plain = RecordBatch.of([Record(5, 10, b"k", b"v" * 100)], leader_epoch=1)
    packed = pack(plain.encoded[HEADER_BYTES:])  # type: ignore[operator]
    read = RecordBatch.decode(compressed(codec, packed, 1))
    assert read.records == plain.records
    assert read.codec == codec


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_compressed_nonsense_is_refused(codec: int) -> None:
    with pytest.raises(InvalidBatch, match="cannot be unpacked"):
        _ = RecordBatch.decode(compressed(codec, b"\xff" * 30, 1)).records


def test_a_compressed_batch_holds_its_records_once_when_it_has_been_written() -> None:
    """A leader packs batches under another codec, and its log holds them from then on."""
    plain = RecordBatch.of([Record(0, 0, None, bytes(100_000))], leader_epoch=0)
    batch = packed(RecordBatch.decode(plain.encoded), Codec.LZ4)
    assert batch.unpacked_body() == RecordBatch.decode(batch.encoded).unpacked_body()
    held = [part for part in gc.get_referents(batch) if isinstance(part, bytes)]
    assert sum(map(len, held)) == batch.size


def test_an_unknown_codec_is_refused() -> None:
    with pytest.raises(InvalidBatch, match="codec 6 is not known"):
        _ = RecordBatch.decode(compressed(6, b"", 1)).records


@given(st.lists(batches(), max_size=4), st.integers(0, 30))
def test_records_of_a_message_drop_an_incomplete_last_batch(
    some: list[RecordBatch], cut: int
) -> None:
    whole = bytes(Records(tuple(some)))
    assert Records.of(whole).batches == tuple(some)
    if some and 0 < cut < some[-1].size:
        assert Records.of(whole[:-cut]).batches == tuple(some[:-1])


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints_read_back(value: int) -> None:
    out = bytearray()
    write_varint(out, value)
    assert read_varint(bytes(out), 0) == (value, len(out))


def test_signed_varints_have_the_bytes_of_the_specification() -> None:
    out = bytearray()
    for value in (0, -1, 1, -64, 64):
        write_varint(out, value)
    assert out.hex(" ", 1) == "00 01 02 7f 80 01"


@pytest.mark.parametrize("last", [b"\x02", b"\x7f", b"\x80\x00", b"\xff" * 11])
def test_a_varint_of_more_than_64_bits_is_refused(last: bytes) -> None:
    assert read_varint(b"\xff" * 9 + b"\x01", 0) == (-(1 << 63), 10)
    with pytest.raises(InvalidBatch, match="longer than 64 bits"):
        read_varint(b"\xff" * 9 + last, 0)
