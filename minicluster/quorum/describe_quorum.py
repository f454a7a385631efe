"""DescribeQuorum: the progress of the leader's replicas.

Versions: 0-2. v1: times of the last fetch and of the last time caught up (KIP-836);
          v2: directory ids, error messages and the voters' endpoints (KIP-853).
Source:   KafkaRaftClient.handleDescribeQuorumRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.error_responses.texts import TEXTS
from minicluster.protocol.messages import DescribeQuorumRequest, DescribeQuorumResponse
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.quorum import wire
from minicluster.quorum.state.leader_state import LeaderState, ReplicaState
from minicluster.quorum.state.node import QuorumNode

FIRST_WITH_DIRECTORIES = 2


def validate(
    node: QuorumNode, request: DescribeQuorumRequest, version: int
) -> DescribeQuorumResponse | None:
    """Reject each partition of a request that does not name just the metadata partition."""
    return _unknown_topics(request) if wire.only_partition(request) is None else None


def check_epoch(node: QuorumNode, request: DescribeQuorumRequest, now_ms: int) -> None:
    """No epoch: an admin describes the present one."""


def error_response(
    node: QuorumNode, request: DescribeQuorumRequest, version: int, error: ErrorCode
) -> DescribeQuorumResponse:
    """Reject to describe the quorum as a node that does not lead it."""
    partition = DescribeQuorumResponse.PartitionData(
        error_code=int(error), error_message=TEXTS[error]
    )
    return _response(METADATA_TOPIC, partition)


def handle(
    node: QuorumNode, request: DescribeQuorumRequest, version: int, token: Any, now_ms: int
) -> DescribeQuorumResponse:
    """Describe the quorum as its leader, even while the leader shuts down."""
    role = node.role
    if not isinstance(role, LeaderState):
        return error_response(node, request, version, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    role.drop_idle_observers(now_ms)
    with_directories = version >= FIRST_WITH_DIRECTORIES

    def state(progress: ReplicaState) -> DescribeQuorumResponse.ReplicaState:
        own = progress.key.id == node.key.id
        return DescribeQuorumResponse.ReplicaState(
            replica_id=progress.key.id,
            replica_directory_id=progress.key.wire_directory_id if with_directories else ZERO_UUID,
            log_end_offset=-1 if progress.end_offset is None else progress.end_offset,
            last_fetch_timestamp=now_ms if own else progress.fetched_ms,
            last_caught_up_timestamp=now_ms if own else progress.caught_up_ms,
        )

    mark = role.high_watermark
    partition = DescribeQuorumResponse.PartitionData(
        error_code=0,
        leader_id=node.key.id,
        leader_epoch=role.epoch,
        high_watermark=-1 if mark is None else mark,
        current_voters=tuple(state(role.voters[voter]) for voter in sorted(role.voters)),
        observers=tuple(state(progress) for progress in role.observers.values()),
    )
    nodes = _nodes(node) if with_directories else ()
    return _response(METADATA_TOPIC, partition, nodes)


def _nodes(node: QuorumNode) -> tuple[DescribeQuorumResponse.Node, ...]:
    return tuple(
        DescribeQuorumResponse.Node(
            node_id=voter.key.id,
            listeners=tuple(
                DescribeQuorumResponse.Listener(name=e.name, host=e.host, port=e.port)
                for e in voter.endpoints
            ),
        )
        for voter in node.history.voters.voters
    )


def _response(
    topic: str,
    partition: DescribeQuorumResponse.PartitionData,
    nodes: tuple[DescribeQuorumResponse.Node, ...] = (),
) -> DescribeQuorumResponse:
    data = DescribeQuorumResponse.TopicData(topic_name=topic, partitions=(partition,))
    return DescribeQuorumResponse(topics=(data,), nodes=nodes)


def _unknown_topics(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        topics=tuple(
            DescribeQuorumResponse.TopicData(
                topic_name=topic.topic_name,
                partitions=tuple(
                    DescribeQuorumResponse.PartitionData(
                        partition_index=partition.partition_index,
                        error_code=int(error),
                        error_message=TEXTS[error],
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )
