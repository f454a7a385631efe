"""One election of one partition, by request or by a periodic task.

Source:  ReplicationControlManager.electLeader.
"""

from __future__ import annotations

from enum import IntEnum

from minicluster.controller.deciding.leader_election import Election
from minicluster.controller.deciding.partition_change import Targets, change_partition
from minicluster.controller.errors import ApiError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.records import VersionedRecord


class ElectionType(IntEnum):
    """The elections of an ElectLeaders request."""

    PREFERRED = 0
    UNCLEAN = 1


def elect_leader(
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    election_type: ElectionType,
    records: list[VersionedRecord],
) -> ApiError:
    """Hold one election and put its record, if any, with the others."""
    if election_type is ElectionType.PREFERRED:
        needed = not partition.has_preferred_leader
    else:
        needed = not partition.has_leader
    if not needed:
        return ApiError.of_code(ErrorCode.ELECTION_NOT_NEEDED)
    election = Election.PREFERRED if election_type is ElectionType.PREFERRED else Election.UNCLEAN
    record = requested_election(state, topic, index, partition, election)
    if record is None:
        return ApiError.of_code(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            if election_type is ElectionType.PREFERRED
            else ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
        )
    records.append(record)
    return ApiError()


@step
def requested_election(
    state: ClusterState,
    topic: TopicImage,
    index: int,
    partition: PartitionRegistration,
    election: Election,
) -> VersionedRecord | None:
    """The record of an election by request or by the unclean-election task."""
    return election_record(state, topic, index, partition, election)


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
