"""Segments roll by size and time, and the oldest go by size and time."""

from __future__ import annotations

from functools import partial

from minicluster.log import Record, RecordBatch
from minicluster.protocol import ErrorCode
from minicluster.replica.config import LogConfig
from minicluster.replica.log_cleaning import delete_old_segments, partition_bytes
from minicluster.replica.partition.follower_log import truncate
from minicluster.replica.partition.leader_log import (
    append_records_to_leader,
    delete_records_on_leader,
)
from minicluster.replica.partition.reads import MAX_TIMESTAMP, OffsetAndEpoch, list_offsets
from minicluster.replica.segments import segments_of
from tests.replica.partition_kit import Bench, refused

DAY_MS = 86_400_000


def leading(**config: object) -> Bench:
    """The only replica leads, with these configs."""
    bench = Bench()
    bench.lead(replicas=[101], isr=[101])
    bench.partition.log_config = LogConfig(**config)  # type: ignore[arg-type]
    return bench


def append(bench: Bench, timestamp: int | None = None, **producer: int) -> int:
    """Append one record, now by default; its size in bytes."""
    time = bench.now_ms if timestamp is None else timestamp
    batch = RecordBatch.of([Record(0, time, b"k", b"v" * 30)], leader_epoch=-1, **producer)
    append_records_to_leader(bench.partition, batch, 1, bench.now_ms)
    return batch.size


def bases(bench: Bench) -> list[int]:
    return [segment.base_offset for segment in bench.partition.log.segments]


def test_a_segment_rolls_before_it_is_too_large() -> None:
    size = append(leading())
    bench = leading(segment_bytes=2 * size)
    for _ in range(5):
        append(bench)
    assert bases(bench) == [0, 2, 4]
    assert [len(segment.batches) for segment in segments_of(bench.partition.log)] == [2, 2, 1]


def test_a_segment_rolls_by_the_time_of_its_records() -> None:
    bench = leading(segment_ms=1000)
    for timestamp in (5000, 6000, 6001, 5500, 7001, 7002):
        append(bench, timestamp)
    assert bases(bench) == [0, 2, 5]


def test_a_segment_without_timestamps_rolls_by_its_age() -> None:
    bench = leading(segment_ms=1000)
    append(bench, 1)
    append(bench, 2000)
    append(bench, -1)
    bench.now_ms += 1001
    append(bench, -1)
    assert bases(bench) == [0, 1]


def test_old_segments_go_and_the_active_one_makes_room_for_an_empty_one() -> None:
    bench = leading(segment_ms=DAY_MS, retention_ms=3 * DAY_MS)
    for _ in range(3):
        append(bench)
        bench.now_ms += 2 * DAY_MS
    assert bases(bench) == [0, 1, 2]
    delete_old_segments(bench.partition, bench.now_ms)
    assert (bench.partition.log_start_offset, bases(bench)) == (2, [2])
    delete_old_segments(bench.partition, bench.now_ms + DAY_MS)
    assert bench.partition.log_start_offset == 2
    delete_old_segments(bench.partition, bench.now_ms + DAY_MS + 1)
    assert (bench.partition.log_start_offset, bases(bench)) == (3, [3])
    delete_old_segments(bench.partition, bench.now_ms + 99 * DAY_MS)
    assert (bench.partition.log_end_offset, bases(bench)) == (3, [3])
    assert append(bench) > 0
    assert bench.partition.high_watermark == 4


def test_a_segment_with_a_late_timestamp_keeps_those_after_it() -> None:
    bench = leading(segment_bytes=120, retention_ms=DAY_MS)
    for timestamp in (1000, bench.now_ms + 60_000, 1000):
        append(bench, timestamp)
    delete_old_segments(bench.partition, bench.now_ms + DAY_MS)
    assert bench.partition.log_start_offset == 1


def test_only_as_many_segments_go_as_leave_the_log_at_its_size() -> None:
    size = append(leading())
    bench = leading(segment_bytes=size, retention_bytes=2 * size, retention_ms=-1)
    for _ in range(6):
        append(bench)
    delete_old_segments(bench.partition, bench.now_ms)
    assert bench.partition.log_start_offset == 4
    assert partition_bytes(bench.partition) == 2 * size


def test_nothing_goes_at_or_above_the_high_watermark() -> None:
    bench = leading(segment_bytes=120, retention_ms=0)
    bench.lead(replicas=[101, 102], isr=[101, 102], leader_epoch=6, partition_epoch=2)
    for _ in range(3):
        append(bench)
    bench.fetch(102, 0)
    bench.fetch(102, 2)
    assert bases(bench) == [0, 1, 2]
    delete_old_segments(bench.partition, bench.now_ms + DAY_MS)
    assert (bench.partition.high_watermark, bench.partition.log_start_offset) == (2, 2)


def test_a_log_without_the_policy_delete_keeps_everything() -> None:
    bench = leading(deleted=False, retention_ms=0, retention_bytes=0)
    append(bench)
    delete_old_segments(bench.partition, bench.now_ms + DAY_MS)
    assert bench.partition.log_start_offset == 0


def test_a_producer_is_remembered_although_its_batches_are_gone() -> None:
    producer = {"producer_id": 7, "producer_epoch": 0}
    bench = leading(retention_ms=DAY_MS)
    append(bench, **producer, base_sequence=0)
    delete_old_segments(bench.partition, bench.now_ms + 2 * DAY_MS)
    assert bench.partition.log_start_offset == 1
    for same in (bench, Bench(log=bench.partition.log, high_watermark=1)):
        same.lead(replicas=[101], isr=[101])
        with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
            append(same, **producer, base_sequence=5)
    append(bench, **producer, base_sequence=1)
    truncate(bench.partition, 1)
    append(bench, **producer, base_sequence=1)


def test_a_truncation_takes_the_segments_that_begin_above_it() -> None:
    bench = leading(segment_bytes=120)
    for _ in range(4):
        append(bench)
    assert bases(bench) == [0, 1, 2, 3]
    truncate(bench.partition, 2)
    assert bases(bench) == [0, 1, 2]
    append(bench)
    assert bases(bench) == [0, 1, 2]
    append(bench)
    assert bases(bench) == [0, 1, 2, 3]


def test_a_deleted_record_counts_as_long_as_its_segment_is_there() -> None:
    """DeleteRecords moves the log start alone (UnifiedLog.fetchOffsetByTimestamp, size)."""
    size = append(leading())
    bench = leading(segment_bytes=3 * size, retention_ms=DAY_MS)
    for timestamp in (50, 10, 20):
        append(bench, timestamp)
    youngest = partial(list_offsets, bench.partition, timestamp=MAX_TIMESTAMP)
    delete_records_on_leader(bench.partition, 2)
    assert youngest() == OffsetAndEpoch(0, 5, 50)
    assert list_offsets(bench.partition, timestamp=15) == OffsetAndEpoch(2, 5, 20)
    assert partition_bytes(bench.partition) == 3 * size
    append(bench, 60)
    assert bases(bench) == [0, 3], "the segment was full"
    assert youngest() == OffsetAndEpoch(3, 5, 60)
    assert list_offsets(bench.partition, timestamp=40) is None, "offset 0 is deleted"
    delete_records_on_leader(bench.partition, 4)
    assert bases(bench) == [3] and youngest() == OffsetAndEpoch(3, 5, 60)
    delete_old_segments(bench.partition, 60 + DAY_MS + 1)
    assert bases(bench) == [4] and youngest() is None
    assert partition_bytes(bench.partition) == 0


def test_nothing_is_left_of_a_log_that_begins_anew() -> None:
    bench = leading()
    size = append(bench)
    append(bench)
    delete_records_on_leader(bench.partition, 1)
    assert partition_bytes(bench.partition) == 2 * size
    bench.partition.replica_log.truncate_fully(7)
    assert partition_bytes(bench.partition) == 0
