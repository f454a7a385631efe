"""Notifications of brokers: ISRs that leaders have written, lost log directories, responses to
control requests.

Source:  KIP-112; kafka.controller.KafkaController.processIsrChangeNotification,
         processLogDirEventNotification, processLeaderAndIsrResponseReceived,
         processTopicDeletionStopReplicaResponseReceived.
"""

from __future__ import annotations

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    StopReplicaRequest,
    StopReplicaResponse,
)
from minicluster.zookeeper.controller.broker_change import take_replicas_offline
from minicluster.zookeeper.controller.context import ReplicaStatus
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.controller.errors import FAILURES
from minicluster.zookeeper.controller.events import ControlResponse
from minicluster.zookeeper.controller.partition_states import bring_online
from minicluster.zookeeper.controller.reassignment import complete_if_caught_up
from minicluster.zookeeper.controller.replica_states import change_replicas
from minicluster.zookeeper.controller.request_batch import send_metadata
from minicluster.zookeeper.controller.topic_deletion import (
    complete_replica_deletions,
    fail_replica_deletions,
)
from minicluster.zookeeper.controller.znode_access import (
    children_of,
    decoded,
    delete_all,
    read_all,
    read_known_states,
)
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.znodes import paths
from minicluster.zookeeper.znodes.notifications import decode_log_dir_event, decode_partitions


def process_isr_change_notification(state: ControllerState) -> Process[None]:
    """Leaders have written ISRs: read them, and notify the brokers."""
    if not state.is_active:
        return
    notified = yield from _notifications(state, paths.ISR_CHANGE_NOTIFICATION)
    try:
        results = yield from read_all(state, notified)
        partitions = dict.fromkeys(
            partition for result in results for partition in decoded(decode_partitions, result, ())
        )
        if partitions:
            yield from _take_isr_changes(state, tuple(partitions))
    except FAILURES:  # the notifications go in any case: else they would fail for ever
        yield from delete_all(state, notified)
        raise
    yield from delete_all(state, notified)


def _take_isr_changes(
    state: ControllerState, partitions: tuple[TopicPartition, ...]
) -> Process[None]:
    context = state.context
    context.leaderships.update((yield from read_known_states(state, partitions)))
    send_metadata(state, context.broker_epochs, partitions)
    for partition in partitions:
        if partition in context.reassigned:
            yield from complete_if_caught_up(state, partition)


def process_log_dir_event(state: ControllerState) -> Process[None]:
    """Brokers have lost log directories: LeaderAndIsr of all that they have shows what is lost."""
    if not state.is_active:
        return
    notified = yield from _notifications(state, paths.LOG_DIR_EVENT_NOTIFICATION)
    try:
        results = yield from read_all(state, notified)
        named = {decoded(decode_log_dir_event, result, None) for result in results}
        brokers = sorted(broker for broker in named if broker is not None)
        yield from change_replicas(state, state.context.replicas_on(brokers), ReplicaStatus.ONLINE)
    except FAILURES:
        yield from delete_all(state, notified)
        raise
    yield from delete_all(state, notified)


def _notifications(state: ControllerState, path: str) -> Process[list[str]]:
    names = yield from children_of(state, path)
    return [f"{path}/{name}" for name in names]


def process_control_response(state: ControllerState, event: ControlResponse) -> Process[None]:
    """Take the state of the broker's replicas from its LeaderAndIsr or StopReplica response."""
    if not state.is_active:
        return
    match event.request, event.response:
        case LeaderAndIsrRequest(), LeaderAndIsrResponse(error_code=0):
            yield from _take_replica_errors(state, event.broker, event.response)
        case StopReplicaRequest(), StopReplicaResponse():
            yield from _take_deletions(state, event.broker, event.request, event.response)


def _take_replica_errors(
    state: ControllerState, broker: int, response: LeaderAndIsrResponse
) -> Process[None]:
    """KAFKA_STORAGE_ERROR: the replica is in a log directory that fails."""
    context = state.context
    before = context.offline_dirs.get(broker, set())
    after = set(before)
    for partition, code in _partition_errors(state, response):
        if code == ErrorCode.KAFKA_STORAGE_ERROR:
            after.add(partition)
        elif code == ErrorCode.NONE:
            after.discard(partition)
    context.offline_dirs[broker] = after
    lost = sorted(after - before)
    if lost:
        yield from take_replicas_offline(state, [(partition, broker) for partition in lost])


def _partition_errors(
    state: ControllerState, response: LeaderAndIsrResponse
) -> list[tuple[TopicPartition, int]]:
    if state.settings.protocol.leader_and_isr_version < 5:
        return [
            (TopicPartition(data.topic_name, data.partition_index), data.error_code)
            for data in response.partition_errors
        ]
    names = state.context.topic_names
    return [
        (TopicPartition(names[topic.topic_id], data.partition_index), data.error_code)
        for topic in response.topics
        if topic.topic_id in names
        for data in topic.partition_errors
    ]


def _take_deletions(
    state: ControllerState,
    broker: int,
    request: StopReplicaRequest,
    response: StopReplicaResponse,
) -> Process[None]:
    """Replicas of topics to be deleted that are deleted, or could not be."""
    deleted = {
        TopicPartition(topic.topic_name, data.partition_index)
        for topic in request.topic_states
        for data in topic.partition_states
        if data.delete_partition
    }
    errors = {}
    for data in response.partition_errors:
        partition = TopicPartition(data.topic_name, data.partition_index)
        if partition.topic in state.context.deletion_started and partition in deleted:
            errors[partition] = data.error_code
    if not errors:
        return
    whole = response.error_code != ErrorCode.NONE
    failed = [p for p, code in errors.items() if whole or code != ErrorCode.NONE]
    yield from fail_replica_deletions(state, [(partition, broker) for partition in failed])
    done = [partition for partition in errors if partition not in failed]
    if done:
        yield from complete_replica_deletions(state, [(partition, broker) for partition in done])


def process_unclean_election_enable(state: ControllerState, topic: str | None) -> Process[None]:
    """Unclean leaders are allowed from now on: elect those that wait for it."""
    if state.is_active:
        yield from bring_online(state, topic)
