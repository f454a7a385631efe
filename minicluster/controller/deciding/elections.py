"""ElectLeaders (43), and the elections that the controller holds of its own accord.

Versions:  0-2; below 1 only preferred elections can be asked for.
"""

from __future__ import annotations

from enum import IntEnum

from minicluster.controller.deciding.decision import ApiError, Decision, Refused
from minicluster.controller.deciding.partition_change import Election, Targets, change_partition
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ElectLeadersRequest, ElectLeadersResponse
from minicluster.protocol.records import VersionedRecord

PartitionResult = ElectLeadersResponse.PartitionResult
TopicResult = ElectLeadersResponse.ReplicaElectionResult


class ElectionType(IntEnum):
    """What an administrator can ask for."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leaders(
    state: ClusterState, request: ElectLeadersRequest, version: int, now_ms: int
) -> Decision:
    """Hold elections; without a list, for every partition that needs one.

    An unclean election that is asked for is held even where the topic's config forbids it.
    Errors:  per partition; Refused with INVALID_REQUEST for an unknown type.
    Source:  KIP-460; ReplicationControlManager.electLeaders.
    """
    try:
        wanted = ElectionType(request.election_type)
    except ValueError:
        raise Refused(
            ErrorCode.INVALID_REQUEST, f"Unknown election type {request.election_type}"
        ) from None
    records: list[VersionedRecord] = []
    results: list[TopicResult] = []
    if request.topic_partitions is None:
        for topic in state.image.topics:
            tried = [
                (index, elect_leader(state, topic, index, partition, wanted, records))
                for index, partition in topic.items()
            ]
            needed = [(i, e) for i, e in tried if e.error is not ErrorCode.ELECTION_NOT_NEEDED]
            if needed:
                results.append(_topic_result(topic.name, needed))
    else:
        once = dict.fromkeys((t.topic, t.partitions) for t in request.topic_partitions)
        for name, partitions in once:
            asked = [
                (index, _elect_named(state, name, index, wanted, records)) for index in partitions
            ]
            results.append(_topic_result(name, asked))
    return Decision(
        records=tuple(records),
        response=ElectLeadersResponse(replica_election_results=tuple(results)),
    )


def elect_leader(
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    wanted: ElectionType,
    records: list[VersionedRecord],
) -> ApiError:
    """Hold one election and put its record, if any, with the others."""
    if wanted is ElectionType.PREFERRED:
        needed = not partition.has_preferred_leader
    else:
        needed = not partition.has_leader
    if not needed:
        return ApiError(ErrorCode.ELECTION_NOT_NEEDED)
    election = Election.PREFERRED if wanted is ElectionType.PREFERRED else Election.UNCLEAN
    record = election_record(state, topic, index, partition, election)
    if record is None and election is Election.PREFERRED and not partition.has_leader:
        if state.faults.z47_preferred_is_unclean:
            record = election_record(state, topic, index, partition, Election.UNCLEAN)
        if record is not None:
            state.hit("Z47")
    if record is None:
        return ApiError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if wanted is ElectionType.PREFERRED
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


def _elect_named(
    state: ClusterState,
    name: str,
    index: int,
    wanted: ElectionType,
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
    return elect_leader(state, topic, index, partition, wanted, records)


def _topic_result(name: str, errors: list[tuple[int, ApiError]]) -> TopicResult:
    return TopicResult(
        topic=name,
        partition_result=tuple(
            PartitionResult(partition_id=index, error_code=e.error, error_message=e.message)
            for index, e in errors
        ),
    )
