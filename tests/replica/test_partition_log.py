"""A partition's log: fetches, appends, high watermark, truncation, deletion."""

from __future__ import annotations

from functools import partial

import pytest

from minicluster.log import Log
from minicluster.protocol import ErrorCode
from minicluster.replica.errors import OffsetsOutOfOrder, UnexpectedAppendOffset
from minicluster.replica.partition.follower_log import (
    append_records_to_follower,
    truncate,
    truncate_fully,
)
from minicluster.replica.partition.high_watermark import low_watermark
from minicluster.replica.partition.leader_log import (
    ReplicasReached,
    check_enough_replicas,
    delete_records_on_leader,
)
from minicluster.replica.partition.reads import (
    EpochEndOffset,
    OffsetAndEpoch,
    consumer_fetch_records,
    last_offset_for_leader_epoch,
    list_offsets,
)
from minicluster.rules import Rules
from tests.replica.partition_kit import Bench, Waits, batch, refused

BOTH = {"replicas": [101, 102], "isr": [101, 102]}


def leading(records: int = 0, **fields: object) -> Bench:
    """Broker 101 leads, 102 follows in sync."""
    bench = Bench(**fields)  # type: ignore[arg-type]
    bench.lead(**BOTH)
    if records:
        bench.append(records)
    return bench


def following(records: int = 0) -> Bench:
    """Broker 102 leads in epoch 5, 101 follows and holds one batch."""
    bench = Bench()
    bench.follow(102, **BOTH)
    if records:
        append_records_to_follower(
            bench.partition,
            [batch(records, epoch=5)],
            partition_leader_epoch=5,
            leader_high_watermark=records,
            leader_log_start_offset=0,
            now_ms=bench.now_ms,
        )
    return bench


# --- fetch ------------------------------------------------------------------------------------


def test_f37_an_unknown_follower_is_refused_until_metadata_names_it() -> None:
    bench = Bench()
    bench.lead(replicas=[101, 102], isr=[101, 102], leader_epoch=8)
    with refused(ErrorCode.UNKNOWN_LEADER_EPOCH):
        bench.fetch(103, 0, current_leader_epoch=8)
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        bench.fetch(104, 0, current_leader_epoch=None)
    bench.lead(replicas=[101, 102, 103, 104], isr=[101, 102], leader_epoch=8, partition_epoch=2)
    bench.fetch(103, 0, current_leader_epoch=8)
    bench.fetch(104, 0, current_leader_epoch=None)
    assert bench.partition.remote_replicas[103].log_end_offset == 0
    assert bench.partition.remote_replicas[104].log_end_offset == 0


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (None, None),
        (5, None),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_f40_a_leader_refuses_older_and_newer_epochs(
    given: int | None, error: ErrorCode | None
) -> None:
    bench = leading()
    if error is None:
        bench.fetch(102, 0, current_leader_epoch=given)
        assert bench.partition.remote_replicas[102].log_end_offset == 0
    else:
        with refused(error):
            bench.fetch(102, 0, current_leader_epoch=given)


def test_a_follower_gets_the_diverging_epoch_and_its_fetch_counts_for_nothing() -> None:
    bench = Bench()
    bench.lead(**BOTH, leader_epoch=2)
    bench.append(3)
    bench.lead(**BOTH, leader_epoch=5, partition_epoch=2)
    bench.append(3)
    before = bench.partition.remote_replicas[102]
    found = bench.fetch(102, 5, last_fetched_epoch=3)
    assert found.diverging_epoch == EpochEndOffset(2, 3)
    assert found.records.batches == ()
    assert bench.partition.remote_replicas[102] == before
    assert bench.fetch(102, 5, last_fetched_epoch=2).diverging_epoch == EpochEndOffset(2, 3)
    assert bench.fetch(102, 3, last_fetched_epoch=2).records.batches[0].base_offset == 3
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        bench.fetch(102, 3, last_fetched_epoch=9)


def test_a_consumer_reads_below_the_high_watermark_and_a_replica_to_the_end() -> None:
    bench = leading(4)
    bench.fetch(102, 4)
    bench.append(2)
    assert bench.partition.high_watermark == 4
    read = partial(consumer_fetch_records, bench.partition)
    assert [b.last_offset for b in read(fetch_offset=0, max_bytes=1 << 20).records.batches] == [3]
    assert read(fetch_offset=5, max_bytes=1 << 20).records.batches == ()
    assert [b.last_offset for b in bench.fetch(102, 0).records.batches] == [3, 5]
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        read(fetch_offset=7, max_bytes=1 << 20)


def test_a_follower_serves_consumers_only_where_any_replica_may() -> None:
    bench = following(3)
    with refused(ErrorCode.NOT_LEADER_OR_FOLLOWER):
        consumer_fetch_records(bench.partition, fetch_offset=0, max_bytes=1 << 20)
    info = consumer_fetch_records(
        bench.partition, fetch_offset=0, any_replica=True, max_bytes=1 << 20
    )
    assert len(info.records.batches) == 1


def test_a_read_brings_one_batch_however_small_its_limit() -> None:
    bench = leading(3)
    bench.append(3)
    assert len(bench.fetch(102, 0, max_bytes=1).records.batches) == 1


# --- high watermark ---------------------------------------------------------------------------


def test_the_high_watermark_stays_under_the_minimum_and_moves_with_the_response() -> None:
    bench = Bench(min_isr=2)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.append(2)
    assert bench.partition.high_watermark == 0
    bench.fetch(102, 2)
    assert bench.partition.high_watermark == 0
    bench.respond()
    assert bench.partition.high_watermark == 2


def test_the_high_watermark_waits_for_an_eligible_replica_that_is_caught_up_in_time() -> None:
    bench = Bench()
    bench.lead(replicas=[101, 102], isr=[101])
    bench.broker(102, fenced=True)
    bench.fetch(102, 0)
    bench.broker(102, fenced=False)
    bench.append(2)
    assert bench.partition.high_watermark == 0, "102 had caught up a moment ago"
    bench.broker(102, fenced=True)
    bench.append(1)
    assert bench.partition.high_watermark == 3, "a fenced replica holds up nobody"


def test_min_insync_replicas_counts_at_most_as_the_number_of_replicas() -> None:
    bench = Bench(min_isr=5)
    bench.lead(replicas=[101], isr=[101])
    bench.append(1, acks=-1)
    assert bench.partition.high_watermark == 1


def test_a_changed_minimum_or_image_alone_moves_nothing() -> None:
    bench = Bench(min_isr=2)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.append(2)
    bench.partition.min_insync_replicas = 1
    bench.fetch(102, 0)
    bench.fetch(102, 0)
    assert bench.partition.high_watermark == 0
    bench.broker(102, fenced=True)
    assert bench.partition.high_watermark == 0


@pytest.mark.parametrize("as_shipped", [False, True], ids=["mended", "as shipped"])
def test_the_high_watermark_stays_above_a_log_start_inside_a_batch(as_shipped: bool) -> None:
    """Zoo Z60: delete to 7 inside [5, 9], lead again with 7 as high watermark."""
    rules = Rules.KAFKA_4_3.as_shipped() if as_shipped else Rules.KAFKA_4_3
    log = Log()
    for base in (0, 5):
        log.append(batch(5, base=base, epoch=0))
    log.delete_before(7)
    bench = Bench(rules=rules, log=log, high_watermark=2)
    bench.lead(**BOTH)
    assert bench.partition.log_start_offset == 7
    assert bench.partition.high_watermark == (5 if as_shipped else 7)


def test_a_read_has_the_offsets_from_before_it() -> None:
    """Zoo Z60 as shipped: the read moves the high watermark (Partition.readRecords)."""
    log = Log()
    log.append(batch(5, epoch=0))
    bench = Bench(rules=Rules.KAFKA_4_3.as_shipped(), log=log, high_watermark=3)
    bench.follow(102, **BOTH)
    assert bench.partition.high_watermark == 3
    read = partial(consumer_fetch_records, bench.partition, any_replica=True, max_bytes=100)
    found = [read(fetch_offset=0).high_watermark for _ in range(2)]
    assert (found, bench.partition.high_watermark) == ([3, 0], 0)


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        (Rules.KAFKA_4_3, 6),
        (Rules.KAFKA_4_3.as_shipped(), 7),
        (Rules.KAFKA_3_9, 6),
        (Rules.KAFKA_3_9.as_shipped(), 7),
    ],
)
def test_where_no_batch_holds_the_high_watermark_a_read_finds_the_log_end(
    rules: Rules, found: int
) -> None:
    """A truncation to 7 inside [5, 9] takes all of it, and the log ends at 7 (UnifiedLog.read)."""
    log = Log()
    for base in (0, 5):
        log.append(batch(5, base=base, epoch=0))
    bench = Bench(rules=rules, log=log, high_watermark=6)
    bench.follow(102, **BOTH)
    truncate(bench.partition, 7)
    consumer_fetch_records(bench.partition, fetch_offset=0, any_replica=True, max_bytes=100)
    assert bench.partition.high_watermark == found


@pytest.mark.parametrize("rules", [Rules.KAFKA_4_3.as_shipped(), Rules.KAFKA_3_9.as_shipped()])
@pytest.mark.parametrize("is_set_again", [False, True], ids=["found before", "set again"])
def test_the_high_watermark_is_looked_for_once(rules: Rules, is_set_again: bool) -> None:
    """Where it was found before the truncation it stays (LogOffsetMetadata.messageOffsetOnly)."""
    log = Log()
    for base in (0, 5):
        log.append(batch(5, base=base, epoch=0))
    bench = Bench(rules=rules, log=log, high_watermark=5)
    bench.follow(102, **BOTH)
    read = partial(consumer_fetch_records, bench.partition, any_replica=True, max_bytes=100)
    read(fetch_offset=0)
    truncate(bench.partition, 7)
    if is_set_again:
        bench.partition.replica_log.set_high_watermark(5)
    read(fetch_offset=0)
    assert bench.partition.high_watermark == (7 if is_set_again else 5)


def test_a_read_below_the_log_start_is_rejected_before_it_looks_for_the_high_watermark() -> None:
    """UnifiedLog.read: checkLogStartOffset comes before fetchHighWatermarkMetadata."""
    log = Log()
    log.append(batch(5, epoch=0))
    log.delete_before(2)
    bench = Bench(rules=Rules.KAFKA_4_3.as_shipped(), log=log, high_watermark=3)
    bench.follow(102, **BOTH)
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        consumer_fetch_records(bench.partition, fetch_offset=1, any_replica=True, max_bytes=100)
    assert bench.partition.high_watermark == 3


def test_where_a_truncation_left_no_record_a_read_finds_the_log_end() -> None:
    """LocalLog.read: beyond the last record it returns the log end's position.

    The batch [5, 9] goes as a whole when a follower truncates to 8; the log ends at 8, and from 5
    on it has nothing. A follower that fetches from 6 is then taken to have fetched to the end.
    """
    log = Log()
    for base in (0, 5):
        log.append(batch(5, base=base, epoch=0))
    bench = Bench(rules=Rules.KAFKA_4_3.as_shipped(), log=log, high_watermark=6)
    bench.follow(102, **BOTH)
    truncate(bench.partition, 8)
    assert (bench.partition.high_watermark, bench.partition.log_end_offset) == (6, 8)
    bench.lead(**BOTH, leader_epoch=6, partition_epoch=2)
    assert bench.partition.high_watermark == 8, "as shipped, it becomes what a read of it finds"
    bench.fetch(102, 6)
    assert bench.partition.remote_replicas[102].log_end_offset == 8


def test_3_9_as_shipped_keeps_the_offset() -> None:
    log = Log()
    log.append(batch(10, epoch=0))
    log.delete_before(7)
    bench = Bench(rules=Rules.KAFKA_3_9.as_shipped(), log=log)
    bench.lead(**BOTH)
    assert bench.partition.high_watermark == 7


# --- produce ----------------------------------------------------------------------------------


def test_acks_all_is_refused_under_the_minimum_and_acks_1_is_not() -> None:
    bench = Bench(min_isr=2)
    bench.lead(replicas=[101, 102], isr=[101])
    with refused(ErrorCode.NOT_ENOUGH_REPLICAS):
        bench.append(1, acks=-1)
    assert bench.append(1, acks=1).last_offset == 0


def test_a_waiting_produce_is_done_when_the_high_watermark_reaches_it() -> None:
    bench = leading(3)
    assert check_enough_replicas(bench.partition, 3) == ReplicasReached(False, ErrorCode.NONE)
    bench.fetch(102, 3)
    assert bench.checks == 1
    assert check_enough_replicas(bench.partition, 3) == ReplicasReached(True, ErrorCode.NONE)
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=2)
    bench.partition.min_insync_replicas = 2
    assert check_enough_replicas(bench.partition, 3) == ReplicasReached(
        True, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    )
    bench.follow(102, **BOTH, leader_epoch=6, partition_epoch=3)
    assert check_enough_replicas(bench.partition, 3) == ReplicasReached(
        False, ErrorCode.NOT_LEADER_OR_FOLLOWER
    )


def test_an_append_returns_where_it_landed_and_whether_the_high_watermark_rose() -> None:
    bench = Bench()
    bench.lead(replicas=[101], isr=[101])
    bench.append(2)
    result = bench.append(3, acks=-1)
    assert (result.first_offset, result.last_offset) == (2, 4)
    assert result.high_watermark_increased
    assert result.size == bench.partition.log.batches[-1].size
    assert bench.checks == 0, "who appended looks at what waits"


# --- follower ---------------------------------------------------------------------------------


def test_a_follower_drops_what_is_above_the_epoch_it_fetched_with() -> None:
    bench = following()
    info = append_records_to_follower(
        bench.partition,
        [batch(2, epoch=4), batch(1, base=2, epoch=6), batch(1, base=3, epoch=4)],
        partition_leader_epoch=5,
        leader_high_watermark=9,
        leader_log_start_offset=0,
        now_ms=bench.now_ms,
    )
    assert info.last_offset == 1
    assert (bench.partition.log_end_offset, bench.partition.high_watermark) == (2, 2)


def test_a_followers_high_watermark_follows_its_leaders_down() -> None:
    bench = following(4)
    info = append_records_to_follower(
        bench.partition,
        [],
        partition_leader_epoch=5,
        leader_high_watermark=1,
        leader_log_start_offset=0,
        now_ms=bench.now_ms,
    )
    assert info.high_watermark_changed
    assert bench.partition.high_watermark == 1


def test_batches_that_do_not_ascend_or_fit_are_refused_whole() -> None:
    bench = following(4)

    def take(*batches: tuple[int, int]) -> None:
        append_records_to_follower(
            bench.partition,
            [batch(count, base=base, epoch=5) for base, count in batches],
            partition_leader_epoch=5,
            leader_high_watermark=4,
            leader_log_start_offset=0,
            now_ms=bench.now_ms,
        )

    with pytest.raises(OffsetsOutOfOrder):
        take((4, 2), (4, 2))
    with pytest.raises(UnexpectedAppendOffset):
        take((3, 2))
    assert bench.partition.log_end_offset == 4


def test_a_log_that_begins_inside_a_batch_takes_that_batch() -> None:
    bench = following()
    truncate_fully(bench.partition, 7)
    append_records_to_follower(
        bench.partition,
        [batch(5, base=5, epoch=5)],
        partition_leader_epoch=5,
        leader_high_watermark=10,
        leader_log_start_offset=7,
        now_ms=bench.now_ms,
    )
    assert (bench.partition.log_start_offset, bench.partition.log_end_offset) == (7, 10)


def test_truncation_takes_the_high_watermark_and_empty_epochs_along() -> None:
    bench = Bench()
    bench.lead(**BOTH)
    bench.append(4)
    bench.fetch(102, 4)
    bench.lead(**BOTH, leader_epoch=6, partition_epoch=2)
    assert bench.partition.latest_epoch == 6
    bench.follow(102, **BOTH, leader_epoch=7, partition_epoch=3)
    truncate(bench.partition, 4)
    assert bench.partition.latest_epoch == 5
    truncate(bench.partition, 2)
    assert (bench.partition.log_end_offset, bench.partition.high_watermark) == (2, 2)


def test_a_restart_restores_the_high_watermark_within_the_log() -> None:
    log = Log()
    log.append(batch(5, epoch=0))
    log.epochs.assign(3, 5)
    assert Bench(log=log, high_watermark=3).partition.high_watermark == 3
    bench = Bench(log=log, high_watermark=9)
    assert bench.partition.high_watermark == 5
    assert bench.partition.latest_epoch == 0, "an epoch without records is gone"


def test_a_restart_finds_the_log_end_in_the_records() -> None:
    """LogLoader.load: a truncation within a batch ends the log at its offset until then."""
    log = Log()
    for base in (0, 5):
        log.append(batch(5, base=base, epoch=0))
    Bench(log=log).follow(102, **BOTH)
    log.truncate(8)
    assert log.end_offset == 8
    bench = Bench(log=log, high_watermark=7)
    assert (bench.partition.log_end_offset, bench.partition.high_watermark) == (5, 5)
    log.truncate(3)
    log.delete_before(2)
    assert Bench(log=log).partition.log_end_offset == 2, "it begins again where it began"


# --- deletion and offsets ---------------------------------------------------------------------


def test_a_deletion_waits_until_every_live_replica_has_followed() -> None:
    bench = leading(6)
    bench.fetch(102, 6)
    with refused(ErrorCode.OFFSET_OUT_OF_RANGE):
        delete_records_on_leader(bench.partition, 7)
    done = delete_records_on_leader(bench.partition, -1)
    assert (done.requested_offset, done.low_watermark) == (6, 0)
    bench.delayed.deletes.watch(Waits(), [bench.partition.key])
    bench.fetch(102, 6, log_start_offset=6)
    assert bench.checks == 2, "one for the high watermark, one for the low"
    assert low_watermark(bench.partition) == 6


def test_a_fenced_follower_holds_up_no_deletion() -> None:
    bench = leading(2)
    bench.fetch(102, 2)
    bench.broker(102, fenced=True)
    assert delete_records_on_leader(bench.partition, 2).low_watermark == 2


def test_a_new_leader_does_not_list_the_latest_offset_before_its_epoch_is_committed() -> None:
    bench = Bench()
    bench.seed(4)
    bench.lead(**BOTH)
    offset_for = partial(list_offsets, bench.partition)
    with refused(ErrorCode.OFFSET_NOT_AVAILABLE):
        offset_for(timestamp=-1)
    assert offset_for(timestamp=-1, from_replica=True) == OffsetAndEpoch(4, 5)
    assert offset_for(timestamp=-2) == OffsetAndEpoch(0, 0)
    bench.fetch(102, 4)
    assert offset_for(timestamp=-1) == OffsetAndEpoch(4, 5)


def test_offsets_by_time_lie_below_the_high_watermark() -> None:
    bench = leading(3)
    offset_for = partial(list_offsets, bench.partition)
    assert offset_for(timestamp=0) is None
    bench.fetch(102, 3)
    assert offset_for(timestamp=0) == OffsetAndEpoch(0, 5, 0)
    assert offset_for(timestamp=1) is None


def test_the_end_of_an_epoch_is_looked_up_in_the_current_leader_epoch_only() -> None:
    bench = leading(3)
    look_up = partial(last_offset_for_leader_epoch, bench.partition)
    assert look_up(5, current_leader_epoch=5) == EpochEndOffset(5, 3)
    assert look_up(9, current_leader_epoch=5) == EpochEndOffset(-1, -1)
    with refused(ErrorCode.FENCED_LEADER_EPOCH):
        look_up(5, current_leader_epoch=4)
