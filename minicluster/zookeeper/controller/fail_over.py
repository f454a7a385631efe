"""Election of the controller, loading of its context, and resignation.

The broker that creates /controller, an ephemeral znode, is the controller as long as its session
lives. That alone is not safe: a controller that was paused does not know that its session is over,
and would continue to write. So /controller and the next /controller_epoch are written in one multi,
and every write of a controller checks the version of /controller_epoch: after the next election the
old one's fail (KAFKA-6082). Brokers in turn reject control requests of a lower controller epoch.

A new controller knows nothing. It reads the tree, sets a watch on all that can change, and then
acts on the difference between what it reads and what should be: partitions whose leader is gone,
topics to delete, reassignments under way. So an event that nobody has seen, since there was no
controller, is not lost.

Source:  kafka.controller.KafkaController.elect, onControllerFailover, maybeResign;
         kafka.zk.KafkaZkClient.registerControllerAndIncrementControllerEpoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.effects import CancelTimer
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol.errors import ProtocolError
from minicluster.zookeeper.controller.context import Context
from minicluster.zookeeper.controller.controller_state import (
    AUTO_REBALANCE,
    NO_ACTIVE_CONTROLLER,
    ControllerState,
)
from minicluster.zookeeper.controller.effects import CloseChannel, OpenChannel
from minicluster.zookeeper.controller.errors import FAILURES, ControllerMoved
from minicluster.zookeeper.controller.partition_states import (
    bring_online,
    initialize_partition_states,
)
from minicluster.zookeeper.controller.preferred_election import (
    AUTO_REBALANCE_DELAY_MS,
    Trigger,
    elect_replicas,
)
from minicluster.zookeeper.controller.reassignment import (
    process_zk_reassignment,
    resume_reassignments,
)
from minicluster.zookeeper.controller.replica_states import start_replica_states
from minicluster.zookeeper.controller.request_batch import send_metadata
from minicluster.zookeeper.controller.topic_change import take_assignments
from minicluster.zookeeper.controller.topic_deletion import resume_deletions
from minicluster.zookeeper.controller.znode_access import (
    children_of,
    decoded,
    delete_all,
    expect_ok,
    read_assignments,
    read_brokers,
    read_controller,
    read_data,
    read_known_states,
    watch_node,
    write_all,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code, Create, Delete, Multi, Operation, SetData
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.cluster import (
    decode_controller_epoch,
    encode_controller,
    encode_controller_epoch,
    encode_features,
)
from minicluster.zookeeper.znodes.json_text import decode_object
from minicluster.zookeeper.znodes.notifications import decode_partitions

NOTIFIED = (
    paths.BROKER_IDS,
    paths.TOPICS,
    paths.DELETE_TOPICS,
    paths.LOG_DIR_EVENT_NOTIFICATION,
    paths.ISR_CHANGE_NOTIFICATION,
)
"""The znodes whose children the controller watches."""


def process_startup(state: ControllerState) -> Process[None]:
    """Watch the znode of the controller, and try to become the controller."""
    yield from watch_node(state, paths.CONTROLLER)
    yield from _elect(state)


def process_reelect(state: ControllerState) -> Process[None]:
    """There is no controller: try to become the controller."""
    yield from process_controller_change(state)
    yield from _elect(state)


def process_controller_change(state: ControllerState) -> Process[None]:
    """Look who the controller is; resign if it is another broker."""
    was_active = state.is_active
    yield from watch_node(state, paths.CONTROLLER)
    controller = yield from read_controller(state)
    state.active_controller = NO_ACTIVE_CONTROLLER if controller is None else controller
    if was_active and not state.is_active:
        resign(state)


def process_expire(state: ControllerState) -> None:
    """The session is gone, and /controller with it."""
    state.active_controller = NO_ACTIVE_CONTROLLER
    resign(state)


def resign(state: ControllerState) -> None:
    """Forget the cluster, and the channels to the brokers."""
    of_controller = {paths.CONTROLLER}
    state.forget_nodes([path for path in state.watched_nodes if path not in of_controller])
    state.watched_children.clear()
    state.effects.append(CancelTimer(AUTO_REBALANCE))
    state.effects += [CloseChannel(broker) for broker in state.context.broker_epochs]
    state.context = Context()


def trigger_controller_move(state: ControllerState) -> Process[None]:
    """Fail-over has failed: resign, and let the next broker try."""
    controller = yield from read_controller(state)
    state.active_controller = NO_ACTIVE_CONTROLLER if controller is None else controller
    if not state.is_active:
        return
    version = state.context.epoch_version
    state.active_controller = NO_ACTIVE_CONTROLLER
    resign(state)
    state.context.epoch_version = version  # by which the deletion is checked, as any write
    try:
        yield from write_all(state, [Delete(paths.CONTROLLER)])
    except ControllerMoved:
        return


def _elect(state: ControllerState) -> Process[None]:
    controller = yield from read_controller(state)
    state.active_controller = NO_ACTIVE_CONTROLLER if controller is None else controller
    if controller is not None:
        return
    try:
        yield from _register(state)
        yield from _fail_over(state)
    except ControllerMoved:
        yield from process_controller_change(state)
    except FAILURES:
        yield from trigger_controller_move(state)


def _register(state: ControllerState) -> Process[None]:
    """Create /controller and raise /controller_epoch together: one candidate can."""
    result = yield from read_data(state, paths.CONTROLLER_EPOCH)
    if not expect_ok(result, Code.NONODE).ok:
        yield (Create(paths.CONTROLLER_EPOCH, encode_controller_epoch(0)),)
        result = expect_ok((yield from read_data(state, paths.CONTROLLER_EPOCH)))
    data, stat = result.data_and_stat
    epoch = decode_controller_epoch(data) + 1
    znode = encode_controller(
        state.settings.broker_id,
        state.now_ms,
        with_kraft_epoch=state.settings.release.kraft_epoch_in_controller_znode,
    )
    (registered,) = yield (
        Multi((Create(paths.CONTROLLER, znode, ephemeral=True), _raise(epoch, stat.version))),
    )
    if registered.code in (Code.NODEEXISTS, Code.BADVERSION):
        version = yield from _version_of_own_epoch(state, epoch)
    else:
        stat_of_epoch = expect_ok(registered).parts[1].stat
        assert stat_of_epoch is not None, registered
        version = stat_of_epoch.version
    state.context.epoch, state.context.epoch_version = epoch, version
    state.active_controller = state.settings.broker_id


def _version_of_own_epoch(state: ControllerState, epoch: int) -> Process[int]:
    """The version of /controller_epoch, if it is this broker that has become the controller.

    The client of ZooKeeper sends a write again whose response was lost: the second one fails.

    Errors:  ControllerMoved if another broker has.
    """
    if (yield from read_controller(state)) == state.settings.broker_id:
        result = expect_ok((yield from read_data(state, paths.CONTROLLER_EPOCH)))
        data, stat = result.data_and_stat
        if decode_controller_epoch(data) == epoch:
            return stat.version
    raise ControllerMoved("another broker is the controller")


def _raise(epoch: int, version: int) -> Operation:
    """The write of the next controller epoch, if no other candidate was faster."""
    return SetData(paths.CONTROLLER_EPOCH, encode_controller_epoch(epoch), version)


def _fail_over(state: ControllerState) -> Process[None]:
    context = state.context
    yield from _set_up_features(state)
    # Watches and notifications first, and then the state: what changes while it is read, and what
    # the notifications were about, is either in what is read or brings an event.
    state.watched_children.update(dict.fromkeys(NOTIFIED))
    yield from watch_node(state, paths.PREFERRED_REPLICA_ELECTION)
    yield from watch_node(state, paths.REASSIGN_PARTITIONS)
    for of in (paths.LOG_DIR_EVENT_NOTIFICATION, paths.ISR_CHANGE_NOTIFICATION):
        names = yield from children_of(state, of)
        yield from delete_all(state, [f"{of}/{name}" for name in names])
    yield from _load(state)
    to_delete = yield from children_of(state, paths.DELETE_TOPICS)
    yield from _load_deletions(state, to_delete)
    # A broker takes LeaderAndIsr only once it knows which brokers live.
    send_metadata(state, context.broker_epochs)
    yield from start_replica_states(state)
    initialize_partition_states(state)
    yield from bring_online(state)
    resumed = yield from process_zk_reassignment(state)
    yield from resume_reassignments(state, lambda partition, _: partition not in resumed)
    yield from resume_deletions(state)
    pending = yield from _pending_preferred_elections(state)
    yield from elect_replicas(state, pending, Trigger.ZNODE)
    if state.settings.auto_leader_rebalance_enable:
        state.schedule_auto_rebalance(AUTO_REBALANCE_DELAY_MS)


def _set_up_features(state: ControllerState) -> Process[None]:
    """/feature: enabled from IBP 2.7 on, else disabled (KIP-584)."""
    protocol = state.settings.protocol
    result = yield from read_data(state, paths.FEATURE)
    enabled = protocol.features_supported
    features: dict[str, int] = {}
    if expect_ok(result, Code.NONODE).ok and enabled:
        finalized = decode_object(result.data, "features")
        if finalized.get("status") == 1:
            features = _levels(finalized)
    wanted = encode_features(protocol.feature_znode_version, enabled=enabled, features=features)
    if not result.ok:
        yield (Create(paths.FEATURE, wanted),)
        yield from read_data(state, paths.FEATURE)
    elif result.data != wanted:
        yield (SetData(paths.FEATURE, wanted),)


def _levels(finalized: Mapping[str, Any]) -> dict[str, int]:
    """The level of each feature in /feature."""
    try:
        return {
            name: int(levels["max_version_level"]) for name, levels in finalized["features"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise ProtocolError("features", "features", f"bad value: {error!r}") from error


def _load(state: ControllerState) -> Process[None]:
    context = state.context
    context.add_brokers((yield from read_brokers(state)))
    topics = yield from children_of(state, paths.TOPICS)
    context.topics = dict.fromkeys(topics)
    state.watch_nodes(paths.topic(topic) for topic in topics)
    assignments = yield from read_assignments(state, topics)
    yield from take_assignments(state, assignments)
    context.reassigned.update(
        dict.fromkeys(p for p in context.partitions() if context.assignment(p).is_being_reassigned)
    )
    for broker in context.broker_epochs:
        yield from watch_node(state, paths.broker_id(broker))
    context.leaderships.update((yield from read_known_states(state, context.partitions())))
    state.effects += [OpenChannel(broker) for broker in context.broker_epochs]


def _load_deletions(state: ControllerState, topics: tuple[str, ...]) -> Process[None]:
    context = state.context
    if not state.settings.delete_topic_enable:
        yield from delete_all(state, [paths.delete_topic(topic) for topic in topics])
        return
    context.topics_to_delete.update(dict.fromkeys(topics))
    for topic in topics:
        replicas = context.replicas_of(context.partitions_of(topic))
        offline = any(not context.is_online(broker, p) for p, broker in replicas)
        reassigned = any(p.topic == topic for p in context.reassigned)
        if offline or reassigned:
            context.ineligible_for_deletion.add(topic)


def _pending_preferred_elections(state: ControllerState) -> Process[list[TopicPartition]]:
    context = state.context
    result = yield from read_data(state, paths.PREFERRED_REPLICA_ELECTION)
    pending = []
    for partition in decoded(decode_partitions, expect_ok(result, Code.NONODE), ()):
        replicas = context.assignment(partition).replicas
        deleted = not replicas or context.is_queued_for_deletion(partition.topic)
        if not deleted:
            leader = context.leadership(partition).leader_and_isr.leader
            if leader != replicas[0]:
                pending.append(partition)
    return pending
