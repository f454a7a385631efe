"""The state machine of replicas: new, online, offline, and on the way to their deletion.

    NON_EXISTENT ─▶ NEW ─▶ ONLINE ◀─▶ OFFLINE ─▶ DELETION_STARTED ─▶ DELETION_SUCCESSFUL
                                         ▲              │ the broker is gone, or cannot delete
                                         └─ DELETION_INELIGIBLE ◀─┘

Going OFFLINE takes the replica out of the ISR, unless it is the last member, and stops its fetches;
its log stays. DELETION_STARTED sends the StopReplica that deletes the log, and the broker's
response decides what follows. A replica that is deleted is NON_EXISTENT again.

Source:  kafka.controller.ZkReplicaStateMachine.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.java_order import int_hash, scala_trie_order
from minicluster.metadata.image.partition import NO_LEADER
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.planting import step
from minicluster.zookeeper.controller.context import Replica, ReplicaStatus
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.errors import FAILURES
from minicluster.zookeeper.controller.leader_and_isr import (
    LeaderAndIsr,
    Leadership,
)
from minicluster.zookeeper.controller.request_batch import RequestBatch
from minicluster.zookeeper.controller.znode_access import read_states, write_states
from minicluster.zookeeper.process import Process

_PRESENT = (
    ReplicaStatus.NEW,
    ReplicaStatus.ONLINE,
    ReplicaStatus.OFFLINE,
    ReplicaStatus.DELETION_INELIGIBLE,
)
_VALID_BEFORE = {
    ReplicaStatus.NEW: (ReplicaStatus.NON_EXISTENT,),
    ReplicaStatus.ONLINE: _PRESENT,
    ReplicaStatus.OFFLINE: _PRESENT,
    ReplicaStatus.DELETION_STARTED: (ReplicaStatus.OFFLINE,),
    ReplicaStatus.DELETION_SUCCESSFUL: (ReplicaStatus.DELETION_STARTED,),
    ReplicaStatus.DELETION_INELIGIBLE: (ReplicaStatus.OFFLINE, ReplicaStatus.DELETION_STARTED),
    ReplicaStatus.NON_EXISTENT: (ReplicaStatus.DELETION_SUCCESSFUL,),
}


def start_replica_states(state: ControllerState) -> Process[None]:
    """The states at fail-over: replicas that are online, then those that are not."""
    context = state.context
    replicas = context.replicas_of(context.partitions())
    online = [r for r in replicas if context.is_online(r[1], r[0])]
    offline = [r for r in replicas if not context.is_online(r[1], r[0])]
    context.replica_states.update(dict.fromkeys(online, ReplicaStatus.ONLINE))
    # A replica of a topic to be deleted fails to be deleted while its broker is dead.
    context.replica_states.update(dict.fromkeys(offline, ReplicaStatus.DELETION_INELIGIBLE))
    yield from change_replicas(state, online, ReplicaStatus.ONLINE)
    yield from change_replicas(state, offline, ReplicaStatus.OFFLINE)


def change_replicas(
    state: ControllerState, replicas: Sequence[Replica], target: ReplicaStatus
) -> Process[None]:
    """Bring replicas into a state, broker by broker, and notify the brokers.

    The brokers come in the order of the Scala map of their replicas: 5 before 1, but 1 before 2.

    Errors:  ControllerMoved; any other failure leaves the replicas where they are.
    """
    if not replicas:
        return
    batch = RequestBatch(state)
    try:
        for broker in scala_trie_order((broker for _, broker in replicas), int_hash):
            partitions = [partition for partition, on in replicas if on == broker]
            yield from _change(state, batch, broker, partitions, target)
    except FAILURES:
        return
    batch.send()


def _change(
    state: ControllerState,
    batch: RequestBatch,
    broker: int,
    partitions: Sequence[TopicPartition],
    target: ReplicaStatus,
) -> Process[None]:
    context, states = state.context, state.context.replica_states
    for partition in partitions:
        states.setdefault((partition, broker), ReplicaStatus.NON_EXISTENT)
    valid = [p for p in partitions if states[p, broker] in _VALID_BEFORE[target]]
    if target is ReplicaStatus.OFFLINE:
        yield from _take_offline(state, batch, broker, valid)
        return
    for partition in valid:
        if target is ReplicaStatus.NEW:
            if not _start_new(state, batch, broker, partition):
                continue
        elif target is ReplicaStatus.ONLINE:
            _bring_online(state, batch, broker, partition)
        elif target is ReplicaStatus.DELETION_STARTED:
            batch.add_stop_replica(broker, partition, delete=True)
        elif target is ReplicaStatus.NON_EXISTENT:
            context.assign(partition, context.assignment(partition).remove(broker))
            del states[partition, broker]
            continue
        states[partition, broker] = target


def _start_new(
    state: ControllerState, batch: RequestBatch, broker: int, partition: TopicPartition
) -> bool:
    context = state.context
    leadership = context.leaderships.get(partition)
    if leadership is None:
        return True
    if leadership.leader_and_isr.leader == broker:
        return False  # a leader cannot be new
    assignment = context.assignment(partition)
    batch.add_leader_and_isr((broker,), partition, leadership, assignment, is_new=True)
    return True


def _bring_online(
    state: ControllerState, batch: RequestBatch, broker: int, partition: TopicPartition
) -> None:
    context = state.context
    if context.replica_states[partition, broker] is ReplicaStatus.NEW:
        return  # it has got LeaderAndIsr when it became new
    leadership = context.leaderships.get(partition)
    if leadership is not None:
        assignment = context.assignment(partition)
        batch.add_leader_and_isr((broker,), partition, leadership, assignment, is_new=False)


def _take_offline(
    state: ControllerState, batch: RequestBatch, broker: int, partitions: Sequence[TopicPartition]
) -> Process[None]:
    """Stop replicas and remove them from their ISRs; the others learn the new ISR."""
    context = state.context
    for partition in partitions:
        batch.add_stop_replica(broker, partition, delete=False)
    with_leadership = [p for p in partitions if p in context.leaderships]
    removed: dict[TopicPartition, Leadership] = {}
    remaining: Sequence[TopicPartition] = with_leadership
    while remaining:
        remaining = yield from _remove_from_isr(state, broker, remaining, removed)
    for partition, leadership in removed.items():
        # Brokers would start what they are to delete.
        if not context.is_queued_for_deletion(partition.topic):
            assignment = context.assignment(partition)
            others = [replica for replica in assignment.replicas if replica != broker]
            batch.add_leader_and_isr(others, partition, leadership, assignment, is_new=False)
        context.replica_states[partition, broker] = ReplicaStatus.OFFLINE
    for partition in partitions:
        if partition not in context.leaderships:
            batch.add_metadata(context.broker_epochs, (partition,))
            context.replica_states[partition, broker] = ReplicaStatus.OFFLINE


def _remove_from_isr(
    state: ControllerState,
    broker: int,
    partitions: Sequence[TopicPartition],
    removed: dict[TopicPartition, Leadership],
) -> Process[Sequence[TopicPartition]]:
    """Remove a broker from ISRs once; what another writer was faster with is returned."""
    context = state.context
    states = yield from read_states(state, partitions)
    updates, unchanged = {}, {}
    for partition, leadership in states.items():
        if not isinstance(leadership, Leadership) or leadership.controller_epoch > context.epoch:
            continue  # without a state, or written by a newer controller
        if broker in leadership.leader_and_isr.isr:
            updates[partition] = without_member(state, leadership.leader_and_isr, broker)
        else:
            unchanged[partition] = leadership.leader_and_isr
    result = yield from write_states(state, updates)
    for partition, leader_and_isr in (unchanged | dict(result.written)).items():
        leadership = Leadership(leader_and_isr, context.epoch)
        context.leaderships[partition] = removed[partition] = leadership
    return result.retry


@step
def without_member(state: ControllerState, current: LeaderAndIsr, broker: int) -> LeaderAndIsr:
    """The state without a member: the last one stays in the ISR, a leader leaves none behind."""
    leader = NO_LEADER if current.leader == broker else current.leader
    if len(current.isr) == 1:
        return current.elect(leader)
    return current.elect(leader, [member for member in current.isr if member != broker])
