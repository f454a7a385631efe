"""FetchSnapshot, as the leader answers it: the next bytes of a snapshot (KIP-630).

Versions: 0-1.
Source:   KafkaRaftClient.handleFetchSnapshotRequest.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.quorum import wire
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.raft_log import BOOTSTRAP_SNAPSHOT
from minicluster.quorum.state.voters import ReplicaKey


def fetch_snapshot(
    node: QuorumNode, request: FetchSnapshotRequest, version: int, now_ms: int
) -> FetchSnapshotResponse:
    """Hand out a part of a snapshot; the fetch counts for check-quorum."""
    if not validation.is_this_cluster(node, request.cluster_id):
        return wire.fetch_snapshot_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
    empty = None if node.rules.refused_fetch_snapshot_has_no_records else b""
    if not request.topics:
        return wire.fetch_snapshot_error(validation.contradiction(node, "a request without topics"))
    first = request.topics[0]
    if not first.partitions or (len(request.topics) != 1 and len(first.partitions) != 1):
        return wire.fetch_snapshot_error(ErrorCode.INVALID_REQUEST)
    asked = next(
        (
            partition
            for topic in request.topics
            if topic.name == METADATA_TOPIC
            for partition in topic.partitions
            if partition.partition == 0
        ),
        None,
    )
    if asked is None:
        index = first.partitions[0].partition
        return wire.unknown_snapshot_topic(version, node, first.name, index, empty)

    def refuse(error: ErrorCode) -> FetchSnapshotResponse:
        return wire.fetch_snapshot_answer(version, node, error=error, content=empty)

    refusal = validation.refuse_leader_request(node, asked.current_leader_epoch)
    if refusal is not None:
        return refuse(refusal)
    snapshot_id = (asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
    content = node.log.log.snapshots.get(snapshot_id)
    if content is None or snapshot_id == BOOTSTRAP_SNAPSHOT:
        return refuse(ErrorCode.SNAPSHOT_NOT_FOUND)
    if not 0 <= asked.position < len(content):
        return refuse(ErrorCode.POSITION_OUT_OF_RANGE)
    if request.replica_id == node.key.id:
        return refuse(validation.contradiction(node, "the leader fetches from itself"))
    role = node.role
    assert isinstance(role, LeaderState)
    if request.replica_id >= 0:
        replica = ReplicaKey.of(request.replica_id, asked.replica_directory_id)
        role.on_contact(replica, now_ms)
    part = content[asked.position : asked.position + max(0, request.max_bytes)]
    return wire.fetch_snapshot_answer(
        version,
        node,
        snapshot_id=snapshot_id,
        size=len(content),
        position=asked.position,
        content=part,
    )
