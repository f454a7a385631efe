"""Faults of a cluster on ZooKeeper: its controller, and leaders that write their ISR themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minicluster.metadata.image.partition import NO_LEADER
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.planting import plant
from minicluster.values import replace
from minicluster.zookeeper.broker import isr_writer
from minicluster.zookeeper.broker.isr_writer import IsrWriter
from minicluster.zookeeper.controller import (
    alter_partition,
    elections,
    reassignment,
    replica_states,
    topic_change,
    znode_access,
)
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.elections import Election
from minicluster.zookeeper.controller.leader_and_isr import (
    LeaderAndIsr,
    Leadership,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import ANY_VERSION, Operation, Request, SetData
from minicluster.zookeeper.znodes.topics import ReplicaAssignment, TopicAssignment


@plant(topic_change.take_assignments, "z51_topic_id_overwritten")
def _z51(
    original: Callable[..., Process[None]],
    state: ControllerState,
    assignments: Mapping[str, TopicAssignment],
) -> Process[None]:
    if not state.settings.protocol.topic_ids_supported:
        return original(state, assignments)
    for taken in assignments.values():
        if taken.topic_id is not None:
            state.hit("Z51")
    without = {topic: replace(taken, topic_id=None) for topic, taken in assignments.items()}
    return original(state, without)


@plant(znode_access.checked, "y01_epoch_unchecked")
def _y01(original: Callable[..., Request], state: ControllerState, operation: Operation) -> Request:
    state.hit("Y01")
    return operation


@plant(znode_access.state_write, "y02_version_unchecked")
def _y02(original: Callable[..., SetData], state: ControllerState, *args: Any) -> SetData:
    state.hit("Y02")
    return replace(original(state, *args), version=ANY_VERSION)


@plant(alter_partition.members_eligible, "y03_dead_members_accepted")
def _y03(original: Callable[..., bool], state: ControllerState, proposal: LeaderAndIsr) -> bool:
    if not original(state, proposal):
        state.hit("Y03")
    return True


@plant(replica_states.without_member, "y06_last_member_leaves")
def _y06(
    original: Callable[..., LeaderAndIsr],
    state: ControllerState,
    current: LeaderAndIsr,
    broker: int,
) -> LeaderAndIsr:
    decided = original(state, current, broker)
    if decided.isr == (broker,):
        state.hit("Y06")
        return replace(decided, leader=NO_LEADER, isr=())
    return decided


@plant(reassignment.targets_in_sync, "y07_reassignment_ends_early")
def _y07(
    original: Callable[..., bool],
    state: ControllerState,
    leadership: Leadership,
    assignment: ReplicaAssignment,
) -> bool:
    if not original(state, leadership, assignment):
        state.hit("Y07")
    return True


@plant(elections.elect_offline, "y08_unclean_without_need")
def _y08(
    original: Callable[..., Election],
    state: ControllerState,
    partition: TopicPartition,
    current: LeaderAndIsr,
    unclean: bool,
) -> Any:
    replicas = state.context.assignment(partition).replicas
    outside = [
        replica
        for replica in state.context.online(replicas, partition)
        if replica not in current.isr
    ]
    if not outside:
        return original(state, partition, current, unclean)
    state.hit("Y08")
    elected = current.elect(outside[0], outside[:1])
    return Election(elected, state.context.online(replicas, partition))


# Leaders that write their ISR.


@plant(IsrWriter.propagate, "y04_notification_lost")
def _y04(original: Callable[..., Process[None]], writer: IsrWriter, now_ms: int) -> Process[None]:
    for _ in original(writer, now_ms):  # the writer takes what it yields for sent
        writer.hit("Y04")
    yield from ()


@plant(isr_writer.state_write, "y05_leader_write_unguarded")
def _y05(original: Callable[..., SetData], writer: IsrWriter, *args: Any) -> SetData:
    writer.hit("Y05")
    return replace(original(writer, *args), version=ANY_VERSION)
