"""The state machine of partitions: new, online, offline, non-existent.

    NON_EXISTENT ──▶ NEW ──first leader──▶ ONLINE ◀──election──▶ OFFLINE ──deletion──▶ NON_EXISTENT

A partition is online while it has a leader that lives, offline without one. ONLINE to ONLINE is an
election too: the leader changes while there is one. The state is this controller's own, in memory;
what lasts is the state znode, which is written first. Where that fails the state stays, and the
next event or the next controller tries again.

Source:  kafka.controller.ZkPartitionStateMachine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minicluster.controller.settings import UNCLEAN_ELECTION
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.zookeeper.controller.context import PartitionStatus
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.elections import Election, Strategy, elect
from minicluster.zookeeper.controller.errors import (
    FAILURES,
    StateChangeFailed,
    ZooKeeperFailure,
)
from minicluster.zookeeper.controller.leader_and_isr import LeaderAndIsr, Leadership
from minicluster.zookeeper.controller.request_batch import RequestBatch
from minicluster.zookeeper.controller.znode_access import (
    create_states,
    read_all,
    read_states,
    write_states,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.topics import decode_config

Outcomes = dict[TopicPartition, LeaderAndIsr | Exception]
"""The new state of each partition that was to get a leader, or why it got none."""

_PRESENT = (PartitionStatus.NEW, PartitionStatus.ONLINE, PartitionStatus.OFFLINE)
_VALID_BEFORE = {
    PartitionStatus.NEW: (PartitionStatus.NON_EXISTENT,),
    PartitionStatus.ONLINE: _PRESENT,
    PartitionStatus.OFFLINE: _PRESENT,
    PartitionStatus.NON_EXISTENT: (PartitionStatus.OFFLINE,),
}


def initialize_partition_states(state: ControllerState) -> None:
    """The states at fail-over: online with a leader that is, offline without, new without state."""
    context = state.context
    for partition in context.partitions():
        leadership = context.leaderships.get(partition)
        if leadership is None:
            context.partition_states[partition] = PartitionStatus.NEW
        elif context.is_online(leadership.leader_and_isr.leader, partition):
            context.partition_states[partition] = PartitionStatus.ONLINE
        else:
            context.partition_states[partition] = PartitionStatus.OFFLINE


def bring_online(state: ControllerState, topic: str | None = None) -> Process[Outcomes]:
    """Elect leaders of all new and offline partitions, or of those of one topic."""
    waiting = state.context.partitions_in((PartitionStatus.OFFLINE, PartitionStatus.NEW), topic)
    partitions = [p for p in waiting if not state.context.is_queued_for_deletion(p.topic)]
    outcomes = yield from change_partitions(
        state, partitions, PartitionStatus.ONLINE, Strategy.OFFLINE
    )
    return outcomes


def change_partitions(
    state: ControllerState,
    partitions: Sequence[TopicPartition],
    target: PartitionStatus,
    strategy: Strategy = Strategy.OFFLINE,
) -> Process[Outcomes]:
    """Bring partitions into a state, and notify the brokers.

    Errors:  ControllerMoved; any other failure is the outcome of its partitions.
    """
    if not partitions:
        return {}
    batch = RequestBatch(state)
    try:
        outcomes = yield from _change(state, batch, partitions, target, strategy)
    except FAILURES as failure:
        return dict.fromkeys(partitions, failure)
    batch.send()
    return outcomes


def _change(
    state: ControllerState,
    batch: RequestBatch,
    partitions: Sequence[TopicPartition],
    target: PartitionStatus,
    strategy: Strategy,
) -> Process[Outcomes]:
    states = state.context.partition_states
    for partition in partitions:
        states.setdefault(partition, PartitionStatus.NON_EXISTENT)
    valid = [p for p in partitions if states[p] in _VALID_BEFORE[target]]
    if target is not PartitionStatus.ONLINE:
        states.update(dict.fromkeys(valid, target))
        return {}
    new = [p for p in valid if states[p] is PartitionStatus.NEW]
    existing = [p for p in valid if states[p] is not PartitionStatus.NEW]
    if new:
        yield from _initialize(state, batch, new)
    outcomes: Outcomes = {}
    remaining: Sequence[TopicPartition] = existing
    while remaining:
        remaining = yield from _elect(state, batch, remaining, strategy, outcomes)
    for partition, outcome in outcomes.items():
        if isinstance(outcome, LeaderAndIsr):
            states[partition] = PartitionStatus.ONLINE
    return outcomes


def _initialize(
    state: ControllerState, batch: RequestBatch, partitions: Sequence[TopicPartition]
) -> Process[None]:
    """The first leader and ISR: all replicas that are online, in the order of the assignment."""
    context = state.context
    leaders = {}
    for partition in partitions:
        live = context.online(context.assignment(partition).replicas, partition)
        if live:
            leaders[partition] = LeaderAndIsr(leader=live[0], isr=live)
    created = yield from create_states(state, leaders)
    for partition, leader in leaders.items():
        if created[partition]:
            leadership = Leadership(leader, context.epoch)
            context.leaderships[partition] = leadership
            assignment = context.assignment(partition)
            batch.add_leader_and_isr(leader.isr, partition, leadership, assignment, is_new=True)
            context.partition_states[partition] = PartitionStatus.ONLINE


def _elect(
    state: ControllerState,
    batch: RequestBatch,
    partitions: Sequence[TopicPartition],
    strategy: Strategy,
    outcomes: Outcomes,
) -> Process[Sequence[TopicPartition]]:
    """Elect leaders once; what another writer was faster with is returned, to be tried again."""
    context = state.context
    states = yield from read_states(state, partitions)
    current: dict[TopicPartition, LeaderAndIsr] = {}
    for partition, leadership in states.items():
        if not isinstance(leadership, Leadership):
            outcomes[partition] = leadership or StateChangeFailed(
                f"LeaderAndIsr information doesn't exist for partition {partition} in "
                f"{context.partition_states[partition].value} state"
            )
        elif leadership.controller_epoch > context.epoch:
            outcomes[partition] = StateChangeFailed(
                f"Aborted leader election for partition {partition} since the LeaderAndIsr path "
                "was already written by another controller. This probably means that the current "
                f"controller {state.settings.broker_id} went through a soft failure and another "
                f"controller was elected with epoch {leadership.controller_epoch}."
            )
        else:
            current[partition] = leadership.leader_and_isr
    unclean = yield from _unclean(state, current, strategy)
    elections: dict[TopicPartition, Election] = {}
    updates: dict[TopicPartition, LeaderAndIsr] = {}
    for partition, leader_and_isr in current.items():
        allowed = unclean.get(partition, False)
        if isinstance(allowed, Exception):
            outcomes[partition] = allowed
            continue
        election = elect(state, partition, leader_and_isr, strategy, unclean=allowed)
        if election.leader_and_isr is None:
            outcomes[partition] = StateChangeFailed(
                f"Failed to elect leader for partition {partition} under strategy {strategy.value}"
            )
        else:
            elections[partition], updates[partition] = election, election.leader_and_isr
    result = yield from write_states(state, updates)
    outcomes.update(result.failed)
    outcomes.update(result.written)
    for partition, written in result.written.items():
        leadership = Leadership(written, context.epoch)
        context.leaderships[partition] = leadership
        batch.add_leader_and_isr(
            elections[partition].recipients,
            partition,
            leadership,
            context.assignment(partition),
            is_new=False,
        )
    return result.retry


def _unclean(
    state: ControllerState, current: dict[TopicPartition, LeaderAndIsr], strategy: Strategy
) -> Process[dict[TopicPartition, bool | Exception]]:
    """Which partitions may get an unclean leader: by their topic's config, or by the client."""
    if strategy not in (Strategy.OFFLINE, Strategy.UNCLEAN_BY_CLIENT):
        return {}
    without_live = [
        partition
        for partition, leader_and_isr in current.items()
        if not state.context.online(leader_and_isr.isr, partition)
    ]
    if strategy is Strategy.UNCLEAN_BY_CLIENT:
        return dict.fromkeys(without_live, True)
    by_topic = yield from _unclean_by_config(state, dict.fromkeys(p.topic for p in without_live))
    return {partition: by_topic[partition.topic] for partition in without_live}


def _unclean_by_config(
    state: ControllerState, topics: Iterable[str]
) -> Process[dict[str, bool | Exception]]:
    names = list(topics)
    results = yield from read_all(state, [paths.topic_config(name) for name in names])
    allowed: dict[str, bool | Exception] = {}
    for name, result in zip(names, results, strict=True):
        if result.ok or result.code is Code.NONODE:
            text = decode_config(result.data).get(UNCLEAN_ELECTION)
            default = state.unclean_by_default
            allowed[name] = default if text is None else text.strip().lower() == "true"
        else:
            allowed[name] = ZooKeeperFailure(result.code)
    return allowed
