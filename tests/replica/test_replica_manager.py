"""Replication end to end: brokers wired by hand, a clock, and a controller that keeps its word."""

from __future__ import annotations

import uuid

from minicluster.protocol import ErrorCode
from minicluster.protocol.records import UnregisterBrokerRecord
from tests.replica.cluster import CONTROLLER, Cluster
from tests.replica.controller_by_heart import TOPIC_IDS

FETCH_WAIT_MS = 500
LAG_MS = 30_000


def kinds(cluster: Cluster, broker: int) -> list[str]:
    return [row["kind"] for row in cluster.traces if row.get("broker") == broker]


def test_acks_all_is_acknowledged_when_the_maximal_isr_has_it() -> None:
    cluster = Cluster()
    cluster.create_topic()
    produce = cluster.produce(1, b"a", b"b")
    assert not cluster.has_response(produce)
    cluster.advance(10)

    response = cluster.produced(produce)
    assert (response.error_code, response.base_offset) == (ErrorCode.NONE, 0)
    assert cluster.log_values(2) == cluster.log_values(3) == [b"a", b"b"]
    ack = next(row for row in cluster.traces if row["kind"] == "ack")
    assert (ack["offset"], ack["maximal_isr"]) == (1, (1, 2, 3))


def test_acks_one_is_acknowledged_at_once_and_acks_none_with_nothing() -> None:
    cluster = Cluster()
    cluster.create_topic()
    one = cluster.produce(1, b"a", acks=1)
    assert cluster.produced(one).error_code == ErrorCode.NONE
    assert cluster.response(cluster.produce(1, b"b", acks=0)) is None
    cluster.advance(10)
    assert cluster.log_values(2) == [b"a", b"b"]


def test_other_acks_are_refused() -> None:
    cluster = Cluster()
    cluster.create_topic()
    produce = cluster.produce(1, b"a", acks=2)
    assert cluster.produced(produce).error_code == ErrorCode.INVALID_REQUIRED_ACKS
    assert cluster.partition(1).log_end_offset == 0


def test_a_consumer_sees_only_what_is_committed_and_a_parked_fetch_wakes_then() -> None:
    cluster = Cluster()
    cluster.create_topic()
    waiting = cluster.consume(1, 0, wait_ms=10_000)
    cluster.produce(1, b"a", acks=1)
    assert not cluster.has_response(waiting)
    cluster.advance(3)
    data, values = cluster.fetched(waiting)
    assert values == [b"a"]
    assert data.high_watermark == 1


def test_a_parked_consumer_fetch_ends_empty_when_its_time_is_over() -> None:
    cluster = Cluster()
    cluster.create_topic()
    waiting = cluster.consume(1, 0, wait_ms=700)
    cluster.advance(699)
    assert not cluster.has_response(waiting)
    cluster.advance(1)
    assert cluster.fetched(waiting)[1] == []


def test_a_follower_gets_the_high_watermark_with_its_next_fetch() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.produce(1, b"a")
    cluster.advance(10)
    assert (cluster.partition(1).high_watermark, cluster.partition(2).high_watermark) == (1, 0)
    cluster.advance(FETCH_WAIT_MS)
    assert cluster.partition(2).high_watermark == 1


def test_the_follower_whose_fetch_moved_the_high_watermark_gets_it_as_soon() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.produce(1, b"a")
    cluster.advance(FETCH_WAIT_MS + 10)
    assert [cluster.partition(broker).high_watermark for broker in (1, 2, 3)] == [1, 1, 1]


def test_a_produce_that_is_not_replicated_in_time_times_out_and_may_be_committed_later() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.cuts |= {(2, 1), (3, 1)}
    cluster.advance(FETCH_WAIT_MS + 10)
    produce = cluster.produce(1, b"a", timeout_ms=1_000)
    cluster.advance(999)
    assert not cluster.has_response(produce)
    cluster.advance(1)
    assert cluster.produced(produce).error_code == ErrorCode.REQUEST_TIMED_OUT
    cluster.cuts.clear()
    cluster.advance(60_000)
    assert cluster.partition(1).high_watermark == 1


def test_a_lagging_follower_leaves_the_isr_and_comes_back() -> None:
    cluster = Cluster()
    cluster.create_topic(min_isr=1)
    cluster.cuts.add((3, 1))
    cluster.produce(1, b"a")
    cluster.advance(LAG_MS + LAG_MS // 2 + 1_000)
    assert cluster.image.topics.named("orders").partitions[0].isr == (1, 2)  # type: ignore[union-attr]
    assert cluster.partition(1).isr_state.isr == (1, 2)
    assert cluster.partition(1).high_watermark == 1

    cluster.cuts.clear()
    cluster.advance(LAG_MS + 5_000)
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)
    requested = cluster.alterations[-1].topics[0].partitions[0]
    assert [(m.broker_id, m.broker_epoch) for m in requested.new_isr_with_epochs] == [
        (1, 1_001), (2, 1_002), (3, 1_003),
    ]  # fmt: skip


def test_acks_all_below_the_minimum_is_refused_and_the_high_watermark_stays() -> None:
    cluster = Cluster()
    cluster.create_topic(isr=(1,), min_isr=2)
    cluster.cuts |= {(2, 1), (3, 1)}
    refused = cluster.produce(1, b"a")
    assert cluster.produced(refused).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.produce(1, b"b", acks=1)
    cluster.advance(20)
    assert cluster.partition(1).high_watermark == 0


def test_the_minimum_follows_the_topics_config() -> None:
    cluster = Cluster()
    cluster.create_topic(replicas=(1,), min_isr=1)
    cluster.create_topic("bills", replicas=(1, 2), isr=(1,), min_isr=1)
    cluster.cuts.add((2, 1))
    cluster.set_min_isr("bills", 2)
    assert cluster.partition(1, "bills").min_insync_replicas == 2
    assert cluster.partition(1).min_insync_replicas == 1
    refused = cluster.produce(1, b"a", name="bills")
    assert cluster.produced(refused).error_code == ErrorCode.NOT_ENOUGH_REPLICAS


def test_an_expansion_that_was_proposed_counts_before_it_is_committed() -> None:
    cluster = Cluster()
    cluster.controller_responds = False
    cluster.create_topic(isr=(1, 2))
    cluster.advance(FETCH_WAIT_MS + 10)
    leader = cluster.partition(1)
    assert (leader.isr_state.isr, leader.isr_state.maximal_isr) == ((1, 2), (1, 2, 3))
    cluster.cuts.add((3, 1))
    cluster.advance(FETCH_WAIT_MS)
    produce = cluster.produce(1, b"a")
    cluster.advance(1_000)
    assert not cluster.has_response(produce), "broker 3 may be in the ISR and has not got it"


def test_a_follower_truncates_what_the_new_leader_never_had() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.produce(1, b"a")
    cluster.advance(FETCH_WAIT_MS + 20)
    cluster.cuts |= {(2, 1), (3, 1)}
    cluster.advance(FETCH_WAIT_MS)
    cluster.produce(1, b"lost", acks=1)
    assert cluster.log_values(1) == [b"a", b"lost"]

    cluster.cuts.clear()
    cluster.change(leader=2, isr=(2, 3))
    cluster.produce(2, b"kept", acks=1)
    cluster.advance(1_000)

    assert cluster.log_values(1) == cluster.log_values(2) == [b"a", b"kept"]
    assert cluster.partition(1).log.epochs.entries == ((0, 0), (1, 1))
    cut = [row for row in cluster.traces if row["kind"] == "truncate"]
    assert [(row["broker"], row["offset"]) for row in cut] == [(1, 1)]
    cluster.advance(1_000)
    assert cluster.partition(2).isr_state.isr == (1, 2, 3)


def test_a_crashed_follower_comes_back_over_its_disk_and_rejoins() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.produce(1, b"a")
    cluster.advance(6_000)
    cluster.crash(3)
    cluster.fence(3)
    cluster.change(isr=(1, 2))
    produce = cluster.produce(1, b"b")
    cluster.advance(20)
    assert cluster.produced(produce).error_code == ErrorCode.NONE

    cluster.start(3, epoch=2_003)
    follower = cluster.partition(3)
    assert (follower.log_end_offset, follower.high_watermark) == (1, 1)
    cluster.advance(20)
    assert cluster.log_values(3) == [b"a", b"b"]
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)
    requested = cluster.alterations[-1].topics[0].partitions[0]
    assert {m.broker_id: m.broker_epoch for m in requested.new_isr_with_epochs}[3] == 2_003


def test_a_machine_that_loses_its_unflushed_tail_takes_it_from_the_leader_again() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.produce(1, b"a", b"b")
    cluster.advance(6_000)
    cluster.crash(2)
    cluster.disks[2].logs["orders-0"].lose_unflushed()
    cluster.start(2, epoch=2_002)
    assert cluster.partition(2).high_watermark == 0
    cluster.advance(20)
    assert cluster.log_values(2) == [b"a", b"b"]


def test_what_was_written_half_a_minute_ago_has_reached_the_disk() -> None:
    cluster = Cluster()
    cluster.create_topic(replicas=(1,))
    cluster.produce(1, b"old")
    cluster.advance(31_000)
    cluster.produce(1, b"new")
    cluster.disks[1].logs["orders-0"].lose_unflushed()
    assert cluster.log_values(1) == [b"old"]


def test_a_fenced_follower_is_not_proposed_until_it_is_unfenced() -> None:
    cluster = Cluster()
    cluster.create_topic(isr=(1, 2))
    cluster.alterations.clear()
    cluster.fence(3)
    cluster.advance(5_000)
    assert cluster.partition(1).isr_state.maximal_isr == (1, 2)
    assert not cluster.alterations
    cluster.fence(3, fenced=False)
    cluster.advance(FETCH_WAIT_MS + 10)
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)


def test_after_ineligible_replica_the_leader_proposes_again_with_the_next_fetch() -> None:
    cluster = Cluster()
    cluster.responses = [ErrorCode.INELIGIBLE_REPLICA]
    cluster.create_topic(isr=(1, 2))
    cluster.advance(2 * FETCH_WAIT_MS)
    assert len(cluster.alterations) == 2
    assert kinds(cluster, 1).count("isr_revert") == 1
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)


def test_an_unexpected_error_is_retried_at_once() -> None:
    cluster = Cluster()
    cluster.responses = [ErrorCode.UNKNOWN_SERVER_ERROR]
    cluster.create_topic(isr=(1, 2))
    cluster.advance(50)
    assert len(cluster.alterations) == 2
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)


def test_without_a_known_controller_a_proposal_waits_and_leaves_later() -> None:
    cluster = Cluster()
    cluster.see(1, cluster.managers[1].on_controller(None, cluster.now_ms))
    cluster.create_topic(isr=(1, 2))
    cluster.advance(5_000)
    assert not cluster.alterations
    cluster.see(1, cluster.managers[1].on_controller(CONTROLLER, cluster.now_ms))
    cluster.advance(20)
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)


def test_a_produce_that_waits_when_leadership_moves_is_refused() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.cuts |= {(2, 1), (3, 1)}
    cluster.advance(FETCH_WAIT_MS + 10)
    produce = cluster.produce(1, b"a")
    cluster.change(leader=2)
    response = cluster.produced(produce)
    assert response.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (response.current_leader.leader_id, response.current_leader.leader_epoch) == (2, 1)


def test_a_request_to_the_wrong_broker_gets_the_leaders_id() -> None:
    cluster = Cluster()
    cluster.create_topic(replicas=(1, 2))
    follower = cluster.produced(cluster.produce(2, b"a"))
    assert follower.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert follower.current_leader.leader_id == 1
    stranger = cluster.produced(cluster.produce(3, b"a"))
    assert stranger.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    unknown = cluster.produced(cluster.produce(1, b"a", name="bills"))
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_deleted_topic_leaves_no_log_and_wakes_whoever_waited() -> None:
    cluster = Cluster()
    cluster.create_topic()
    waiting = cluster.consume(1, 0, wait_ms=10_000)
    cluster.delete_topic()
    assert not any("orders-0" in disk.logs for disk in cluster.disks.values())
    assert not any(manager.state.partitions for manager in cluster.managers.values())
    assert not any(manager.state.fetchers for manager in cluster.managers.values())
    assert cluster.fetched(waiting)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert kinds(cluster, 1)[-1] == "delete"


def test_a_log_that_was_deleted_while_its_broker_was_down_is_stray() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.produce(1, b"a")
    cluster.advance(20)
    cluster.crash(3)
    cluster.delete_topic()
    assert "orders-0" in cluster.disks[3].logs
    cluster.start(3, epoch=2_003)
    assert "orders-0" not in cluster.disks[3].logs


def test_a_topic_that_came_back_under_its_name_does_not_inherit_the_old_log() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.produce(1, b"old")
    cluster.advance(20)
    cluster.crash(3)
    cluster.delete_topic()
    TOPIC_IDS["orders"], saved = uuid.UUID(int=0xAA), TOPIC_IDS["orders"]
    try:
        cluster.create_topic(replicas=(1, 3))
        cluster.start(3, epoch=2_003)
        cluster.produce(1, b"new")
        cluster.advance(20)
        assert cluster.log_values(3) == [b"new"]
    finally:
        TOPIC_IDS["orders"] = saved


def test_a_replica_that_was_moved_away_is_deleted() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.change(replicas=(1, 2), isr=(1, 2), directories=(uuid.UUID(int=0xD001),) * 2)
    assert "orders-0" not in cluster.disks[3].logs
    assert not cluster.managers[3].state.fetchers


def test_without_a_leader_nobody_fetches_and_with_one_again_they_do() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.change(leader=-1, isr=(1,))
    assert not any(manager.state.fetchers for manager in cluster.managers.values())
    cluster.sent.clear()
    cluster.advance(5_000)
    assert not cluster.sent
    cluster.change(leader=1)
    cluster.advance(FETCH_WAIT_MS + 10)
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)


def test_a_leader_that_is_not_registered_is_not_fetched_from() -> None:
    cluster = Cluster()
    cluster.publish(UnregisterBrokerRecord(broker_id=3, broker_epoch=1_003))
    cluster.create_topic(replicas=(3, 2), isr=(3, 2))
    assert not cluster.managers[2].state.fetchers


def test_in_controlled_shutdown_a_follower_out_of_the_isr_stops_fetching() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.managers[3].begin_controlled_shutdown()
    cluster.change(isr=(1, 2))
    assert not cluster.managers[3].state.fetchers
    assert "orders-0" in cluster.disks[3].logs
    assert cluster.partition(3).leader == 1, "the role follows the image nevertheless"
    cluster.advance(FETCH_WAIT_MS + 10)
    cluster.sent.clear()
    cluster.advance(5_000)
    assert not [to for source, to, _ in cluster.sent if source == 3]


def test_in_controlled_shutdown_a_leader_goes_on_leading() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.managers[1].begin_controlled_shutdown()
    cluster.change(isr=(1, 2))
    assert cluster.partition(1).is_leader
    produce = cluster.produce(1, b"a")
    cluster.advance(20)
    assert cluster.produced(produce).error_code == ErrorCode.NONE


def test_a_clean_shutdown_leaves_its_epoch_and_a_flushed_log() -> None:
    cluster = Cluster()
    cluster.create_topic(replicas=(1,))
    cluster.produce(1, b"a")
    manager = cluster.managers[1]
    cluster.see(1, manager.shut_down(cluster.now_ms))
    cluster.crash(1)
    cluster.disks[1].logs["orders-0"].lose_unflushed()
    cluster.start(1, epoch=2_001)
    assert cluster.managers[1].state.store.take_previous_epoch() == 1_001
    assert cluster.managers[1].state.store.take_previous_epoch() == -1
    assert (cluster.partition(1).log_end_offset, cluster.partition(1).high_watermark) == (1, 1)


def test_a_clean_shutdown_checkpoints_the_high_watermarks_of_followers() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.produce(1, b"a")
    cluster.advance(FETCH_WAIT_MS + 10)
    cluster.see(2, cluster.managers[2].shut_down(cluster.now_ms))
    cluster.crash(2)
    cluster.start(2, epoch=2_002)
    assert cluster.partition(2).high_watermark == 1


def test_who_becomes_leader_stops_fetching() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.advance(FETCH_WAIT_MS)
    cluster.change(leader=2)
    assert not cluster.managers[2].state.fetchers
    assert (
        list(cluster.managers[1].state.fetchers) == list(cluster.managers[3].state.fetchers) == [2]
    )


def test_a_failed_directory_takes_its_replicas_offline() -> None:
    cluster = Cluster()
    cluster.create_topic()
    directory = uuid.UUID(int=0xD001)
    cluster.see(1, cluster.managers[1].on_directory_failure(directory, cluster.now_ms))
    refused = cluster.produced(cluster.produce(1, b"a"))
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert kinds(cluster, 1)[-1] == "stop"
    cluster.change(leader=2, isr=(2, 3))
    assert not cluster.managers[1].state.partitions, "it stays offline until the broker restarts"


def test_list_offsets_finds_earliest_latest_and_by_time() -> None:
    cluster = Cluster()
    cluster.create_topic(replicas=(1,))
    cluster.produce(1, b"a")
    cluster.advance(1_000)
    cluster.produce(1, b"b")
    assert cluster.list_offset(1, -2).offset == 0
    assert cluster.list_offset(1, -1).offset == 2
    found = cluster.list_offset(1, cluster.now_ms)
    assert (found.offset, found.timestamp) == (1, cluster.now_ms)
    assert cluster.list_offset(1, cluster.now_ms + 1).offset == -1


def test_list_offsets_finds_the_youngest_record_and_has_no_tier() -> None:
    """KIP-734. A special timestamp is refused below the version that added it."""
    cluster = Cluster()
    cluster.create_topic(replicas=(1,))
    assert cluster.list_offset(1, -3, version=7).offset == -1
    for at_ms in (5_000, 9_000, 9_000, 7_000):
        cluster.produce(1, b"a", timestamp=at_ms)
    found = cluster.list_offset(1, -3, version=7)
    assert (found.error_code, found.offset, found.timestamp) == (0, 1, 9_000)
    assert cluster.list_offset(1, -4, version=8).offset == 0
    assert cluster.list_offset(1, -5, version=9).offset == -1
    for word, version in ((-3, 6), (-4, 7), (-5, 8), (-6, 10), (-7, 11)):
        refused = cluster.list_offset(1, word, version=version)
        assert refused.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_an_idle_cluster_sends_two_fetches_a_second_per_follower_and_leader() -> None:
    cluster = Cluster()
    cluster.create_topic()
    cluster.create_topic("bills")
    cluster.advance(1_000)
    cluster.sent.clear()
    cluster.advance(60_000)
    assert len(cluster.sent) <= 2 * 2 * 60


def test_a_broker_without_partitions_sends_nothing() -> None:
    cluster = Cluster()
    cluster.create_topic(replicas=(1, 2))
    cluster.sent.clear()
    cluster.advance(60_000)
    assert not [source for source, _, _ in cluster.sent if source == 3]
