"""Conformance rows C30-C39: eligible leader replicas, as 4.3 has them and with their faults."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.java_order import java_set_order
from minicluster.metadata.image.configs import BROKER, TOPIC
from minicluster.metadata.image.partition import RECOVERED, RECOVERING
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    ClearElrRecord,
)
from minicluster.rules import Rules
from minicluster.values import replace
from tests.controller.kit import Cluster, dir_id, led, started

MIN_ISR, UNCLEAN = "min.insync.replicas", "unclean.leader.election.enable"


def elr_cluster(brokers: int, min_isr: int, **options: Any) -> Cluster:
    cluster = started(*range(brokers), elr=True, **options)
    cluster.create("foo", tuple(range(brokers)), configs={MIN_ISR: str(min_isr)})
    return cluster


def elr(cluster: Cluster) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    partition = cluster.partition("foo")
    return partition.isr, partition.elr, partition.last_known_elr


def test_C30_elr_follows_the_isr() -> None:
    cluster = elr_cluster(3, 2)
    cluster.propose("foo", (0,))
    assert elr(cluster) == ((0,), (1, 2), ())
    cluster.propose("foo", (0, 1))
    assert elr(cluster) == ((0, 1), (), ())


@pytest.mark.parametrize(
    ("first", "then", "order"),
    [
        ((5, 3, 15), (0,), [0, 3, 5, 15]),
        ((1, 2), (16, 18), [16, 1, 2, 18]),  # slot 0 holds 16; slot 2 holds 2, then 18
        ((18, 2), (17, 1), [17, 1, 18, 2]),
        (tuple(range(12)), (16,), [*range(12), 16]),  # thirteen need 32 slots
        (tuple(range(11)), (16,), [0, 16, *range(1, 11)]),
        (tuple(range(12)), (), list(range(12))),
        ((*range(1, 12), 16), (), [*range(1, 12), 16]),  # a copy of twelve starts with 32
    ],
)
def test_an_elr_is_in_the_order_of_a_java_hash_set(
    first: tuple[int, ...], then: tuple[int, ...], order: list[int]
) -> None:
    assert java_set_order(first, then) == order


def test_C30_the_elr_of_brokers_beyond_15_does_not_ascend() -> None:
    cluster = started(1, 2, 16, 18, elr=True)
    cluster.create("foo", (2, 1, 16, 18), configs={MIN_ISR: "3"})
    cluster.propose("foo", (2,))
    assert elr(cluster) == ((2,), (16, 1, 18), ())


def test_C31_C32_fencing_feeds_the_elr_and_unfencing_leaves_it() -> None:
    cluster = elr_cluster(4, 3)
    cluster.fence(2, 3)
    assert elr(cluster) == ((0, 1), (3,), ())
    cluster.fence(1)
    assert elr(cluster) == ((0,), (1, 3), ())
    for broker_id in (1, 2, 3):
        cluster.heartbeat(broker_id)
    assert elr(cluster) == ((0,), (1, 3), ())


def test_C33_C34_an_eligible_replica_is_elected_cleanly() -> None:
    cluster = elr_cluster(4, 3)
    cluster.fence(1, 2, 3)
    assert elr(cluster) == ((0,), (2, 3), ())
    cluster.heartbeat(2)
    cluster.fence(0)
    assert elr(cluster) == ((2,), (0, 3), ())
    assert cluster.partition("foo").leader_recovery_state == RECOVERED


def restart(cluster: Cluster, broker_id: int, number: int, *, clean: bool = False) -> None:
    """A new incarnation, after the session of the one before."""
    cluster.now_ms += 10_000
    previous = cluster.epoch(broker_id) if clean else -1
    assert cluster.register(broker_id, number=number, previous_epoch=previous).error_code == 0


def test_C35_a_broker_that_lost_its_log_leaves_the_elr() -> None:
    cluster = elr_cluster(4, 3)
    cluster.fence(1, 2, 3)
    restart(cluster, 3, 1)
    assert elr(cluster) == ((0,), (2,), ())
    restart(cluster, 0, 1)
    assert elr(cluster) == ((), (2,), (0,))
    assert cluster.partition("foo").leader == -1


def test_a_clean_restart_keeps_the_place_in_the_elr() -> None:
    cluster = elr_cluster(4, 3)
    cluster.fence(1, 2, 3)
    restart(cluster, 3, 1, clean=True)
    assert elr(cluster) == ((0,), (2, 3), ())


def test_C36_the_effective_minimum_is_at_most_the_replication_factor() -> None:
    cluster = elr_cluster(3, 5)
    topic = cluster.machine.image.topics.named("foo")
    assert topic is not None
    assert cluster.machine.state.min_isr(topic) == 3


def test_C37_a_deleted_topic_leaves_no_index_entry() -> None:
    cluster = elr_cluster(3, 2)
    cluster.propose("foo", (0,))
    topic_id = cluster.topic_id("foo")
    Request = m.DeleteTopicsRequest
    response = cluster.request(Request(topics=(Request.DeleteTopicState(topic_id=topic_id),)))
    assert response.responses[0].error_code == 0 and response.responses[0].name == "foo"
    state = cluster.machine.state
    assert not state.indexes.in_isr(0) and not state.indexes.elr.of(1)
    assert state.check_indexes() == ()


def test_C38_C39_sessions_expire_and_an_eligible_member_comes_back_cleanly() -> None:
    """Amended by 4.3: the last leader is remembered at the first leaderless transition."""
    cluster = Cluster(elr=True)
    cluster.start(1, 2, 3)
    cluster.create("foo", (1, 2, 3), configs={MIN_ISR: "2"})
    cluster.run(20_000)
    partition = cluster.partition("foo")
    assert (partition.isr, partition.leader, len(partition.elr)) == ((), -1, 2)
    assert len(partition.last_known_elr) == 1
    last = partition.last_known_elr[0]
    assert last in partition.elr
    restart(cluster, last, 1)
    after = cluster.partition("foo")
    assert last not in after.elr and len(after.elr) == 1
    assert after.last_known_elr == (last,)
    (other,) = after.elr
    cluster.heartbeat(other)
    final = cluster.partition("foo")
    assert led(final) == (other, (other,))
    assert (final.elr, final.last_known_elr) == ((), ())
    assert final.leader_recovery_state == RECOVERED


# ELR's faults, on either side.


@pytest.mark.parametrize("shipped", [True, False])
def test_z54_changing_the_minimum_leaves_a_candidate(shipped: bool) -> None:
    rules = Rules.KAFKA_4_3.with_bugs(["Z54"] if shipped else [])
    cluster = elr_cluster(3, 2, rules=rules)
    cluster.fence(0, 1, 2)
    before = elr(cluster)
    assert before[0] == () and before[1]
    records = cluster.records_of(lambda: cluster.set_config(TOPIC, "foo", MIN_ISR, "1"))
    assert any(isinstance(record, ClearElrRecord) for record in records) == shipped
    for broker_id in range(3):
        cluster.heartbeat(broker_id)
    assert cluster.partition("foo").has_leader != shipped


@pytest.mark.parametrize("shipped", [True, False])
def test_z52_the_elr_index_follows_a_clear_elr(shipped: bool) -> None:
    rules = Rules.KAFKA_4_3.with_bugs(["Z52"] if shipped else [])
    cluster = elr_cluster(3, 2, rules=rules)
    cluster.propose("foo", (0,))
    cluster.set_config(TOPIC, "foo", MIN_ISR, "3")
    assert elr(cluster)[1] == ()
    assert (cluster.machine.state.check_indexes() != ()) == shipped
    topic_id = cluster.topic_id("foo")
    Request = m.DeleteTopicsRequest
    cluster.request(Request(topics=(Request.DeleteTopicState(topic_id=topic_id),)))
    response = cluster.request(m.UnregisterBrokerRequest(broker_id=1))
    assert (response.error_code == ErrorCode.UNKNOWN_SERVER_ERROR) == shipped
    assert cluster.resigned == shipped


@pytest.mark.parametrize("shipped", [True, False])
def test_z53_a_deleted_topic_leaves_the_directory_index(shipped: bool) -> None:
    rules = Rules.KAFKA_4_3.with_bugs(["Z53"] if shipped else [])
    cluster = Cluster(elr=True, rules=rules)
    for broker_id in range(3):
        cluster.start(broker_id, dirs=(dir_id(broker_id, 1), dir_id(broker_id, 2)))
    cluster.create("foo", (0, 1), configs={MIN_ISR: "2"})
    cluster.assign_dir(0, dir_id(0, 1), "foo", 0)
    cluster.fence(1, 0)
    assert elr(cluster)[0] == ()
    topic_id = cluster.topic_id("foo")
    Request = m.DeleteTopicsRequest
    cluster.request(Request(topics=(Request.DeleteTopicState(topic_id=topic_id),)))
    assert (cluster.machine.state.check_indexes() != ()) == shipped
    cluster.heartbeat(0, offline_log_dirs=(dir_id(0, 1),))
    assert cluster.resigned == shipped


@pytest.mark.parametrize("shipped", [True, False])
def test_an_unregistered_broker_and_the_elr(shipped: bool) -> None:
    rules = replace(Rules.KAFKA_4_3, unregistered_broker_stays_in_elr=shipped)
    cluster = elr_cluster(3, 2, rules=rules)
    cluster.propose("foo", (0,))
    cluster.request(m.UnregisterBrokerRequest(broker_id=1))
    assert elr(cluster)[1] == ((1, 2) if shipped else (2,))


def test_with_elr_on_the_minimum_is_one_for_the_cluster() -> None:
    cluster = elr_cluster(3, 2)
    invalid = ErrorCode.INVALID_CONFIG
    assert cluster.set_config(BROKER, "1", MIN_ISR, "2") == invalid
    assert cluster.set_config(BROKER, "1", MIN_ISR, None) == invalid
    assert cluster.set_config(BROKER, "", MIN_ISR, None) == invalid
    assert cluster.set_config(BROKER, "", MIN_ISR, "2") == 0


@pytest.mark.parametrize("shipped", [True, False])
def test_the_last_member_from_before_elr_is_remembered_when_it_restarts_uncleanly(
    shipped: bool,
) -> None:
    """Else no replica could ever be elected."""
    cluster = started(1, rules=replace(Rules.KAFKA_4_3, kept_member_is_forgotten=shipped))
    cluster.create("foo", (1,), configs={MIN_ISR: "1"})
    cluster.run(20_000)  # its session expires
    assert led(cluster.partition("foo")) == (-1, (1,))
    Update = m.UpdateFeaturesRequest.FeatureUpdateKey
    update = Update(feature="eligible.leader.replicas.version", max_version_level=1, upgrade_type=1)
    assert cluster.request(m.UpdateFeaturesRequest(feature_updates=(update,))).error_code == 0
    cluster.register(1, number=1)
    assert elr(cluster) == ((), (), () if shipped else (1,))
    cluster.heartbeat(1)
    assert cluster.partition("foo").leader == (-1 if shipped else 1)
    assert cluster.partition("foo").leader_recovery_state == (RECOVERED if shipped else RECOVERING)


@pytest.mark.parametrize("shipped", [True, False])
def test_nobody_stays_eligible_once_the_isr_is_as_large_as_it_must_be(shipped: bool) -> None:
    cluster = elr_cluster(3, 3, rules=replace(Rules.KAFKA_4_3, elr_outlives_min_isr=shipped))
    cluster.fence(1, 2, 0)
    assert elr(cluster) == ((), (0, 1, 2), (0,))
    cluster.set_config(TOPIC, "foo", MIN_ISR, "1")
    cluster.heartbeat(1)
    assert elr(cluster)[:2] == ((1,), (0, 2) if shipped else ())
