"""ElectLeaders (43): preferred or unclean elections by request (KIP-460).

Versions:  0-2; version 0 has no election type and means preferred elections.
"""

from __future__ import annotations

from enum import IntEnum

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.errors import ApiError, Rejected, reject_too_many_records
from minicluster.controller.leader_election import Election
from minicluster.controller.partition_change import Targets, change_partition
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import string_hash, timeline_order
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ElectLeadersRequest, ElectLeadersResponse
from minicluster.protocol.records import VersionedRecord
from minicluster.security.acls import Operation

PartitionResult = ElectLeadersResponse.PartitionResult
TopicResult = ElectLeadersResponse.ReplicaElectionResult


class ElectionType(IntEnum):
    """The elections of an ElectLeaders request."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    state: ClusterState, request: ElectLeadersRequest, version: int, now_ms: int
) -> Decision:
    """Hold elections; without a list, for every partition that needs one.

    An unclean election by request is held even where the topic's config forbids it.
    Errors:  per partition; Rejected with INVALID_REQUEST for an unknown type, with
             POLICY_VIOLATION for too many elections.
    Source:  KIP-460; ReplicationControlManager.electLeaders.
    """
    try:
        election_type = ElectionType(request.election_type)
    except ValueError:
        raise Rejected(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        ) from None
    records: list[VersionedRecord] = []
    results: list[TopicResult] = []
    if request.topic_partitions is None:
        for name in timeline_order(sorted(state.image.topics.ids_by_name), string_hash):
            topic = state.image.topics.named(name)
            assert topic is not None
            tried = []
            for index, partition in topic.items():
                error = elect_leader(state, topic, index, partition, election_type, records)
                tried.append((index, error))
            needed = [(i, e) for i, e in tried if e.error is not ErrorCode.ELECTION_NOT_NEEDED]
            results.append(_topic_result(topic.name, needed))
    else:
        for wanted in request.topic_partitions:
            results_by_index = []
            for index in wanted.partitions:
                error = _elect_named(state, wanted.topic, index, election_type, records)
                results_by_index.append((index, error))
            results.append(_topic_result(wanted.topic, results_by_index))
    reject_too_many_records(len(records))
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


@step
def elect_leader(
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    election_type: ElectionType,
    records: list[VersionedRecord],
) -> ApiError:
    """Hold one election, by request or by a periodic task, and put its record with the others.

    Source:  ReplicationControlManager.electLeader.
    """
    if election_type is ElectionType.PREFERRED:
        needed = not partition.has_preferred_leader
    else:
        needed = not partition.has_leader
    if not needed:
        return ApiError.of_code(ErrorCode.ELECTION_NOT_NEEDED)
    election = Election.PREFERRED if election_type is ElectionType.PREFERRED else Election.UNCLEAN
    record = election_record(state, topic, index, partition, election)
    if record is None:
        return ApiError.of_code(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if election_type is ElectionType.PREFERRED
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    records.append(record)
    return ApiError()


def election_record(
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    election: Election,
) -> VersionedRecord | None:
    """The record of an election that changes something."""
    return change_partition(
        topic.id,
        index,
        partition,
        Targets(),
        gates=state.gates,
        acceptable=state.acceptor(partition, key=(topic.id, index)),
        default_dir=state.default_dir,
        min_isr=state.min_isr(topic),
        election=election,
    )


def _topic_result(name: str, errors: list[tuple[int, ApiError]]) -> TopicResult:
    return TopicResult(
        topic=name,
        partition_result=tuple(
            PartitionResult(partition_id=index, error_code=e.error, error_message=e.message)
            for index, e in errors
        ),
    )


API = ControllerApi(
    ElectLeadersRequest,
    lambda call: elect_leaders(*call.plain),
    items=("topic_partitions",),
    has_deadline=True,
    nothing=ElectLeadersResponse(),
    right=Operation.ALTER,
)
