"""AlterReplicaState of KIP-589 on ZooKeeper: a broker names its replicas that are offline.

It replaces the znode log_dir_event: the controller needs no LeaderAndIsr to find which replicas are
lost. The next controller finds them by its first LeaderAndIsr (failure mode 3).

Versions: 0, of the KIP's text; never shipped. Served where ``Rules.failed_replicas_reported_by``
          chooses it, from IBP 2.7-IV2 on.
Source:   KIP-589, "Controller" and "Error codes".
"""

from __future__ import annotations

from typing import Any

from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages.kip_texts.kip_589 import (
    EVENT_OFFLINE,
    UNKNOWN_EVENT_TYPE,
    AlterReplicaStateRequest,
    AlterReplicaStateResponse,
)
from minicluster.zookeeper.controller.broker_change import take_replicas_offline
from minicluster.zookeeper.controller.controller_api import ControllerApi
from minicluster.zookeeper.controller.controller_state import ControllerState
from minicluster.zookeeper.process import Process


def process_alter_replica_state(
    state: ControllerState, token: Any, request: AlterReplicaStateRequest
) -> Process[None]:
    """Check and respond at once; then elect other leaders, and remove the replicas from ISRs."""
    refusal = _refusal(state, request)
    if refusal is not None:
        state.respond(token, AlterReplicaStateResponse(error_code=refusal))
        return
    context, kind = state.context, AlterReplicaStateResponse
    lost: list[TopicPartition] = []
    topics = []
    for topic in request.topics:
        results = []
        for data in topic.partitions:
            partition = TopicPartition(topic.topic, data.partition_id)
            known = bool(context.assignment(partition).replicas)
            if known and request.broker_id in context.assignment(partition).replicas:
                lost.append(partition)
            error = ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            results.append(kind.PartitionData(partition_id=data.partition_id, error_code=error))
        topics.append(kind.TopicData(topic=topic.topic, partitions=tuple(results)))
    state.respond(token, kind(topics=tuple(topics)))
    offline = context.offline_dirs.setdefault(request.broker_id, set())
    new = [partition for partition in lost if partition not in offline]
    offline.update(new)
    if new:
        replicas = [(partition, request.broker_id) for partition in new]
        yield from take_replicas_offline(state, replicas)


def _refusal(state: ControllerState, request: AlterReplicaStateRequest) -> int | None:
    if not state.settings.replica_states_reported:
        return ErrorCode.UNSUPPORTED_VERSION
    if not state.is_active:
        return ErrorCode.NOT_CONTROLLER
    if state.context.broker_epochs.get(request.broker_id) != request.broker_epoch:
        return ErrorCode.STALE_BROKER_EPOCH
    return None if request.event_type == EVENT_OFFLINE else UNKNOWN_EVENT_TYPE


API = ControllerApi(
    AlterReplicaStateRequest,
    lambda state, event: process_alter_replica_state(state, event.token, event.request),
)
