"""Compaction keeps the last record of each key, and what followers and producers need."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.log import Record, RecordBatch
from minicluster.log.batch import TIMESTAMP_TYPE_BIT
from minicluster.log.format.compression import Codec
from minicluster.log.records import packed
from minicluster.protocol import ErrorCode
from minicluster.replica.config import LogConfig
from minicluster.replica.log_cleaning import compact, log_to_clean
from minicluster.replica.partition.follower_log import append_records_to_follower, truncate
from minicluster.replica.partition.leader_log import append_records_to_leader
from tests.replica.partition_kit import Bench, refused

DAY_MS = 86_400_000
PRODUCER = {"producer_id": 7, "producer_epoch": 0}
Pair = tuple[bytes, bytes | None]


def leading(**config: object) -> Bench:
    """The only replica of a compacted partition leads."""
    bench = Bench()
    bench.lead(replicas=[101], isr=[101])
    fields = {"compacted": True, "deleted": False, **config}
    bench.partition.log_config = LogConfig(**fields)  # type: ignore[arg-type]
    return bench


def append(bench: Bench, *pairs: Pair, codec: Codec = Codec.NONE, **header: int) -> None:
    """Append a batch of these keys and values."""
    records = [Record(i, bench.now_ms, key, value) for i, (key, value) in enumerate(pairs)]
    batch = packed(RecordBatch.of(records, leader_epoch=-1, **header), codec)
    append_records_to_leader(bench.partition, batch, 1, bench.now_ms)


def roll(bench: Bench) -> None:
    """Begin a segment, so that all records so far may be cleaned."""
    bench.partition.replica_log.roll(bench.partition.log_end_offset, bench.now_ms)


def held(bench: Bench) -> list[tuple[int, bytes | None, bytes | None]]:
    return [
        (record.offset, record.key, record.value)
        for batch in bench.partition.log.batches
        for record in batch.records
    ]


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_record_of_a_key_stays_at_its_offset(codec: Codec) -> None:
    bench = leading()
    append(bench, (b"a", b"1"), (b"b", b"1"), codec=codec)
    append(bench, (b"a", b"2"), codec=codec)
    roll(bench)
    append(bench, (b"b", b"2"), codec=codec)
    compact(bench.partition, bench.now_ms)
    assert held(bench) == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"b", b"2")]
    first = bench.partition.log.batches[0]
    assert (first.base_offset, first.last_offset, first.count, first.codec) == (0, 1, 1, codec)
    assert bench.partition.log_start_offset == 0
    assert [segment.base_offset for segment in bench.partition.log.segments] == [0, 3]
    assert not log_to_clean(bench.partition, bench.now_ms).is_cleanable(bench.partition.log_config)


def test_a_tombstone_stays_for_its_time() -> None:
    """KIP-534: the time begins with the first compaction that sees the tombstone."""
    bench = leading(delete_retention_ms=DAY_MS)
    append(bench, (b"a", b"1"))
    append(bench, (b"a", None), (b"b", b"1"))
    roll(bench)
    compact(bench.partition, bench.now_ms)
    assert held(bench) == [(1, b"a", None), (2, b"b", b"1")]
    batch = bench.partition.log.batches[0]
    assert batch.delete_horizon_ms == bench.now_ms + DAY_MS
    again = RecordBatch.decode(batch.encoded)
    assert [record.timestamp for record in again.records] == [bench.now_ms] * 2
    for later_ms, keys in ((DAY_MS - 1, [b"a", b"b", b"x"]), (1, [b"b", b"x"])):
        bench.now_ms += later_ms
        append(bench, *[(b"x", b"v" * 99)] * 9)
        roll(bench)
        compact(bench.partition, bench.now_ms)
        assert [key for _, key, _ in held(bench)] == keys


def test_the_active_segment_and_what_is_not_committed_stay() -> None:
    bench = leading()
    bench.lead(replicas=[101, 102], isr=[101, 102], leader_epoch=6, partition_epoch=2)
    for _ in range(4):
        append(bench, (b"a", b"1"))
        roll(bench)
    bench.fetch(102, 0)
    bench.fetch(102, 2)
    compact(bench.partition, bench.now_ms)
    assert [offset for offset, _, _ in held(bench)] == [1, 2, 3]
    bench.fetch(102, 4)
    append(bench, (b"a", b"1"))
    compact(bench.partition, bench.now_ms)
    assert [offset for offset, _, _ in held(bench)] == [3, 4]


def test_a_log_is_cleaned_once_enough_of_it_is_dirty() -> None:
    bench = leading(min_cleanable_dirty_ratio=0.5)
    append(bench, (b"a", b"1"), (b"b", b"1"))
    roll(bench)
    compact(bench.partition, bench.now_ms)
    append(bench, (b"a", b"2"))
    roll(bench)
    compact(bench.partition, bench.now_ms)
    assert len(held(bench)) == 3
    append(bench, (b"a", b"3"))
    roll(bench)
    compact(bench.partition, bench.now_ms)
    assert [offset for offset, _, _ in held(bench)] == [1, 3]


def test_a_log_is_cleaned_when_it_was_dirty_for_too_long() -> None:
    """KIP-354: the records also leave the active segment in time."""
    bench = leading(min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=DAY_MS)
    append(bench, (b"a", b"1"))
    append(bench, (b"a", b"2"))
    bench.now_ms += DAY_MS
    compact(bench.partition, bench.now_ms)
    bench.now_ms += 1
    append(bench, (b"c", b"1"))
    compact(bench.partition, bench.now_ms)
    assert held(bench) == [(1, b"a", b"2"), (2, b"c", b"1")]


def test_a_young_segment_is_left_alone() -> None:
    bench = leading(min_compaction_lag_ms=DAY_MS)
    append(bench, (b"a", b"1"), (b"a", b"2"))
    roll(bench)
    compact(bench.partition, bench.now_ms + DAY_MS - 1)
    assert len(held(bench)) == 2
    compact(bench.partition, bench.now_ms + DAY_MS)
    assert len(held(bench)) == 1


def test_small_segments_are_written_together() -> None:
    bench = leading(segment_bytes=200)
    for index in range(6):
        append(bench, (b"%d" % (index % 2), b"v" * 20))
        roll(bench)
    compact(bench.partition, bench.now_ms)
    assert [segment.base_offset for segment in bench.partition.log.segments] == [0, 2, 4, 6]
    append(bench, (b"0", b"v"))
    roll(bench)
    bench.partition.log_config = LogConfig(compacted=True, min_cleanable_dirty_ratio=0.0)
    compact(bench.partition, bench.now_ms)
    assert [segment.base_offset for segment in bench.partition.log.segments] == [0, 7]


def test_a_producer_keeps_its_last_sequence_number() -> None:
    bench = leading()
    append(bench, (b"a", b"1"), **PRODUCER, base_sequence=0)
    append(bench, (b"a", b"2"), **PRODUCER, base_sequence=1)
    append(bench, (b"a", b"3"))
    roll(bench)
    compact(bench.partition, bench.now_ms)
    sizes = [(b.base_offset, b.last_sequence, b.count) for b in bench.partition.log.batches]
    assert sizes == [(1, 1, 0), (2, -1, 1)]
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        append(bench, (b"b", b"1"), **PRODUCER, base_sequence=5)
    append(bench, (b"b", b"1"), **PRODUCER, base_sequence=2)


def test_a_follower_takes_a_compacted_log() -> None:
    bench = leading()
    append(bench, (b"a", b"1"))
    append(bench, (b"b", b"1"))
    append(bench, (b"a", b"2"))
    roll(bench)
    compact(bench.partition, bench.now_ms)
    follower = Bench()
    follower.follow(102, replicas=[101, 102], isr=[102])
    append_records_to_follower(
        follower.partition,
        bench.partition.log.batches,
        partition_leader_epoch=5,
        leader_high_watermark=3,
        leader_log_start_offset=0,
        now_ms=follower.now_ms,
    )
    assert held(follower) == held(bench) == [(1, b"b", b"1"), (2, b"a", b"2")]
    assert follower.partition.high_watermark == 3


def test_a_truncated_log_is_dirty_from_there() -> None:
    bench = leading(min_cleanable_dirty_ratio=0.0)
    for value in (b"1", b"2"):
        append(bench, (b"a", value))
        roll(bench)
    compact(bench.partition, bench.now_ms)
    truncate(bench.partition, 1)
    append(bench, (b"b", b"1"), (b"b", b"2"))
    roll(bench)
    compact(bench.partition, bench.now_ms)
    assert held(bench) == [(2, b"b", b"2")]


def test_a_batch_with_the_time_of_its_append_keeps_it() -> None:
    bench = leading(log_append_time=True)
    append(bench, (b"a", b"1"), (b"b", None))
    append(bench, (b"a", b"2"))
    roll(bench)
    compact(bench.partition, bench.now_ms + 5)
    first = RecordBatch.decode(bench.partition.log.batches[0].encoded)
    assert first.attributes & TIMESTAMP_TYPE_BIT
    assert [(r.key, r.timestamp) for r in first.records] == [(b"b", bench.now_ms)]


KEYS = st.sampled_from([b"a", b"b", b"c"])
VALUES = st.one_of(st.none(), st.binary(max_size=3))
BATCHES = st.lists(st.lists(st.tuples(KEYS, VALUES), min_size=1, max_size=4), max_size=12)


@given(batches=BATCHES, cleaned=st.sets(st.integers(0, 11)), codec=st.sampled_from(list(Codec)))
def test_a_reader_of_the_whole_log_learns_the_same_last_values(
    batches: list[list[Pair]], cleaned: set[int], codec: Codec
) -> None:
    """However often a log is cleaned, and wherever: the last value of each key is that of all
    records, no offset moves, and no record comes back."""
    bench = leading(min_cleanable_dirty_ratio=0.0, delete_retention_ms=0)
    everything: list[tuple[int, bytes, bytes | None]] = []
    for index, pairs in enumerate(batches):
        for key, value in pairs:
            everything.append((len(everything), key, value))
        append(bench, *pairs, codec=codec)
        roll(bench)
        bench.now_ms += 1
        if index in cleaned:
            before = held(bench)
            compact(bench.partition, bench.now_ms)
            assert set(held(bench)) <= set(before)
            keys = [key for _, key, _ in held(bench)]
            assert len(keys) == len(set(keys))
    assert set(held(bench)) <= set(everything)
    whole = {key: value for _, key, value in everything}
    read = {key: value for _, key, value in held(bench)}
    assert {k: v for k, v in whole.items() if v is not None} == {
        k: v for k, v in read.items() if v is not None
    }
    assert bench.partition.log_end_offset == len(everything)
