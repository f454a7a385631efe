"""Brokers that come, go, or come back before their absence was seen.

The children of /brokers/ids are compared with those that were there before. A broker whose znode
has another czxid has *bounced*: it was restarted between two looks. It must be treated as gone
first, and only then as new; otherwise it would stay leader and in ISRs by what its last process
held, and would never be sent its replicas.

Source:  kafka.controller.KafkaController.processBrokerChange, onBrokerStartup, onBrokerFailure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from minicluster.zookeeper.controller.context import (
    PartitionStatus,
    Replica,
    ReplicaStatus,
)
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.effects import CloseChannel, OpenChannel
from minicluster.zookeeper.controller.leader_and_isr import LeaderAndIsr
from minicluster.zookeeper.controller.partition_states import (
    bring_online,
    change_partitions,
)
from minicluster.zookeeper.controller.reassignment import resume_reassignments
from minicluster.zookeeper.controller.replica_states import change_replicas
from minicluster.zookeeper.controller.request_batch import send_metadata
from minicluster.zookeeper.controller.topic_deletion import (
    fail_replica_deletions,
    resume_deletion_of,
)
from minicluster.zookeeper.controller.znode_access import (
    expect_ok,
    read_brokers,
    read_data,
    watch_node,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import BrokerRegistration


def process_broker_change(state: ControllerState) -> Process[None]:
    """Compare the registered brokers with those that were live: new, bounced, dead."""
    if not state.is_active:
        return
    context = state.context
    registered = yield from read_brokers(state)
    new = sorted(registered.keys() - context.broker_epochs.keys())
    dead = sorted(context.broker_epochs.keys() - registered.keys())
    bounced = [
        broker
        for broker in sorted(registered.keys() & context.broker_epochs.keys())
        if registered[broker][1] > context.broker_epochs[broker]  # it has registered again since
    ]
    state.effects += [OpenChannel(broker) for broker in new]
    for broker in bounced:
        state.effects += [CloseChannel(broker), OpenChannel(broker)]
    state.effects += [CloseChannel(broker) for broker in dead]
    if new:
        context.add_brokers({broker: registered[broker] for broker in new})
        yield from _start(state, new)
    if bounced:
        context.remove_brokers(bounced)
        yield from _fail(state, bounced)
        context.add_brokers({broker: registered[broker] for broker in bounced})
        yield from _start(state, bounced)
    if dead:
        context.remove_brokers(dead)
        yield from _fail(state, dead)


def _start(state: ControllerState, brokers: Sequence[int]) -> Process[None]:
    context = state.context
    for broker in brokers:
        context.offline_dirs.pop(broker, None)
    others = [broker for broker in context.broker_epochs if broker not in brokers]
    send_metadata(state, others)
    send_metadata(state, brokers, context.partitions_with_leaders())
    replicas = context.replicas_on(brokers)
    yield from change_replicas(state, replicas, ReplicaStatus.ONLINE)
    yield from bring_online(state)
    yield from resume_reassignments(
        state, lambda _, assignment: any(target in brokers for target in assignment.target)
    )
    topics = {partition.topic for partition, _ in replicas}
    yield from resume_deletion_of(state, sorted(topics))
    for broker in brokers:
        yield from watch_node(state, paths.broker_id(broker))


def _fail(state: ControllerState, brokers: Sequence[int]) -> Process[None]:
    context = state.context
    for broker in brokers:
        context.offline_dirs.pop(broker, None)
        context.shutting_down.discard(broker)
    yield from take_replicas_offline(state, context.replicas_on(brokers))
    state.forget_nodes(paths.broker_id(broker) for broker in brokers)


def take_replicas_offline(state: ControllerState, replicas: Iterable[Replica]) -> Process[None]:
    """Elect other leaders where these lead, and remove the replicas from their ISRs."""
    context = state.context
    deleted = [r for r in replicas if context.is_queued_for_deletion(r[0].topic)]
    staying = [r for r in replicas if not context.is_queued_for_deletion(r[0].topic)]
    leaderless = context.partitions_with_offline_leader()
    yield from change_partitions(state, leaderless, PartitionStatus.OFFLINE)
    outcomes = yield from bring_online(state)
    yield from change_replicas(state, staying, ReplicaStatus.OFFLINE)
    if deleted:
        yield from fail_replica_deletions(state, deleted)
    if not staying and not any(isinstance(outcome, LeaderAndIsr) for outcome in outcomes.values()):
        send_metadata(state, context.broker_epochs)  # else the brokers have learned who is live


def process_broker_modification(state: ControllerState, broker: int) -> Process[None]:
    """Other endpoints or features of a live broker."""
    if not state.is_active:
        return
    result = yield from read_data(state, paths.broker_id(broker))
    known = state.context.live_brokers.get(broker)
    if not expect_ok(result, Code.NONODE).ok or known is None:
        return
    registered = BrokerRegistration.decode(result.data)
    if (registered.endpoints, registered.features) != (known.endpoints, known.features):
        state.context.live_brokers[broker] = registered
        send_metadata(state, state.context.broker_epochs)
