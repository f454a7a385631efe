"""AlterReplicaState of KIP-589: a broker names replicas that are offline.

Versions:  0, of the KIP's text; never shipped. Served where
           ``Rules.failed_replicas_reported_by`` chooses it, at any metadata.version; everywhere
           else it is UNSUPPORTED_VERSION.
"""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.broker_changes import partition_updates
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Reason, Rejected
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.indexes import TopicPartition
from minicluster.controller.state.offline_replicas import ReplicasReported, ReportHandled
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages.kip_texts.kip_589 import (
    EVENT_OFFLINE,
    UNKNOWN_EVENT_TYPE,
    AlterReplicaStateRequest,
    AlterReplicaStateResponse,
)
from minicluster.protocol.records import VersionedRecord
from minicluster.rules import FailedReplicas
from minicluster.security.acls import Operation


def alter_replica_state(
    state: ClusterState, request: AlterReplicaStateRequest, version: int, now_ms: int
) -> Decision:
    """Check a report and respond; ``process_replica_state`` changes the ISRs a moment later.

    Errors:  Rejected with STALE_BROKER_EPOCH; UNKNOWN_EVENT_TYPE for the whole;
             UNKNOWN_TOPIC_OR_PARTITION per partition; the others are taken.
    Source:  KIP-589, "Controller" and "Error codes".
    """
    if state.rules.failed_replicas_reported_by is not FailedReplicas.ALTER_REPLICA_STATE:
        raise Rejected(
            ErrorCode.UNSUPPORTED_VERSION,
            "AlterReplicaState is not served.",
            Reason.API_NOT_SERVED,
        )
    broker = state.check_broker_epoch(request.broker_id, request.broker_epoch)
    if request.event_type != EVENT_OFFLINE:
        return Decision(response=AlterReplicaStateResponse(error_code=UNKNOWN_EVENT_TYPE))
    kind = AlterReplicaStateResponse
    taken: dict[TopicPartition, None] = {}
    topics = []
    for requested in request.topics:
        topic = state.image.topics.named(requested.topic)
        results = []
        for data in requested.partitions:
            known = topic is not None and data.partition_id in topic.partitions
            if topic is not None and known:
                taken[(topic.id, data.partition_id)] = None
            error = ErrorCode.NONE if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            results.append(kind.PartitionData(partition_id=data.partition_id, error_code=error))
        topics.append(kind.TopicData(topic=requested.topic, partitions=tuple(results)))
    report = ReplicasReported(broker.id, broker.epoch, tuple(taken))
    return Decision(response=kind(topics=tuple(topics)), soft=(report,) if taken else ())


def process_replica_state(state: ClusterState, now_ms: int) -> Decision:
    """Act on the oldest report: its replicas leave ISRs and leaderships, and cannot lead again.

    A report of an incarnation that is gone by now changes nothing.
    """
    report = state.offline_replicas.next_report()
    if report is None:
        return Decision(response=False)
    records: list[VersionedRecord] = []
    broker = state.image.cluster.broker(report.broker_id)
    if broker is not None and broker.epoch == report.broker_epoch:
        lost = []
        for key in report.partitions:
            partition = state.image.topics.partition(*key)
            if partition is not None and broker.id in partition.replicas:
                lost.append(key)
        records = list(partition_updates(state, lost, to_remove=broker.id))
    return Decision(records=tuple(records), response=False, soft=(ReportHandled(report),))


API = ControllerApi(
    AlterReplicaStateRequest,
    lambda call: alter_replica_state(*call.plain),
    right=Operation.CLUSTER_ACTION,
)
