"""OffsetForLeaderEpoch: the ends of leader epochs in a leader's log.

Versions: v1 adds the leader epoch to the response (KIP-279), v2 the current leader epoch to the
          request (KIP-320), v3 the replica id.
Source:   KIP-101, KIP-279, KIP-320; ReplicaManager.lastOffsetForLeaderEpoch.
"""

from __future__ import annotations

from typing import Any

from minicluster.log.epochs import optional_epoch
from minicluster.protocol.messages import OffsetForLeaderEpochResponse
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.reads import last_offset_for_leader_epoch
from minicluster.replica.state.replica_manager_state import ReplicaManagerState


def handle_offset_for_leader_epoch(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Look up where leader epochs end."""
    kind = OffsetForLeaderEpochResponse
    topics = tuple(
        kind.OffsetForLeaderTopicResult(
            topic=topic.topic,
            partitions=tuple(_epoch_end(state, topic.topic, wanted) for wanted in topic.partitions),
        )
        for topic in request.topics
    )
    state.respond(token, kind(topics=topics))


def _epoch_end(state: ReplicaManagerState, topic: str, wanted: Any) -> Any:
    kind = OffsetForLeaderEpochResponse.EpochEndOffset
    try:
        end = last_offset_for_leader_epoch(
            state.partition_named(topic, wanted.partition),
            wanted.leader_epoch,
            current_leader_epoch=optional_epoch(wanted.current_leader_epoch),
        )
    except ReplicaError as rejection:
        return kind(partition=wanted.partition, error_code=rejection.error)
    return kind(partition=wanted.partition, leader_epoch=end.epoch, end_offset=end.end_offset)
