"""The response to Fetch: records, a diverging epoch to truncate to, or a snapshot to fetch.

Source:  KafkaRaftClient.handleFetchResponse, appendAsFollower, updateFollowerHighWatermark;
         KIP-595, KIP-630.
"""

from __future__ import annotations

from typing import Any

from minicluster.log.errors import InvalidBatch
from minicluster.log.records import Records
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchResponse
from minicluster.quorum import wire
from minicluster.quorum.effects import Appended, Flushed, HighWatermarkChanged, Truncated
from minicluster.quorum.message_epoch import ResponseEpoch
from minicluster.quorum.state.epoch_state import FetchingSnapshot, FollowerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.raft_log import BOOTSTRAP_SNAPSHOT


def epoch_of(node: QuorumNode, response: FetchResponse) -> ResponseEpoch | bool | None:
    """The leader and epoch of the peer; False for a response about another partition.

    Shapes:  -> None for most responses: without an error, of the leader that this node follows.
    """
    partition = wire.only_fetched_partition(response)
    if partition is None:
        return False
    leader, role = partition.current_leader, node.role
    error_code, epoch = partition.error_code, leader.leader_epoch
    if not error_code and epoch == role.epoch and leader.leader_id == role.leader_id:
        return None
    leader_id = None if leader.leader_id < 0 else leader.leader_id
    endpoints = wire.response_endpoints(response, leader_id, node.listener_name)
    return ResponseEpoch(ErrorCode.for_code(error_code), leader_id, epoch, endpoints)


def handle(node: QuorumNode, node_id: int, response: FetchResponse, now_ms: int) -> bool:
    """Follow the leader's log by one step; an error or a damaged position changes nothing."""
    partition = response.responses[0].partitions[0]
    role = node.role
    if partition.error_code or not isinstance(role, FollowerState):
        return False
    snapshot = partition.snapshot_id
    if partition.diverging_epoch.epoch >= 0:
        if not _truncate(node, role, partition.diverging_epoch):
            return False
    elif snapshot.end_offset >= 0 or snapshot.epoch >= 0:
        snapshot_id = (snapshot.end_offset, snapshot.epoch)
        below_committed = role.high_watermark is not None and snapshot_id[0] < role.high_watermark
        if min(snapshot_id) < 0 or below_committed:
            return False
        is_here = snapshot_id in node.log.log.snapshots or snapshot_id == BOOTSTRAP_SNAPSHOT
        role.fetching_snapshot = None if is_here else FetchingSnapshot(snapshot_id=snapshot_id)
    else:
        _append(node, partition.records)
        _update_high_watermark(node, role, partition.high_watermark)
    role.reset_fetch_timeout_for_successful_fetch(node.settings.fetch_timeout_ms, now_ms)
    return True


def _truncate(node: QuorumNode, role: FollowerState, diverging: Any) -> bool:
    """Truncate to where the logs diverge; -> False below the high watermark.

    What is committed is in the log of every leader, so such a response is wrong.
    """
    if role.high_watermark is not None and diverging.end_offset < role.high_watermark:
        return False
    before = node.log.end_offset
    end = node.log.truncation_offset(diverging.epoch, diverging.end_offset)
    if end < node.log.high_watermark:
        return False
    flushed, voters = node.log.log.flushed_offset, node.history.state
    node.log.log.truncate(end)
    node.history.truncate(end, keep_position=node.rules.reader_keeps_position_after_truncation)
    if end < before:
        node.emit(Truncated(end, node.log.last_epoch))
    if node.log.log.flushed_offset < flushed:
        node.emit(Flushed(node.log.log.flushed_offset))
    node.emit_voters_changed(voters)
    return True


def _append(node: QuorumNode, records: Any) -> None:
    """Append what follows the end, up to the first batch of an epoch yet to come."""
    if not records:
        return
    try:
        batches = Records.of(records).batches
    except InvalidBatch:
        return
    appended, log = False, node.log
    for batch in batches:
        if batch.leader_epoch > node.role.epoch:
            break
        if batch.base_offset != log.log.end_offset or batch.leader_epoch < log.last_epoch:
            break
        log.log.append(batch)
        node.emit(Appended(batch))
        appended = True
    if appended:
        # A replica about to be added counts as a voter from its first fetch on, so it flushes.
        if node.is_voter or node.can_become_voter or node.settings.observers_flush:
            node.flush()
        node.read_control_records()


def _update_high_watermark(node: QuorumNode, role: FollowerState, leaders: int) -> None:
    """Take up the leader's high watermark, as far as this log goes; it never goes back."""
    if leaders < 0:
        return
    high_watermark = min(node.log.end_offset, leaders)
    if role.high_watermark is not None and high_watermark <= role.high_watermark:
        return
    role.high_watermark = high_watermark
    node.log.high_watermark = max(node.log.high_watermark, high_watermark)
    node.listeners_behind = True
    node.emit(HighWatermarkChanged(high_watermark))
