"""A leader's in-sync replicas: rows F01-F29 of Kafka's PartitionTest about them."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.protocol import ErrorCode
from minicluster.replica.effects import AlterPartitionFailed
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.isr import REVERTS, WAITS_FOR_METADATA
from minicluster.replica.partition.leader_log import delete_records_on_leader
from minicluster.replica.partition.partition import (
    CommittedPartitionState,
    PendingExpandIsr,
    PendingShrinkIsr,
)
from minicluster.replica.partition.reads import consumer_fetch_records, list_offsets
from minicluster.rules import Rules
from tests.replica.partition_kit import LEADER, Bench, is_at_min_isr, is_under_replicated

LAG_MS = 30_000


def expanding(**fields: Any) -> Bench:
    """A leader of ten records that has just proposed 102 (row F04)."""
    bench = Bench(**fields)
    bench.seed(10)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 10)
    return bench


def shrinking(**fields: Any) -> Bench:
    """A leader of ten records that has just proposed to drop 102 (row F16)."""
    bench = Bench(**fields)
    bench.seed(10)
    bench.lead(replicas=[101, 102], isr=[101, 102])
    bench.now_ms += LAG_MS + 1
    bench.shrink()
    return bench


# --- expansion --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "high_watermark"), [(Rules.KAFKA_3_9, 1), (Rules.KAFKA_4_3, 0)], ids=lambda v: str(v)
)
def test_f01_the_high_watermark_takes_the_offset_of_a_fetch_inside_a_batch(
    rules: Rules, high_watermark: int
) -> None:
    """4.3 changed the row: a fetch at 1 counts as one at 0, where the batch begins."""
    bench = Bench(rules=rules)
    bench.lead(replicas=[101, 102, 103], isr=[101, 103], leader_epoch=8)
    bench.append(2)
    bench.append(3)
    bench.fetch(103, 0)
    bench.fetch(103, 1)
    assert bench.partition.high_watermark == high_watermark


def test_f02_f03_a_follower_joins_once_it_holds_the_start_of_this_leader_epoch() -> None:
    bench = Bench()
    fields = {"replicas": [101, 102, 103], "isr": [101, 103]}
    bench.lead(**fields, leader_epoch=8, partition_epoch=1)
    bench.append(2)
    bench.append(3)
    bench.follow(102, **fields, leader_epoch=9, partition_epoch=2)
    bench.lead(**fields, leader_epoch=10, partition_epoch=3)
    assert bench.partition.leader_epoch_start_offset == 5
    bench.append(2)
    bench.fetch(102, 0)
    bench.fetch(102, 2)
    assert bench.submitted == []
    bench.fetch(102, 5)
    assert (bench.isr, bench.maximal_isr) == ((101, 103), (101, 102, 103))
    assert [member for member, _ in bench.submitted[0].isr] == [101, 102, 103]


def test_f04_an_expansion_counts_at_once_and_commits_with_the_response() -> None:
    bench = Bench()
    bench.seed(10)
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 3)
    assert bench.submitted == []
    bench.fetch(102, 10)
    assert len(bench.submitted) == 1
    assert (bench.isr, bench.maximal_isr) == ((101,), (101, 102))
    bench.respond(partition_epoch=2)
    assert bench.partition.isr_state == CommittedPartitionState((101, 102))
    assert bench.partition.partition_epoch == 2
    assert bench.partition.isr_expands == 1


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ErrorCode.INVALID_UPDATE_VERSION, id="F05-F07"),
        pytest.param(ErrorCode.INVALID_REQUEST, id="F06"),
        pytest.param(ErrorCode.NEW_LEADER_ELECTED, id="F07-108"),
        pytest.param(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, id="F07-3"),
        pytest.param(ErrorCode.UNKNOWN_TOPIC_ID, id="100"),
        pytest.param(ErrorCode.FENCED_LEADER_EPOCH, id="74"),
    ],
)
def test_f05_to_f07_some_errors_leave_the_change_pending_until_new_metadata(
    error: ErrorCode,
) -> None:
    bench = expanding()
    bench.respond(error)
    assert (bench.isr, bench.maximal_isr) == ((101,), (101, 102))
    assert bench.partition.in_flight is None
    assert len(bench.submitted) == 1
    assert bench.partition.failed_isr_updates == 1
    bench.fetch(102, 10)
    assert len(bench.submitted) == 1, "the pending change blocks another"
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=2)
    assert bench.partition.isr_state == CommittedPartitionState((101,))


@pytest.mark.parametrize(
    "error",
    [ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT],
)
def test_f08_any_other_error_submits_the_same_again(error: ErrorCode) -> None:
    bench = expanding()
    bench.respond(error)
    first, second = bench.submitted
    assert first == second
    assert isinstance(bench.partition.isr_state, PendingExpandIsr)


@pytest.mark.parametrize(
    "state",
    [pytest.param("fenced", id="F09-F11"), pytest.param("in_controlled_shutdown", id="F12")],
)
def test_f09_to_f12_a_fenced_or_stopping_replica_is_dropped_and_not_proposed(
    state: str,
) -> None:
    bench = expanding()
    bench.respond(ErrorCode.INELIGIBLE_REPLICA)
    assert bench.partition.isr_state == CommittedPartitionState((101,))
    assert len(bench.submitted) == 1
    bench.broker(102, **{state: True})
    bench.fetch(102, 10)
    assert len(bench.submitted) == 1
    bench.broker(102, **{state: False})
    bench.fetch(102, 10)
    assert isinstance(bench.partition.isr_state, PendingExpandIsr)
    bench.respond(partition_epoch=1)
    assert bench.partition.isr_state == CommittedPartitionState((101, 102))


def test_f13_the_epoch_of_the_fetch_must_be_that_of_the_image_and_goes_with_the_proposal() -> None:
    bench = Bench()
    bench.seed(10)
    bench.lead(replicas=[101, 102, 103], isr=[101, 103])
    bench.broker(102, epoch=1100)
    bench.fetch(102, 10, broker_epoch=1101)
    assert bench.partition.remote_replicas[102].broker_epoch == 1101
    assert bench.submitted == []
    bench.broker(102, epoch=1102)
    bench.fetch(102, 10, broker_epoch=1102)
    assert bench.submitted[0].isr == ((101, 1101), (102, 1102), (103, -1))


def test_f14_a_fetch_of_an_older_incarnation_is_refused_and_not_remembered() -> None:
    bench = Bench()
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 0)
    before = bench.partition.remote_replicas[102]
    with pytest.raises(ReplicaError) as refusal:
        bench.fetch(102, 0, broker_epoch=1101)
    assert refusal.value.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert bench.partition.remote_replicas[102] == before


def test_a_fetch_without_broker_epoch_may_join() -> None:
    bench = Bench()
    bench.lead(replicas=[101, 102], isr=[101])
    bench.fetch(102, 0, broker_epoch=-1)
    assert bench.submitted[0].isr == ((101, 1101), (102, -1))


def test_a_broker_that_is_not_in_the_image_cannot_join() -> None:
    bench = Bench()
    bench.lead(replicas=[101, 102], isr=[101])
    del bench.brokers[102]
    bench.fetch(102, 0)
    assert bench.submitted == []


def test_f28_a_replica_that_was_just_removed_is_refused_and_not_proposed() -> None:
    bench = expanding()
    bench.lead(replicas=[101], isr=[101], partition_epoch=2)
    with pytest.raises(ReplicaError) as refusal:
        bench.fetch(102, 10)
    assert refusal.value.error == ErrorCode.UNKNOWN_LEADER_EPOCH
    assert bench.isr == (101,)


# --- shrink -----------------------------------------------------------------------------------


def test_f16_a_shrink_counts_when_it_is_committed_and_is_retried() -> None:
    bench = shrinking()
    assert bench.submitted[0].isr == ((101, 1101),)
    assert (bench.isr, bench.maximal_isr) == ((101, 102), (101, 102))
    assert bench.partition.high_watermark == 0
    bench.respond(ErrorCode.NETWORK_EXCEPTION)
    assert len(bench.submitted) == 2
    assert bench.partition.failed_isr_updates == 1
    bench.respond(partition_epoch=2)
    assert bench.partition.isr_state == CommittedPartitionState((101,))
    assert bench.partition.partition_epoch == 2
    assert bench.partition.high_watermark == 10
    assert bench.partition.isr_shrinks == 1
    assert bench.checks == 1


def test_f20_metadata_of_the_leaders_own_epoch_ends_a_change_whose_response_is_then_ignored() -> (
    None
):
    bench = shrinking()
    late = bench.partition.in_flight
    bench.lead(replicas=[101, 102], isr=[101, 102], partition_epoch=2)
    assert isinstance(bench.partition.isr_state, CommittedPartitionState)
    bench.now_ms += LAG_MS + 1
    bench.shrink()
    assert len(bench.not_attempted) == 1, "the request in flight has no response yet"
    assert isinstance(bench.partition.isr_state, CommittedPartitionState)
    assert bench.partition.in_flight is late
    bench.respond(partition_epoch=10)
    assert bench.partition.isr_state == CommittedPartitionState((101, 102))
    assert bench.partition.partition_epoch == 2
    bench.shrink()
    assert isinstance(bench.partition.isr_state, PendingShrinkIsr)


def test_f21_a_fetch_from_the_last_fetchs_end_had_caught_up_then() -> None:
    bench = Bench()
    bench.seed(10)
    bench.lead(replicas=[101, 102], isr=[101, 102])
    bench.now_ms += 5_000
    caught_up_ms = bench.now_ms
    bench.fetch(102, 5)
    assert bench.partition.high_watermark == 5
    bench.append(5)
    bench.now_ms += 5_000
    bench.fetch(102, 10)
    assert bench.partition.high_watermark == 10
    assert bench.partition.remote_replicas[102].last_caught_up_ms == caught_up_ms
    bench.now_ms = caught_up_ms + LAG_MS
    bench.shrink()
    assert bench.submitted == []
    bench.now_ms += 1
    bench.shrink()
    assert len(bench.submitted) == 1


def test_f22_who_holds_everything_stays_however_long_it_is_silent() -> None:
    bench = Bench()
    bench.seed(10)
    bench.lead(replicas=[101, 102], isr=[101, 102])
    bench.fetch(102, 10)
    bench.now_ms += LAG_MS + 1
    bench.shrink()
    assert bench.submitted == []


def test_f23_a_refused_shrink_stays_pending() -> None:
    bench = shrinking()
    bench.respond(ErrorCode.INVALID_UPDATE_VERSION)
    assert isinstance(bench.partition.isr_state, PendingShrinkIsr)
    assert bench.isr == (101, 102)
    assert bench.partition.high_watermark == 0


def test_f24_a_retried_expansion_commits_with_the_second_response() -> None:
    bench = Bench()
    bench.seed(10)
    bench.lead(replicas=[101, 102, 103, 104], isr=[101, 102, 103])
    bench.fetch(104, 10)
    bench.respond(ErrorCode.UNKNOWN_SERVER_ERROR)
    bench.respond(partition_epoch=2)
    assert len(bench.submitted) == 2
    assert bench.partition.isr_state == CommittedPartitionState((101, 102, 103, 104))
    assert bench.partition.partition_epoch == 2


def test_all_laggards_leave_in_one_change() -> None:
    bench = Bench()
    bench.seed(1)
    bench.lead(replicas=[101, 102, 103, 104], isr=[101, 102, 103, 104])
    bench.now_ms += LAG_MS
    bench.fetch(103, 1)
    bench.now_ms += 1
    bench.shrink()
    assert [member for member, _ in bench.submitted[0].isr] == [101, 103]


# --- responses that do not fit ----------------------------------------------------------------


@pytest.mark.parametrize("stale", [{"leader_epoch": 4}, {"partition_epoch": 0}], ids=str)
def test_a_success_of_another_epoch_changes_nothing_and_counts_as_failure(
    stale: dict[str, int],
) -> None:
    bench = expanding()
    bench.respond(**stale)
    assert isinstance(bench.partition.isr_state, PendingExpandIsr)
    assert bench.partition.failed_isr_updates == 1


def test_metadata_below_the_own_partition_epoch_is_ignored() -> None:
    bench = expanding()
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=0)
    assert isinstance(bench.partition.isr_state, PendingExpandIsr)
    assert not bench.follow(102, replicas=[101, 102], isr=[102], leader_epoch=6, partition_epoch=0)
    assert bench.partition.is_leader


# --- roles ------------------------------------------------------------------------------------


def test_f26_at_and_under_the_minimum() -> None:
    bench = Bench(min_isr=1)
    bench.lead(replicas=[101, 102, 103], isr=[101])
    assert is_at_min_isr(bench.partition)
    bench.partition.min_insync_replicas = 2
    bench.lead(replicas=[101, 102, 103], isr=[101, 102], partition_epoch=2)
    assert not bench.partition.is_under_min_isr
    bench.lead(replicas=[101, 102, 103], isr=[101], partition_epoch=3)
    assert bench.partition.is_under_min_isr
    assert not is_at_min_isr(bench.partition)


def test_f27_a_fetch_moves_the_follower_and_at_the_end_its_time() -> None:
    bench = Bench()
    bench.seed(6)
    bench.lead(replicas=[101, 102], isr=[101, 102])
    start_ms = bench.now_ms
    bench.now_ms = start_ms + 500
    bench.fetch(102, 3)
    follower = bench.partition.remote_replicas[102]
    assert (follower.log_end_offset, follower.last_caught_up_ms) == (3, start_ms)
    bench.now_ms = start_ms + 1_000
    bench.fetch(102, 6)
    follower = bench.partition.remote_replicas[102]
    assert (follower.log_end_offset, follower.last_caught_up_ms) == (6, start_ms + 1_000)


def test_f29_the_same_leader_epoch_again_keeps_followers_start_and_cache() -> None:
    bench = Bench()
    bench.seed(4)
    assert bench.lead(replicas=[101, 102], isr=[101, 102])
    bench.fetch(102, 4)
    bench.append(3)
    followers = dict(bench.partition.remote_replicas)
    epochs = bench.partition.log.epochs.entries
    assert not bench.lead(replicas=[101, 102], isr=[101, 102], partition_epoch=2)
    assert bench.partition.remote_replicas == followers
    assert bench.partition.leader_epoch_start_offset == 4
    assert bench.partition.log.epochs.entries == epochs


def test_a_new_epoch_of_the_same_leader_keeps_offsets_and_a_new_leader_has_none() -> None:
    bench = Bench()
    bench.seed(4)
    fields = {"replicas": [101, 102], "isr": [101, 102]}
    bench.lead(**fields)
    bench.fetch(102, 4)
    bench.now_ms += 7
    bench.lead(**fields, leader_epoch=6, partition_epoch=2)
    follower = bench.partition.remote_replicas[102]
    assert (follower.log_end_offset, follower.broker_epoch) == (4, 1102)
    assert follower.last_fetch_ms == bench.now_ms
    bench.follow(102, **fields, leader_epoch=7, partition_epoch=3)
    bench.lead(**fields, leader_epoch=8, partition_epoch=4)
    follower = bench.partition.remote_replicas[102]
    assert (follower.log_end_offset, follower.broker_epoch) == (-1, None)


def test_a_leader_takes_its_partition_as_recovered_and_a_follower_keeps_the_recorded_state() -> (
    None
):
    bench = Bench()
    bench.lead(replicas=[101, 102], isr=[101], recovery_state=1)
    bench.fetch(102, 0)
    assert bench.submitted[0].recovery_state == 0
    bench.follow(102, replicas=[101, 102], isr=[102], recovery_state=1, partition_epoch=2)
    assert bench.partition.isr_state == CommittedPartitionState((), 1)


def test_adding_replicas_do_not_make_a_partition_under_replicated() -> None:
    bench = Bench()
    bench.lead(replicas=[101, 102, 103], isr=[101, 102], adding=[103])
    assert not is_under_replicated(bench.partition)
    bench.lead(replicas=[101, 102, 103], isr=[101], adding=[103], partition_epoch=2)
    assert is_under_replicated(bench.partition)


def test_a_partition_without_a_role_refuses_everything() -> None:
    bench = Bench()
    assert not bench.partition.is_leader
    for call in (
        lambda: bench.fetch(102, 0, current_leader_epoch=None),
        lambda: bench.append(1),
        lambda: consumer_fetch_records(
            bench.partition, fetch_offset=0, any_replica=True, max_bytes=1
        ),
        lambda: list_offsets(bench.partition, timestamp=-1, leader_only=False),
        lambda: delete_records_on_leader(bench.partition, 0),
    ):
        with pytest.raises(ReplicaError) as refusal:
            call()
        assert refusal.value.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
    bench.shrink()
    assert bench.effects == []
    assert bench.partition.leader != LEADER


def test_metadata_of_an_equal_partition_epoch_spares_the_change_that_is_pending() -> None:
    """As shipped it ends the change, though the controller may yet write it."""
    for rules in (Rules.KAFKA_4_3, Rules.KAFKA_4_3.as_shipped()):
        bench = expanding(rules=rules)
        spares = not rules.equal_partition_epoch_ends_pending
        bench.lead(replicas=[101, 102], isr=[101], partition_epoch=1)
        assert bench.partition.isr_state.is_pending == spares
        bench.respond(partition_epoch=2)
        assert bench.isr == ((101, 102) if spares else (101,))


def test_metadata_of_an_equal_partition_epoch_spares_a_change_that_may_be_written() -> None:
    """Its response was lost, and its repetition is rejected: the controller has a later partition
    epoch by then (seed 501299)."""
    bench = expanding()
    bench.respond(ErrorCode.INVALID_UPDATE_VERSION)
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=1)
    assert bench.partition.isr_state.maximal_isr == (101, 102)
    bench.lead(replicas=[101, 102], isr=[101, 102], partition_epoch=2)
    assert bench.partition.isr_state == CommittedPartitionState((101, 102))


def test_metadata_of_an_equal_partition_epoch_ends_a_change_that_was_refused() -> None:
    bench = expanding()
    bench.respond(ErrorCode.INVALID_REQUEST)
    bench.lead(replicas=[101, 102], isr=[101], partition_epoch=1)
    assert bench.partition.isr_state == CommittedPartitionState((101,))


@pytest.mark.parametrize("error", [e for e in ErrorCode if e != ErrorCode.NONE], ids=str)
def test_every_refusal_reverts_waits_or_retries_and_is_reported_with_its_reason(
    error: ErrorCode,
) -> None:
    bench = expanding()
    (failed,) = [e for e in bench.respond(error) if isinstance(e, AlterPartitionFailed)]
    assert (failed.topic, failed.partition, failed.isr) == ("orders", 6, (101, 102))
    assert failed.error == error and failed.reason
    reverted, retried = not bench.partition.isr_state.is_pending, len(bench.submitted) == 2
    waits = not reverted and not retried
    assert (reverted, waits) == (error in REVERTS, error in WAITS_FOR_METADATA)
