"""FetchSnapshot: a replica requests the next bytes of a snapshot (KIP-630).

Versions: 0-1. v1: the replica's directory id and the leader's endpoint (KIP-853).
Source:   KafkaRaftClient.handleFetchSnapshotRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse
from minicluster.quorum import message_epoch, wire
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.raft_log import BOOTSTRAP_SNAPSHOT
from minicluster.quorum.state.refusals import InvalidRequest
from minicluster.quorum.state.voters import ReplicaKey


def validate(
    node: QuorumNode, request: FetchSnapshotRequest, version: int
) -> FetchSnapshotResponse | None:
    """Refuse another cluster, and a request that does not name the metadata partition."""
    if not validation.has_valid_cluster_id(node, request.cluster_id):
        return wire.fetch_snapshot_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
    if not request.topics:
        error = validation.contradiction(node, InvalidRequest.OTHER_PARTITION)
        return wire.fetch_snapshot_error(error)
    first = request.topics[0]
    if not first.partitions or (len(request.topics) != 1 and len(first.partitions) != 1):
        error = validation.invalid(node, InvalidRequest.OTHER_PARTITION)
        return wire.fetch_snapshot_error(error)
    if wire.snapshot_partition(request) is None:
        index = first.partitions[0].partition
        return wire.unknown_snapshot_topic(node, version, first.name, index, _no_records(node))
    return None


def check_epoch(node: QuorumNode, request: FetchSnapshotRequest, now_ms: int) -> ErrorCode | None:
    """The epoch of the leader that the replica fetches from."""
    partition = wire.snapshot_partition(request)
    assert partition is not None
    return message_epoch.check_leader_request(node, partition.current_leader_epoch)


def refuse(
    node: QuorumNode, request: FetchSnapshotRequest, version: int, error: ErrorCode
) -> FetchSnapshotResponse:
    """Refuse the partition, with the leader that this node has learnt of."""
    return wire.fetch_snapshot_response(node, version, error=error, content=_no_records(node))


def handle(
    node: QuorumNode, request: FetchSnapshotRequest, version: int, token: Any, now_ms: int
) -> FetchSnapshotResponse:
    """Respond with a part of a snapshot; the fetch counts for check-quorum.

    The bootstrap checkpoint is no snapshot to fetch: each node is formatted with its own.
    """
    leader, partition = node.role, wire.snapshot_partition(request)
    assert isinstance(leader, LeaderState) and partition is not None
    snapshot_id = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    content = node.log.log.snapshots.get(snapshot_id)
    if content is None or snapshot_id == BOOTSTRAP_SNAPSHOT:
        return refuse(node, request, version, ErrorCode.SNAPSHOT_NOT_FOUND)
    position = partition.position
    if not 0 <= position < len(content):
        return refuse(node, request, version, ErrorCode.POSITION_OUT_OF_RANGE)
    if request.replica_id == node.key.id:
        error = validation.contradiction(node, InvalidRequest.FETCH_OF_OWN_ID)
        return refuse(node, request, version, error)
    if request.replica_id >= 0:
        replica = ReplicaKey.of(request.replica_id, partition.replica_directory_id)
        leader.on_contact(replica, now_ms)
    return wire.fetch_snapshot_response(
        node,
        version,
        snapshot_id=snapshot_id,
        size=len(content),
        position=position,
        content=content[position : position + max(0, request.max_bytes)],
    )


def _no_records(node: QuorumNode) -> bytes | None:
    return None if node.rules.refused_fetch_snapshot_has_no_records else b""
