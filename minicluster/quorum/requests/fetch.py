"""Fetch: a follower or observer requests what follows its log.

Versions: 4-18. v12: the last fetched epoch, in the request (KIP-595); v15: replica state;
          v17: directory ids (KIP-853); v18: the replica's high watermark (KIP-1166).
Source:   KafkaRaftClient.handleFetchRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchRequest, FetchResponse
from minicluster.quorum import message_epoch, replication, wire
from minicluster.quorum.requests import validation
from minicluster.quorum.state import parked_fetches
from minicluster.quorum.state.node import ParkedFetch, QuorumNode
from minicluster.quorum.state.refusals import InvalidRequest
from minicluster.quorum.state.voters import ReplicaKey

FIRST_WITH_REPLICA_STATE = 15


def validate(node: QuorumNode, request: FetchRequest, version: int) -> FetchResponse | None:
    """Refuse another cluster or partition, and numbers that no replica sends."""
    if not validation.has_valid_cluster_id(node, request.cluster_id):
        return wire.fetch_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = wire.only_fetch_partition(request)
    if partition is None:
        return wire.fetch_error(validation.invalid(node, InvalidRequest.OTHER_PARTITION))
    if (
        request.max_wait_ms < 0
        or partition.fetch_offset < 0
        or partition.last_fetched_epoch < 0
        or partition.current_leader_epoch < 0
        or partition.last_fetched_epoch > partition.current_leader_epoch
    ):
        error = validation.invalid(node, InvalidRequest.IMPOSSIBLE_FETCH)
        return refuse(node, request, version, error)
    return None


def check_epoch(node: QuorumNode, request: FetchRequest, now_ms: int) -> ErrorCode | None:
    """The epoch of the leader that the replica fetches from."""
    epoch = request.topics[0].partitions[0].current_leader_epoch
    return message_epoch.check_leader_request(node, epoch)


def refuse(
    node: QuorumNode, request: FetchRequest, version: int, error: ErrorCode
) -> FetchResponse:
    """Refuse the partition, with the leader that this node has learnt of."""
    return replication.fetch_refusal(node, version, error)


def handle(
    node: QuorumNode, request: FetchRequest, version: int, token: Any, now_ms: int
) -> FetchResponse | None:
    """Respond with what the replica lacks; park the fetch (None) while it lacks nothing."""
    partition = request.topics[0].partitions[0]
    replica_id = (
        request.replica_state.replica_id
        if version >= FIRST_WITH_REPLICA_STATE
        else request.replica_id
    )
    replica = ReplicaKey.of(replica_id, partition.replica_directory_id)
    response = replication.read(node, replica, partition, request.max_bytes, version, now_ms)
    if request.max_wait_ms == 0 or _has_news(response, partition):
        return response
    parked_fetches.park(
        node,
        ParkedFetch(
            token=token,
            version=version,
            replica=replica,
            partition=partition,
            max_bytes=request.max_bytes,
            deadline_ms=now_ms + request.max_wait_ms,
            prepared=response,
        ),
    )
    return None


def _has_news(response: FetchResponse, partition: FetchRequest.FetchPartition) -> bool:
    """Records, an error, a divergence, a snapshot or a higher high watermark (KIP-1166)."""
    found = response.responses[0].partitions[0]
    return bool(
        found.error_code
        or found.records
        or found.diverging_epoch.epoch >= 0
        or found.snapshot_id.epoch >= 0
        or found.high_watermark > partition.high_watermark
    )
