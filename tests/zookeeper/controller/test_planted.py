"""Faults of the mode on ZooKeeper: each is found by its rule, and without it nothing is.

Among them are the races that KIP-497 was written for: below IBP 2.7-IV2 the leader's write and the
controller's cross, and a notification can be lost. From it on there is one writer.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from minicluster.faults import Faults
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionRequest,
)
from minicluster.values import replace
from minicluster.zookeeper.broker.isr_writer import LINGER_MS, IsrWriter
from minicluster.zookeeper.controller.controller_state import AUTO_REBALANCE
from minicluster.zookeeper.server.operations import Delete
from minicluster.zookeeper.znodes import paths
from tests.zookeeper.controller.kit import Kit, alter

ORDERS = TopicPartition("orders", 0)


def leader_writes(
    kit: Kit, leader: int, isr: tuple[int, ...], leader_epoch: int, version: int
) -> IsrWriter:
    """A leader writes its ISR itself, and would notify of it when it is time."""
    writer = IsrWriter(leader, kit.now_ms, kit.faults)
    request = AlterPartitionRequest(
        topics=(
            AlterPartitionRequest.TopicData(
                topic_name="orders",
                partitions=(
                    AlterPartitionRequest.PartitionData(
                        partition_index=0,
                        leader_epoch=leader_epoch,
                        new_isr=isr,
                        partition_epoch=version,
                    ),
                ),
            ),
        )
    )
    kit.run(leader, writer.write(request, {}, {ORDERS: 1}, kit.now_ms))
    return writer


def another_controller_begins(faults: Faults) -> Kit:
    kit = Kit("3.9", faults)
    kit.start(1, 2)
    kit.create_topic("orders", (1, 2))
    kit.end(1)
    return kit


def a_deposed_controller_goes_on(faults: Faults) -> Kit:
    """Its session lives, and its watch is late."""
    kit = Kit("3.9", faults)
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3, 1))
    kit.end(2)
    kit.start(2)
    assert alter(kit, 3, (3, 1, 2), 1, 1) is ErrorCode.NONE
    kit.deaf = {1}
    kit.do(kit.admin, Delete(paths.CONTROLLER))
    kit.deliver()
    kit.perform(1, kit.machines[1].on_timer(AUTO_REBALANCE, kit.now_ms))
    return kit


def the_writes_of_leader_and_controller_cross(faults: Faults, level: str = "2.6") -> Kit:
    """The leader removes a slow follower while the controller removes a dead one."""
    kit = Kit(level, faults)
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3, 1))

    def leader_shrinks() -> None:
        kit.set_state(kit.sessions[2], "orders", replace(kit.state("orders"), isr=(2, 3)))

    kit.before_write = leader_shrinks
    kit.end(3)
    return kit


def a_member_is_dead(faults: Faults) -> Kit:
    kit = Kit("3.9", faults)
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3))
    kit.end(3)
    alter(kit, 2, (2, 3), 1, 1)
    return kit


def a_leader_writes_its_isr(faults: Faults) -> Kit:
    kit = Kit("2.6", faults)
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3))
    writer = leader_writes(kit, 2, (2,), 0, 0)
    kit.now_ms += LINGER_MS + 1
    kit.run(2, writer.propagate(kit.now_ms))
    kit.hits += writer.take_hits()
    kit.deliver()
    return kit


def a_leader_that_another_has_followed_writes(faults: Faults) -> Kit:
    """The controller has moved the leadership; the old leader has not seen it."""
    kit = Kit("2.6", faults)
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3))
    kit.end(2)
    kit.start(2)
    writer = leader_writes(kit, 2, (2,), 0, 0)
    kit.hits += writer.take_hits()
    return kit


def the_last_member_dies(faults: Faults) -> Kit:
    kit = Kit("3.9", faults)
    kit.start(1, 2)
    kit.create_topic("orders", (2,))
    kit.end(2)
    return kit


def a_replica_moves(faults: Faults) -> Kit:
    kit = Kit("3.9", faults)
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2,))
    kind = AlterPartitionReassignmentsRequest
    move = kind.ReassignablePartition(partition_index=0, replicas=(3, 2))
    topic = kind.ReassignableTopic(name="orders", partitions=(move,))
    kit.request(1, kind(topics=(topic,)), 0)
    return kit


def a_leader_dies_with_a_replica_outside(faults: Faults) -> Kit:
    kit = Kit("3.9", faults)
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3, 1))
    assert alter(kit, 2, (2, 1), 0, 0) is ErrorCode.NONE
    kit.end(2)
    return kit


STORIES: dict[str, tuple[Callable[[Faults], Kit], str, str]] = {
    "Z51": (another_controller_begins, "K9", "z51_topic_id_overwritten"),
    "Y01": (a_deposed_controller_goes_on, "K2", "y01_epoch_unchecked"),
    "Y02": (the_writes_of_leader_and_controller_cross, "K10", "y02_version_unchecked"),
    "Y03": (a_member_is_dead, "K11", "y03_dead_members_accepted"),
    "Y04": (a_leader_writes_its_isr, "K13", "y04_notification_lost"),
    "Y05": (a_leader_that_another_has_followed_writes, "K3", "y05_leader_write_unguarded"),
    "Y06": (the_last_member_dies, "K5", "y06_last_member_leaves"),
    "Y07": (a_replica_moves, "K12", "y07_reassignment_ends_early"),
    "Y08": (a_leader_dies_with_a_replica_outside, "K7", "y08_unclean_without_need"),
}


@pytest.mark.parametrize("zoo_id", STORIES)
def test_a_fault_is_found_by_its_rule(zoo_id: str) -> None:
    story, rule, name = STORIES[zoo_id]
    kit = story(Faults(**{name: True}))
    assert rule in kit.broken(after_ms=80_000)
    assert zoo_id in kit.hits


@pytest.mark.parametrize("zoo_id", STORIES)
def test_without_the_fault_nothing_is_found(zoo_id: str) -> None:
    story, rule, _ = STORIES[zoo_id]
    kit = story(Faults.NONE)
    assert kit.broken(after_ms=80_000 if rule == "K13" else 0) == set()
    assert kit.hits == []


def test_below_2_7_iv2_a_crossing_write_is_found_by_its_version_and_decided_again() -> None:
    kit = the_writes_of_leader_and_controller_cross(Faults.NONE)
    assert kit.state("orders").isr == (2,)
    assert any(line.get("error") == "BADVERSION" for line in kit.log.lines)


def test_below_2_7_iv2_the_brokers_have_the_old_isr_until_the_notification() -> None:
    kit = Kit("2.6")
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3))
    before = len(kit.sent)
    writer = leader_writes(kit, 2, (2,), 0, 0)
    kit.deliver()
    assert len(kit.sent) == before, "no broker has the new ISR yet"
    kit.now_ms += LINGER_MS + 1
    kit.run(2, writer.propagate(kit.now_ms))
    kit.deliver()
    sent_isrs = [one.request.topic_states[0].partition_states[0].isr for one in kit.sent[before:]]
    assert sent_isrs == [(2,)] * 3


def test_from_2_7_iv2_on_the_controller_is_the_only_writer_and_sends_it_to_all_at_once() -> None:
    kit = Kit("2.7-IV2")
    kit.start(1, 2, 3)
    kit.create_topic("orders", (2, 3))
    before = len(kit.sent)
    assert alter(kit, 2, (2,), 0, 0) is ErrorCode.NONE
    sent_isrs = [one.request.topic_states[0].partition_states[0].isr for one in kit.sent[before:]]
    assert sent_isrs == [(2,)] * 3
    assert alter(kit, 2, (2, 3), 0, 0) is ErrorCode.INVALID_UPDATE_VERSION
    assert all("multi" in line for line in kit.log.lines if line.get("path", "").endswith("state"))
