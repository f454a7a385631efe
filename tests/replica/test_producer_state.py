"""Idempotent producers: a duplicate gets the first response again, a gap an error (KIP-98)."""

from __future__ import annotations

from minicluster.faults import Faults
from minicluster.protocol import ErrorCode
from minicluster.replica.config import LogConfig
from minicluster.replica.partition.follower_log import append_records_to_follower, truncate
from tests.replica.partition_kit import Bench, batch, refused

PRODUCER = {"producer_id": 7, "producer_epoch": 0}


def leading(**fields: object) -> Bench:
    """The only replica of a partition leads it."""
    bench = Bench(**fields)  # type: ignore[arg-type]
    bench.lead(replicas=[101], isr=[101])
    return bench


def test_a_repeat_of_one_of_the_last_five_batches_gets_the_same_response() -> None:
    bench = leading()
    for sequence in range(0, 12, 2):
        bench.append(2, **PRODUCER, base_sequence=sequence)
    again = bench.append(2, **PRODUCER, base_sequence=2)
    assert (again.first_offset, again.last_offset) == (2, 3)
    assert bench.partition.log_end_offset == 12
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(2, **PRODUCER, base_sequence=0)


def test_a_gap_and_an_old_epoch_are_refused() -> None:
    bench = leading()
    bench.append(2, **PRODUCER, base_sequence=0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(1, **PRODUCER, base_sequence=3)
    bench.append(1, producer_id=7, producer_epoch=1, base_sequence=0)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        bench.append(1, **PRODUCER, base_sequence=2)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(1, producer_id=7, producer_epoch=2, base_sequence=1)


def test_an_unknown_producer_may_begin_anywhere_and_sequences_wrap() -> None:
    bench = leading()
    bench.append(1, **PRODUCER, base_sequence=0x7FFFFFFF)
    assert bench.append(1, **PRODUCER, base_sequence=0).first_offset == 1


def test_a_producer_without_an_epoch_has_no_sequence_to_continue() -> None:
    bench = leading()
    bench.append(1, producer_id=7, producer_epoch=-1, base_sequence=0)
    bench.append(1, producer_id=7, producer_epoch=-1, base_sequence=9)
    bench.append(1, **PRODUCER, base_sequence=4)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(1, **PRODUCER, base_sequence=6)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        bench.append(1, producer_id=7, producer_epoch=-1, base_sequence=5)


def test_a_follower_that_becomes_leader_has_the_producers_of_its_log() -> None:
    bench = Bench()
    bench.follow(102, replicas=[101, 102], isr=[102])
    fetched = [
        batch(1, base=0, epoch=5, base_sequence=0, **PRODUCER),
        batch(1, base=1, epoch=5, base_sequence=1, **PRODUCER),
    ]
    append_records_to_follower(
        bench.partition,
        fetched,
        partition_leader_epoch=5,
        leader_high_watermark=2,
        leader_log_start_offset=0,
        now_ms=bench.now_ms,
    )
    truncate(bench.partition, 1)
    bench.lead(replicas=[101, 102], isr=[101], leader_epoch=6, partition_epoch=2)
    end = bench.partition.log_end_offset
    bench.append(1, **PRODUCER, base_sequence=0)
    assert bench.partition.log_end_offset == end, "a repeat"
    bench.append(1, **PRODUCER, base_sequence=1)
    assert bench.partition.log_end_offset == end + 1
    restarted = Bench(log=bench.partition.log)
    restarted.lead(replicas=[101, 102], isr=[101], leader_epoch=7, partition_epoch=3)
    restarted.append(1, **PRODUCER, base_sequence=1)
    assert restarted.partition.log_end_offset == end + 1


def test_s34_appends_a_repeat() -> None:
    bench = leading(faults=Faults.of(["S34"]))
    bench.append(1, **PRODUCER, base_sequence=0)
    assert bench.append(1, **PRODUCER, base_sequence=0).first_offset == 1
    assert bench.hits == ["S34"]


def test_a_repeat_begins_a_segment_if_there_is_no_room_for_it() -> None:
    """UnifiedLog.append rolls the log before it looks at the producer's state."""
    size = batch(1, **PRODUCER, base_sequence=0).size
    bench = leading()
    bench.partition.log_config = LogConfig(segment_bytes=2 * size)
    for sequence in (0, 1):
        bench.append(1, **PRODUCER, base_sequence=sequence)
    assert [s.base_offset for s in bench.partition.log.segments] == [0]
    assert bench.append(1, **PRODUCER, base_sequence=1).first_offset == 1
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        bench.append(1, **PRODUCER, base_sequence=5)
    assert [s.base_offset for s in bench.partition.log.segments] == [0, 2]
    bench.append(1, **PRODUCER, base_sequence=2)
    assert [s.base_offset for s in bench.partition.log.segments] == [0, 2]


def test_a_repeat_raises_the_high_watermark_that_waits_for_nobody_any_more() -> None:
    """Partition.appendRecordsToLeader raises it after every append, that of a repeat included."""
    bench = Bench(min_isr=2)
    bench.lead(replicas=[101, 102], isr=[101, 102])
    bench.append(1, **PRODUCER, base_sequence=0)
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=2)
    assert bench.partition.high_watermark == 0
    bench.partition.min_insync_replicas = 1
    assert bench.append(1, **PRODUCER, base_sequence=0).high_watermark_increased
    assert bench.partition.high_watermark == 1
