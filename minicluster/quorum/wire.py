"""The quorum's messages, built and read: one topic, one partition, always the same.

Versions: Vote 0-2, BeginQuorumEpoch 0-1, EndQuorumEpoch 0-1, Fetch 4-18, FetchSnapshot 0-1. The
          leader's endpoint is in responses from v1 on (Fetch from v17), where it is known.
Source:   RaftUtil.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from minicluster.log.log import SnapshotId
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    VoteRequest,
    VoteResponse,
)
from minicluster.protocol.messages.fetch import replica_state
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.protocol.uuids import METADATA_TOPIC_ID
from minicluster.quorum.state.voters import Endpoints, Node, ReplicaKey, VoterEndpoint

FETCH_WITH_ENDPOINTS = 17


class LeaderView(Protocol):
    """The leader that responses name, looked at after a possible change of epoch."""

    @property
    def epoch(self) -> int:
        """The epoch the node is in."""

    @property
    def leader_id(self) -> int:
        """Its leader, -1 if none is known."""

    @property
    def leader_node(self) -> Node | None:
        """The leader's endpoint, if that is known."""


# --- requests -------------------------------------------------------------------------------


def vote_request(
    *,
    cluster_id: str,
    voter: ReplicaKey,
    candidate: ReplicaKey,
    epoch: int,
    last_epoch: int,
    end_offset: int,
    pre_vote: bool,
) -> VoteRequest:
    """A Vote to one voter; ``pre_vote`` does not take the vote."""
    partition = VoteRequest.PartitionData(
        replica_epoch=epoch,
        replica_id=candidate.id,
        replica_directory_id=candidate.wire_directory_id,
        voter_directory_id=voter.wire_directory_id,
        last_offset_epoch=last_epoch,
        last_offset=end_offset,
        pre_vote=pre_vote,
    )
    topic = VoteRequest.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return VoteRequest(cluster_id=cluster_id, voter_id=voter.id, topics=(topic,))


def begin_epoch_request(
    *, cluster_id: str, voter: ReplicaKey, leader_id: int, epoch: int, endpoints: Endpoints
) -> BeginQuorumEpochRequest:
    """A BeginQuorumEpoch to one voter."""
    partition = BeginQuorumEpochRequest.PartitionData(
        voter_directory_id=voter.wire_directory_id, leader_id=leader_id, leader_epoch=epoch
    )
    topic = BeginQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return BeginQuorumEpochRequest(
        cluster_id=cluster_id,
        voter_id=voter.id,
        topics=(topic,),
        leader_endpoints=tuple(
            BeginQuorumEpochRequest.LeaderEndpoint(name=e.name, host=e.host, port=e.port)
            for e in endpoints
        ),
    )


def end_epoch_request(
    *, cluster_id: str, leader_id: int, epoch: int, preferred: Sequence[ReplicaKey]
) -> EndQuorumEpochRequest:
    """An EndQuorumEpoch, with the voters in the order in which they should become candidates."""
    partition = EndQuorumEpochRequest.PartitionData(
        leader_id=leader_id,
        leader_epoch=epoch,
        preferred_candidates=tuple(
            EndQuorumEpochRequest.ReplicaInfo(
                candidate_id=key.id, candidate_directory_id=key.wire_directory_id
            )
            for key in preferred
        ),
    )
    topic = EndQuorumEpochRequest.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,))
    return EndQuorumEpochRequest(cluster_id=cluster_id, topics=(topic,))


def fetch_request(
    *,
    cluster_id: str,
    replica: ReplicaKey,
    epoch: int,
    offset: int,
    last_epoch: int,
    high_watermark: int,
    max_wait_ms: int,
    max_bytes: int,
) -> FetchRequest:
    """A Fetch for what follows an offset."""
    partition = FetchRequest.FetchPartition(
        current_leader_epoch=epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        replica_directory_id=replica.wire_directory_id,
        high_watermark=high_watermark,
    )
    topic = FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=(partition,))
    return FetchRequest(
        cluster_id=cluster_id,
        replica_state=replica_state(replica.id),
        max_wait_ms=max_wait_ms,
        max_bytes=max_bytes,
        topics=(topic,),
    )


def fetch_snapshot_request(
    *,
    cluster_id: str,
    replica: ReplicaKey,
    epoch: int,
    snapshot_id: SnapshotId,
    position: int,
    max_bytes: int,
) -> FetchSnapshotRequest:
    """A FetchSnapshot for the bytes from a position on."""
    partition = FetchSnapshotRequest.PartitionSnapshot(
        current_leader_epoch=epoch,
        snapshot_id=FetchSnapshotRequest.SnapshotId(
            end_offset=snapshot_id[0], epoch=snapshot_id[1]
        ),
        position=position,
        replica_directory_id=replica.wire_directory_id,
    )
    topic = FetchSnapshotRequest.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
    return FetchSnapshotRequest(
        cluster_id=cluster_id, replica_id=replica.id, max_bytes=max_bytes, topics=(topic,)
    )


# --- responses ------------------------------------------------------------------------------

_ELECTION_RESPONSES: dict[type, type] = {
    VoteRequest: VoteResponse,
    BeginQuorumEpochRequest: BeginQuorumEpochResponse,
    EndQuorumEpochRequest: EndQuorumEpochResponse,
}


def election_error(request: Any, error: ErrorCode) -> Any:
    """Reject a Vote, BeginQuorumEpoch or EndQuorumEpoch as a whole."""
    return _ELECTION_RESPONSES[type(request)](error_code=int(error))


def election_response(
    view: LeaderView, request: Any, version: int, error: ErrorCode, *, granted: bool = False
) -> Any:
    """The response to a Vote, BeginQuorumEpoch or EndQuorumEpoch."""
    cls: Any = _ELECTION_RESPONSES[type(request)]
    extra = {"vote_granted": granted} if cls is VoteResponse else {}
    partition = cls.PartitionData(
        error_code=int(error), leader_id=view.leader_id, leader_epoch=view.epoch, **extra
    )
    return cls(
        topics=(cls.TopicData(topic_name=METADATA_TOPIC, partitions=(partition,)),),
        node_endpoints=_node_endpoints(cls, view.leader_node) if version >= 1 else (),
    )


def fetch_error(error: ErrorCode) -> FetchResponse:
    """Reject a Fetch as a whole."""
    return FetchResponse(error_code=int(error))


def fetch_response(
    view: LeaderView,
    version: int,
    *,
    error: ErrorCode = ErrorCode.NONE,
    high_watermark: int = -1,
    log_start: int,
    records: object = b"",
    diverging: tuple[int, int] | None = None,
    snapshot_id: SnapshotId | None = None,
) -> FetchResponse:
    """The response to a Fetch; ``diverging`` is (epoch, end offset)."""
    extra: dict[str, Any] = {}
    if diverging is not None:
        epoch, end_offset = diverging
        extra["diverging_epoch"] = FetchResponse.EpochEndOffset(epoch=epoch, end_offset=end_offset)
    if snapshot_id is not None:
        extra["snapshot_id"] = FetchResponse.SnapshotId(
            end_offset=snapshot_id[0], epoch=snapshot_id[1]
        )
    partition = FetchResponse.PartitionData(
        error_code=int(error),
        high_watermark=high_watermark,
        log_start_offset=log_start,
        current_leader=FetchResponse.LeaderIdAndEpoch(
            leader_id=view.leader_id, leader_epoch=view.epoch
        ),
        records=records,
        **extra,
    )
    topic = FetchResponse.FetchableTopicResponse(
        topic_id=METADATA_TOPIC_ID, partitions=(partition,)
    )
    endpoints = version >= FETCH_WITH_ENDPOINTS
    return FetchResponse(
        responses=(topic,),
        node_endpoints=_node_endpoints(FetchResponse, view.leader_node) if endpoints else (),
    )


def fetch_snapshot_error(error: ErrorCode) -> FetchSnapshotResponse:
    """Reject a FetchSnapshot as a whole."""
    return FetchSnapshotResponse(error_code=int(error))


def unknown_snapshot_topic(
    view: LeaderView, version: int, name: str, index: int, records: bytes | None
) -> FetchSnapshotResponse:
    """Reject a FetchSnapshot of another topic or partition."""
    partition = FetchSnapshotResponse.PartitionSnapshot(
        index=index,
        error_code=int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        unaligned_records=records,
    )
    topic = FetchSnapshotResponse.TopicSnapshot(name=name, partitions=(partition,))
    endpoints = _node_endpoints(FetchSnapshotResponse, view.leader_node) if version >= 1 else ()
    return FetchSnapshotResponse(topics=(topic,), node_endpoints=endpoints)


def fetch_snapshot_response(
    view: LeaderView,
    version: int,
    *,
    error: ErrorCode = ErrorCode.NONE,
    snapshot_id: SnapshotId = (0, 0),
    size: int = 0,
    position: int = 0,
    content: bytes | None = b"",
) -> FetchSnapshotResponse:
    """The response to a FetchSnapshot."""
    partition = FetchSnapshotResponse.PartitionSnapshot(
        error_code=int(error),
        snapshot_id=FetchSnapshotResponse.SnapshotId(
            end_offset=snapshot_id[0], epoch=snapshot_id[1]
        ),
        current_leader=FetchSnapshotResponse.LeaderIdAndEpoch(
            leader_id=view.leader_id, leader_epoch=view.epoch
        ),
        size=size,
        position=position,
        unaligned_records=content,
    )
    topic = FetchSnapshotResponse.TopicSnapshot(name=METADATA_TOPIC, partitions=(partition,))
    return FetchSnapshotResponse(
        topics=(topic,),
        node_endpoints=_node_endpoints(FetchSnapshotResponse, view.leader_node)
        if version >= 1
        else (),
    )


def _node_endpoints(cls: Any, node: Node | None) -> tuple[Any, ...]:
    if node is None:
        return ()
    return (cls.NodeEndpoint(node_id=node.id, host=node.host, port=node.port),)


# --- reading --------------------------------------------------------------------------------

_METADATA_TOPIC_IDS = (METADATA_TOPIC_ID,)  # most messages carry this very object


def only_partition(message: Any) -> Any | None:
    """The metadata partition of an election request or response, None if it names another."""
    if len(message.topics) != 1 or message.topics[0].topic_name != METADATA_TOPIC:
        return None
    partitions = message.topics[0].partitions
    if len(partitions) != 1 or partitions[0].partition_index != 0:
        return None
    return partitions[0]


def only_fetch_partition(request: FetchRequest) -> FetchRequest.FetchPartition | None:
    """The metadata partition of a Fetch, None if it names another, or the topic by its name."""
    topics = request.topics
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic_id, partition = topics[0].topic_id, topics[0].partitions[0]
    is_named = topic_id in _METADATA_TOPIC_IDS and partition.partition == 0
    return partition if is_named else None


def only_fetched_partition(response: FetchResponse) -> FetchResponse.PartitionData | None:
    """The metadata partition of a Fetch response, None if it names another."""
    topics = response.responses
    if len(topics) != 1 or len(topics[0].partitions) != 1:
        return None
    topic_id, partition = topics[0].topic_id, topics[0].partitions[0]
    is_named = topic_id in _METADATA_TOPIC_IDS and partition.partition_index == 0
    return partition if is_named else None


def snapshot_partition(
    request: FetchSnapshotRequest,
) -> FetchSnapshotRequest.PartitionSnapshot | None:
    """The metadata partition of a FetchSnapshot, None if there is none among its partitions."""
    for topic in request.topics:
        if topic.name == METADATA_TOPIC:
            for partition in topic.partitions:
                if partition.partition == 0:
                    return partition
    return None


def response_endpoints(response: Any, leader_id: int | None, listener: str) -> Endpoints:
    """The leader's endpoints in a response."""
    if leader_id is None:
        return ()
    return tuple(
        VoterEndpoint(listener, node.host, node.port)
        for node in response.node_endpoints
        if node.node_id == leader_id
    )


def named_endpoints(listeners: Sequence[Any]) -> Endpoints:
    """The listeners of a request as endpoints."""
    return tuple(VoterEndpoint(each.name, each.host, each.port) for each in listeners)
