"""AssignReplicasToDirs (73): a broker reports the directories of its replicas (KIP-858).

A report of a failed directory names the directory alone. Only by these assignments does the
controller know which replicas fail with it. One that arrives late, for a directory that has failed
by now, therefore takes the replica out of its ISR at once.

Versions:  0; needs metadata.version 3.7-IV2.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.controller.api import ControllerApi
from minicluster.controller.broker_changes import partition_updates
from minicluster.controller.decision import Decision
from minicluster.controller.errors import Reason, Rejected
from minicluster.controller.partition_change import Targets, change_partition
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.indexes import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from minicluster.protocol.records import VersionedRecord
from minicluster.security.acls import Operation
from minicluster.values import replace


def assign_replicas_to_dirs(
    state: ClusterState, request: AssignReplicasToDirsRequest, version: int, now_ms: int
) -> Decision:
    """Write directories; replicas in one that is not online leave ISRs and leaderships as well.

    Records: all directories first, then the ISR changes, which are computed from the state before.
    Errors:  per partition; Rejected with UNSUPPORTED_VERSION or STALE_BROKER_EPOCH.
    Source:  KIP-858; ReplicationControlManager.handleAssignReplicasToDirs.
    """
    if not state.gates.metadata_version.directory_assignment_supported:
        raise Rejected(
            ErrorCode.UNSUPPORTED_VERSION,
            "Directory assignment is not supported yet.",
            Reason.UNSUPPORTED_METADATA_VERSION,
        )
    broker = state.check_broker_epoch(request.broker_id, request.broker_epoch)
    records: list[VersionedRecord] = []
    offline: dict[TopicPartition, None] = {}
    directories = []
    for directory in request.directories:
        lost = not broker.has_online_dir(directory.id)
        topics = []
        for topic in directory.topics:
            results = []
            for requested in topic.partitions:
                key = (topic.topic_id, requested.partition_index)
                error = _assign(state, broker.id, directory.id, key, records)
                if error is ErrorCode.NONE and lost:
                    offline[key] = None
                results.append(
                    AssignReplicasToDirsResponse.PartitionData(
                        partition_index=requested.partition_index, error_code=error
                    )
                )
            topics.append(
                AssignReplicasToDirsResponse.TopicData(
                    topic_id=topic.topic_id, partitions=tuple(results)
                )
            )
        directories.append(
            AssignReplicasToDirsResponse.DirectoryData(id=directory.id, topics=tuple(topics))
        )
    # Computed from the state before, so a partition gets two records: its directory, then its ISR.
    records += partition_updates(state, offline, to_remove=broker.id)
    return Decision(
        records=tuple(records),
        response=AssignReplicasToDirsResponse(directories=tuple(directories)),
    )


def _assign(
    state: ClusterState,
    broker_id: int,
    directory: UUID,
    key: TopicPartition,
    records: list[VersionedRecord],
) -> ErrorCode:
    topic_id, index = key
    topic = state.image.topics.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    partition = topic.partitions.get(index)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    gates = state.gates
    if state.rules.assigned_directory_empties_elr:
        gates = replace(gates, elr_enabled=False)
    record = change_partition(
        topic_id,
        index,
        partition,
        Targets(directories={broker_id: directory}),
        gates=gates,
        acceptable=state.acceptor(partition, key=key),
        default_dir=state.default_dir,
        min_isr=state.min_isr(topic),
    )
    if record is not None:
        records.append(record)
    return ErrorCode.NONE


API = ControllerApi(
    AssignReplicasToDirsRequest,
    lambda call: assign_replicas_to_dirs(*call.plain),
    right=Operation.CLUSTER_ACTION,
)
