"""The response to FetchSnapshot: the next bytes; after the last, the snapshot replaces the log.

Source:  KafkaRaftClient.handleFetchSnapshotResponse; KIP-630.
"""

from __future__ import annotations

from minicluster.log.errors import InvalidBatch
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import FetchSnapshotResponse
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.quorum import wire
from minicluster.quorum.effects import HighWatermarkChanged, SnapshotInstalled, Truncated
from minicluster.quorum.errors import InconsistentState
from minicluster.quorum.message_epoch import ResponseEpoch
from minicluster.quorum.state.epoch_state import FetchingSnapshot, FollowerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voter_set_history import decode_snapshot_control


def epoch_of(node: QuorumNode, response: FetchSnapshotResponse) -> ResponseEpoch | bool:
    """The leader and epoch of the peer; False for a response about another partition."""
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return False
    topic, partition = response.topics[0], response.topics[0].partitions[0]
    if topic.name != METADATA_TOPIC or partition.index != 0:
        return False
    leader = partition.current_leader
    leader_id = None if leader.leader_id < 0 else leader.leader_id
    return ResponseEpoch(
        ErrorCode.for_code(partition.error_code),
        leader_id,
        leader.leader_epoch,
        wire.response_endpoints(response, leader_id, node.listener_name),
    )


def handle(node: QuorumNode, node_id: int, response: FetchSnapshotResponse, now_ms: int) -> bool:
    """Add the bytes to the snapshot that is fetched.

    A snapshot that the leader has not any more is given up: the next Fetch names a newer one.
    """
    partition = response.topics[0].partitions[0]
    role, timeout_ms = node.role, node.settings.fetch_timeout_ms
    if not isinstance(role, FollowerState):
        return False
    snapshot_id = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if partition.error_code == ErrorCode.SNAPSHOT_NOT_FOUND or min(snapshot_id) < 0:
        role.fetching_snapshot = None
        role.reset_fetch_timeout_for_successful_fetch(timeout_ms, now_ms)
        return True
    if partition.error_code != ErrorCode.NONE:
        return False
    fetching = role.fetching_snapshot
    if fetching is None or fetching.snapshot_id != snapshot_id:
        return False
    if partition.position != len(fetching.content):
        return False
    fetching.content += bytes(partition.unaligned_records or b"")
    if len(fetching.content) >= partition.size:
        role.fetching_snapshot = None
        if not _install(node, role, fetching):
            return False
    role.reset_fetch_timeout_for_successful_fetch(timeout_ms, now_ms)
    return True


def _install(node: QuorumNode, role: FollowerState, fetched: FetchingSnapshot) -> bool:
    """Replace the log by a snapshot; -> False for one whose bytes are damaged: it is dropped."""
    snapshot_id = fetched.snapshot_id
    try:
        decode_snapshot_control(bytes(fetched.content))
    except (InvalidBatch, ProtocolError):
        return False
    if node.rules.snapshot_of_lower_epoch_is_fatal and not node.log.would_install(snapshot_id):
        raise InconsistentState(f"the downloaded snapshot {snapshot_id} is not ahead of the log")
    if node.log.end_offset > snapshot_id[0]:
        node.emit(Truncated(snapshot_id[0]))
    node.log.install(snapshot_id, bytes(fetched.content))
    node.emit(SnapshotInstalled(snapshot_id))
    voters = node.history.state
    if not node.rules.reader_keeps_position_after_truncation:
        node.history.start_over()
    node.history.update()
    node.emit_voters_changed(voters)
    role.high_watermark = snapshot_id[0]
    node.listeners_behind = True
    node.emit(HighWatermarkChanged(snapshot_id[0]))
    return True
