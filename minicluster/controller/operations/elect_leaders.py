"""ElectLeaders (43): preferred or unclean elections by request (KIP-460).

Versions:  0-2; version 0 has no election type and means preferred elections.
"""

from __future__ import annotations

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.deciding.elections import ElectionType, elect_leader
from minicluster.controller.errors import ApiError, Refused, refuse_too_many_records
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ElectLeadersRequest, ElectLeadersResponse
from minicluster.protocol.records import VersionedRecord

PartitionResult = ElectLeadersResponse.PartitionResult
TopicResult = ElectLeadersResponse.ReplicaElectionResult


def elect_leaders(
    state: ClusterState, request: ElectLeadersRequest, version: int, now_ms: int
) -> Decision:
    """Hold elections; without a list, for every partition that needs one.

    An unclean election by request is held even where the topic's config forbids it.
    Errors:  per partition; Refused with INVALID_REQUEST for an unknown type, with
             POLICY_VIOLATION for too many elections.
    Source:  KIP-460; ReplicationControlManager.electLeaders.
    """
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        ) from None
    records: list[VersionedRecord] = []
    results: list[TopicResult] = []
    if request.topic_partitions is None:
        for name in state.indexes.topic_order:
            topic = state.image.topics.named(name)
            assert topic is not None
            tried = [
                (index, elect_leader(state, topic, index, partition, election_type, records))
                for index, partition in topic.items()
            ]
            needed = [(i, e) for i, e in tried if e.error is not ErrorCode.ELECTION_NOT_NEEDED]
            results.append(_topic_result(topic.name, needed))
    else:
        once = dict.fromkeys((t.topic, t.partitions) for t in request.topic_partitions)
        for name, partitions in once:
            results_by_index = [
                (index, _elect_named(state, name, index, election_type, records))
                for index in partitions
            ]
            results.append(_topic_result(name, results_by_index))
    refuse_too_many_records(len(records))
    return Decision(
        records=tuple(records),
        response=ElectLeadersResponse(replica_election_results=tuple(results)),
    )


def _elect_named(
    state: ClusterState,
    name: str,
    index: int,
    election_type: ElectionType,
    records: list[VersionedRecord],
) -> ApiError:
    topic = state.image.topics.named(name)
    if topic is None:
        return ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    partition = topic.partitions.get(index)
    if partition is None:
        return ApiError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}"
        )
    return elect_leader(state, topic, index, partition, election_type, records)


def _topic_result(name: str, errors: list[tuple[int, ApiError]]) -> TopicResult:
    return TopicResult(
        topic=name,
        partition_result=tuple(
            PartitionResult(partition_id=index, error_code=e.error, error_message=e.message)
            for index, e in errors
        ),
    )
