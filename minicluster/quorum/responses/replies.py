"""What a node does with the answers to its own requests.

Each function returns whether the request counts as a success: a failure holds its node back for
``retry_backoff_ms``.

Source:  KafkaRaftClient.handleResponse and
         maybeHandleCommonResponse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.log.batch import Records
from minicluster.log.errors import InvalidBatch
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.quorum import transitions, wire
from minicluster.quorum.effects import (
    Appended,
    Flushed,
    HighWatermarkChanged,
    SnapshotInstalled,
    Truncated,
)
from minicluster.quorum.errors import InconsistentState
from minicluster.quorum.message_epoch import follow
from minicluster.quorum.state.epoch_election import Vote
from minicluster.quorum.state.epoch_state import (
    CandidateState,
    FetchingSnapshot,
    FollowerState,
    ProspectiveState,
    ResignedState,
)
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.raft_log import BOOTSTRAP_SNAPSHOT
from minicluster.quorum.state.voter_set_history import decode_snapshot_control
from minicluster.quorum.voter_changes import add_voter_handler, follower_requests


def handle(node: QuorumNode, node_id: int, api: str, response: Any, now_ms: int) -> bool:
    """Handle the answer to a request of this node."""
    if response.error_code and api in _BY_PARTITION:
        return handle_error(node, node_id, api, ErrorCode.for_code(response.error_code), now_ms)
    return _HANDLERS[api](node, node_id, response, now_ms)


def handle_error(node: QuorumNode, node_id: int, api: str, error: ErrorCode, now_ms: int) -> bool:
    """Handle an error of the whole answer, or of the connection: it never changes anything.

    But a voter that does not know pre-votes turns a Prospective into a Candidate at once.
    """
    if api == "VoteRequest" and error is ErrorCode.UNSUPPORTED_VERSION:
        if isinstance(node.role, ProspectiveState):
            transitions.to_candidate(node, now_ms)
            return True
    elif api == "ApiVersionsRequest":
        return add_voter_handler.on_api_versions(node, node_id, error, None, now_ms)
    # An error of UpdateRaftVoter names no epoch and so is taken for an old answer.
    return api == "UpdateRaftVoterRequest"


def _follow_election(node: QuorumNode, response: Any, partition: Any, now_ms: int) -> bool | None:
    leader_id = None if partition.leader_id < 0 else partition.leader_id
    return follow(
        node,
        ErrorCode.for_code(partition.error_code),
        leader_id,
        partition.leader_epoch,
        wire.answered_endpoints(response, leader_id, node.listener_name),
        now_ms,
    )


# --- elections ----------------------------------------------------------------------------------


def _vote(node: QuorumNode, node_id: int, response: Any, now_ms: int) -> bool:
    partition = wire.only_partition(response)
    if partition is None:
        return False
    handled = _follow_election(node, response, partition, now_ms)
    if handled is not None:
        return handled
    if partition.error_code != ErrorCode.NONE:
        return False
    role = node.role
    if not isinstance(role, ProspectiveState | CandidateState) or not role.tally.knows(node_id):
        return True
    if isinstance(role, CandidateState) and role.tally.said(node_id) is not Vote.UNRECORDED:
        return True
    role.tally.record(node_id, partition.vote_granted)
    transitions.go_forward(node, now_ms)
    if node.role is role and isinstance(role, ProspectiveState) and role.tally.is_lost:
        transitions.lose_pre_vote(node, now_ms)
    return True


def _begin_epoch(node: QuorumNode, node_id: int, response: Any, now_ms: int) -> bool:
    partition = wire.only_partition(response)
    if partition is None:
        return False
    handled = _follow_election(node, response, partition, now_ms)
    if handled is not None:
        return handled
    if partition.error_code != ErrorCode.NONE:
        return False
    role = node.role
    if isinstance(role, LeaderState):
        progress = role.voters.get(node_id)
        if progress is not None:
            progress.acknowledged = True
        elif node.rules.late_begin_acknowledgement_is_fatal:
            raise InconsistentState(f"an acknowledgement of {node_id}, which does not vote")
    return True


def _end_epoch(node: QuorumNode, node_id: int, response: Any, now_ms: int) -> bool:
    partition = wire.only_partition(response)
    if partition is None:
        return False
    handled = _follow_election(node, response, partition, now_ms)
    if handled is not None:
        return handled
    if partition.error_code != ErrorCode.NONE:
        return False
    if isinstance(node.role, ResignedState):
        node.role.unacknowledged.pop(node_id, None)
    return True


# --- replication --------------------------------------------------------------------------------


def _fetch(node: QuorumNode, node_id: int, response: Any, now_ms: int) -> bool:
    partition = wire.only_fetched_partition(response)
    if partition is None:
        return False
    error = partition.error_code
    leader = partition.current_leader
    role = node.role
    is_no_news = (leader.leader_id, leader.leader_epoch) == (role.leader_id, role.epoch)
    if error or not is_no_news:
        leader_id = None if leader.leader_id < 0 else leader.leader_id
        endpoints = wire.answered_endpoints(response, leader_id, node.listener_name)
        handled = follow(
            node, ErrorCode.for_code(error), leader_id, leader.leader_epoch, endpoints, now_ms
        )
        if handled is not None:
            return handled
        role = node.role
    if error or not isinstance(role, FollowerState):
        return False
    if partition.diverging_epoch.epoch >= 0:
        if not _truncate(node, role, partition.diverging_epoch):
            return False
    elif partition.snapshot_id.epoch >= 0 or partition.snapshot_id.end_offset >= 0:
        snapshot_id = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
        below_committed = role.high_watermark is not None and snapshot_id[0] < role.high_watermark
        if min(snapshot_id) < 0 or below_committed:
            return False
        is_here = snapshot_id in node.log.log.snapshots or snapshot_id == BOOTSTRAP_SNAPSHOT
        role.download = None if is_here else FetchingSnapshot(snapshot_id=snapshot_id)
    else:
        _append(node, partition.records)
        _raise_high_watermark(node, role, partition.high_watermark)
    _on_contact(node, role, now_ms)
    return True


def _truncate(node: QuorumNode, role: FollowerState, diverging: Any) -> bool:
    if role.high_watermark is not None and diverging.end_offset < role.high_watermark:
        return False
    before = node.log.end_offset
    end = node.log.end_in_common(diverging.epoch, diverging.end_offset)
    if end < node.log.high_watermark:
        return False
    flushed, voters = node.log.log.flushed_offset, node.history.state
    node.log.truncate(end)
    node.history.truncate(end, keep_position=node.rules.reader_keeps_position_after_truncation)
    if end < before:
        node.emit(Truncated(end, node.log.last_epoch))
    if node.log.log.flushed_offset < flushed:
        node.emit(Flushed(node.log.log.flushed_offset))
    node.tell_voters(voters)
    return True


def _append(node: QuorumNode, records: Any) -> None:
    """Append what follows the end, up to the first batch of an epoch yet to come."""
    if not records:
        return
    try:
        batches = Records.of(records).batches
    except InvalidBatch:
        return
    appended = False
    for batch in batches:
        if batch.leader_epoch > node.epoch:
            break
        if batch.base_offset != node.log.end_offset or batch.leader_epoch < node.log.last_epoch:
            break
        node.log.append(batch)
        node.emit(Appended(batch))
        appended = True
    if appended:
        # A replica about to be added counts from its first fetch as a voter, so it flushes, too.
        if node.is_voter or node.can_become_voter or node.settings.observers_flush:
            node.flush()
        node.read_control_records()


def _raise_high_watermark(node: QuorumNode, role: FollowerState, leader_mark: int) -> None:
    if leader_mark < 0:
        return
    mark = min(node.log.end_offset, leader_mark)
    if role.high_watermark is not None and mark <= role.high_watermark:
        return
    role.high_watermark = mark
    node.log.high_watermark = max(node.log.high_watermark, mark)
    node.news = True
    node.emit(HighWatermarkChanged(mark))


def _on_contact(node: QuorumNode, role: FollowerState, now_ms: int) -> None:
    role.has_fetched = True
    role.fetch_deadline_ms = now_ms + node.settings.fetch_timeout_ms


def _fetch_snapshot(node: QuorumNode, node_id: int, response: Any, now_ms: int) -> bool:
    if len(response.topics) != 1 or len(response.topics[0].partitions) != 1:
        return False
    topic, partition = response.topics[0], response.topics[0].partitions[0]
    if topic.name != METADATA_TOPIC or partition.index != 0:
        return False
    error = ErrorCode.for_code(partition.error_code)
    leader = partition.current_leader
    leader_id = None if leader.leader_id < 0 else leader.leader_id
    endpoints = wire.answered_endpoints(response, leader_id, node.listener_name)
    handled = follow(node, error, leader_id, leader.leader_epoch, endpoints, now_ms)
    if handled is not None:
        return handled
    role = node.role
    if not isinstance(role, FollowerState):
        return False
    snapshot_id = (partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
    if error is ErrorCode.SNAPSHOT_NOT_FOUND or min(snapshot_id) < 0:
        role.download = None
        _on_contact(node, role, now_ms)
        return True
    if error is not ErrorCode.NONE:
        return False
    download = role.download
    if download is None or download.snapshot_id != snapshot_id:
        return False
    if partition.position != len(download.content):
        return False
    download.content += bytes(partition.unaligned_records or b"")
    if len(download.content) >= partition.size:
        role.download = None
        if not _install(node, role, download):
            return False
    _on_contact(node, role, now_ms)
    return True


def _install(node: QuorumNode, role: FollowerState, download: FetchingSnapshot) -> bool:
    """Replace the log by a snapshot; -> False for one whose bytes are damaged: it is dropped."""
    snapshot_id = download.snapshot_id
    try:
        decode_snapshot_control(bytes(download.content))
    except (InvalidBatch, ProtocolError):
        return False
    if node.rules.snapshot_of_lower_epoch_is_fatal and not node.log.would_install(snapshot_id):
        raise InconsistentState(f"the downloaded snapshot {snapshot_id} is not ahead of the log")
    if node.log.end_offset > snapshot_id[0]:
        node.emit(Truncated(snapshot_id[0]))
    node.log.install(snapshot_id, bytes(download.content))
    node.emit(SnapshotInstalled(snapshot_id))
    voters = node.history.state
    if not node.rules.reader_keeps_position_after_truncation:
        node.history.start_over()
    node.history.update()
    node.tell_voters(voters)
    role.high_watermark = snapshot_id[0]
    node.news = True
    node.emit(HighWatermarkChanged(snapshot_id[0]))
    return True


_HANDLERS: dict[str, Callable[[QuorumNode, int, Any, int], bool]] = {
    "VoteRequest": _vote,
    "BeginQuorumEpochRequest": _begin_epoch,
    "EndQuorumEpochRequest": _end_epoch,
    "FetchRequest": _fetch,
    "FetchSnapshotRequest": _fetch_snapshot,
    "UpdateRaftVoterRequest": follower_requests.on_update_voter,
    "AddRaftVoterRequest": follower_requests.on_join,
    "RemoveRaftVoterRequest": follower_requests.on_join,
    "ApiVersionsRequest": add_voter_handler.on_api_versions_response,
}
_BY_PARTITION = (
    "VoteRequest",
    "BeginQuorumEpochRequest",
    "EndQuorumEpochRequest",
    "FetchRequest",
    "FetchSnapshotRequest",
)
