"""Replication of the log by Fetch, from both ends: the leader's, then the follower's.

Raft's leader pushes entries and keeps a next index for each follower; Kafka's followers pull. So a
Fetch is three things at once: a request for records, the acknowledgement of all before them, and
the proof that both logs are the same up to there. It names the offset wanted next and the epoch of
the record before it. The leader compares them with its own log (``RaftLog.validate``):

==========================  ==================================================  =================
the position is             the response                                        counts as progress
==========================  ==================================================  =================
in the leader's log         records from it; without any, the fetch is parked   yes
of an epoch that ends       the epoch and offset where the leader's log parts   no
elsewhere here              from it (DivergingEpoch); the follower truncates
                            and asks again
before the log start, or 0  the newest snapshot's id, which the follower        no
while there is a snapshot   downloads (``snapshots``)
==========================  ==================================================  =================

**A divergence, worked.** The follower has been through leaders that this leader has not::

    offset     0  1  2  3  4  5  6  7  8
    leader     1  1  3  3  3  3  6  6  6     epochs of the records; it leads epoch 6
    follower   1  1  2  2  2  4  4  4

    Fetch(offset 8, last epoch 4)   the largest epoch here up to 4 is 3, and it ends at 6
      -> diverging: epoch 3, end 6  the follower has no 3; its largest up to 3 is 2, which ends at 5
    Fetch(offset 5, last epoch 2)   the largest epoch here up to 2 is 1, and it ends at 2
      -> diverging: epoch 1, end 2  the follower has 1 and it ends at 2: it truncates to 2
    Fetch(offset 2, last epoch 1)   the same up to here
      -> records from 2

Each round skips an epoch of one side. A leader that went back record by record, as Raft's next
index does, would need six. Nor may the follower truncate to the 6 of the first response: in its own
log, 5 is of epoch 4, and the position (6, 4) would be rejected again.

**Commit.** A voter flushes before it fetches, so its fetch offset is on its disk. The high
watermark is the highest offset that a majority of the voters has, once it lies above the first
record of the leader's own epoch: a majority that has only records of earlier epochs does not keep
another leader from truncating them (Raft, 5.4.2; worked in ``LeaderState.advance_to``). Followers
learn it from the next response. It is for ever: no follower truncates below it, whatever a response
says.

**Parked fetches** are completed whenever the leader's log or its high watermark grows, also with
nothing but the new high watermark (KIP-1166); at the end of their wait, with what was prepared when
they came; with NOT_LEADER_OR_FOLLOWER when the leader is deposed.

Fetch:   4-18. v12: the last fetched epoch, in the request (KIP-595); v15: replica state;
         v17: directory ids (KIP-853); v18: the replica's high watermark (KIP-1166).
Source:  KafkaRaftClient.handleFetchRequest, tryCompleteFetchRequest, onUpdateLeaderHighWatermark;
         LeaderState.updateReplicaState, updateLocalState; KafkaRaftClient.handleFetchResponse,
         appendAsFollower, updateFollowerHighWatermark; KIP-595, KIP-630.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from minicluster.log.batch import RecordBatch
from minicluster.log.errors import InvalidBatch
from minicluster.log.records import Records
from minicluster.planting import step
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchRequest, FetchResponse
from minicluster.protocol.records import VersionedRecord
from minicluster.quorum import message_checks, pending_voter_change, wire
from minicluster.quorum.effects import Appended, Flushed, HighWatermarkChanged, Truncated
from minicluster.quorum.errors import InconsistentState, InvalidRequest, NotLeader
from minicluster.quorum.message_checks import ResponseEpoch
from minicluster.quorum.state.epoch_state import FetchingSnapshot, FollowerState
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import ParkedFetch, QuorumNode
from minicluster.quorum.state.raft_log import BOOTSTRAP_SNAPSHOT, VALID, Position, Validation
from minicluster.quorum.state.voters import ReplicaKey

FIRST_WITH_REPLICA_STATE = 15


# --- the leader: a request ------------------------------------------------------------------------


def validate_request(node: QuorumNode, request: FetchRequest, version: int) -> FetchResponse | None:
    """Reject another cluster or partition, and numbers that no replica sends."""
    if not message_checks.has_valid_cluster_id(node, request.cluster_id):
        return wire.fetch_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = wire.only_fetch_partition(request)
    if partition is None:
        return wire.fetch_error(message_checks.invalid(node, InvalidRequest.OTHER_PARTITION))
    if (
        request.max_wait_ms < 0
        or partition.fetch_offset < 0
        or partition.last_fetched_epoch < 0
        or partition.current_leader_epoch < 0
        or partition.last_fetched_epoch > partition.current_leader_epoch
    ):
        error = message_checks.invalid(node, InvalidRequest.IMPOSSIBLE_FETCH)
        return error_response(node, request, version, error)
    return None


def check_request_epoch(node: QuorumNode, request: FetchRequest, now_ms: int) -> ErrorCode | None:
    """The epoch of the leader that the replica fetches from."""
    epoch = request.topics[0].partitions[0].current_leader_epoch
    return message_checks.check_leader_request(node, epoch)


def error_response(
    node: QuorumNode, request: FetchRequest, version: int, error: ErrorCode
) -> FetchResponse:
    """Reject the partition, with the leader that this node has learnt of."""
    return _partition_error(node, version, error)


def handle_request(
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
    response = _read(node, replica, partition, request.max_bytes, version, now_ms)
    if request.max_wait_ms == 0 or _has_news(response, partition):
        return response
    node.park(
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
    data = response.responses[0].partitions[0]
    return bool(
        data.error_code
        or data.records
        or data.diverging_epoch.epoch >= 0
        or data.snapshot_id.epoch >= 0
        or data.high_watermark > partition.high_watermark
    )


def _read(
    node: QuorumNode,
    replica: ReplicaKey,
    partition: FetchRequest.FetchPartition,
    max_bytes: int,
    version: int,
    now_ms: int,
) -> FetchResponse:
    """Read what a replica fetches as the leader; a valid fetch counts as the replica's progress."""
    leader = node.role
    assert isinstance(leader, LeaderState)
    offset = partition.fetch_offset
    verdict = _validate(node, offset, partition.last_fetched_epoch)
    if verdict is not VALID:
        return _elsewhere(node, leader, version, verdict)
    if replica.id == node.key.id:
        return _partition_error(node, version, ErrorCode.UNKNOWN_SERVER_ERROR)
    batches = node.log.log.read(offset, max_bytes)
    # A log ends between batches. Otherwise, by an offset inside one, the replica would be counted
    # for records that it fetches only now (from 7 it gets the batch of 5 to 9, and counts as 5).
    replica_end = min(offset, batches[0].base_offset) if batches else offset
    if replica.id >= 0 and leader.on_fetch(replica, replica_end, now_ms):
        on_high_watermark(node, leader, now_ms)
    return _with_batches(node, leader, version, batches)


def _partition_error(node: QuorumNode, version: int, error: ErrorCode) -> FetchResponse:
    """The response with an error of the partition."""
    return wire.fetch_response(
        node, version, error=error, log_start=node.log.start_offset, records=Records(())
    )


def _with_batches(
    node: QuorumNode, leader: LeaderState, version: int, batches: tuple[RecordBatch, ...]
) -> FetchResponse:
    """The response with batches, or none, and the same value again for the next replica.

    In a leader's epoch nothing is truncated: the same offsets are the same batches. Otherwise every
    round of an idle or an even quorum would build and encode one response for each replica.
    """
    high_watermark = -1 if leader.high_watermark is None else leader.high_watermark
    log_start = node.log.log.start_offset
    first, last = (batches[0].base_offset, batches[-1].last_offset) if batches else (-1, -1)
    key = (version, leader.epoch, high_watermark, log_start, first, last)
    if node.last_response[0] != key:
        response = wire.fetch_response(
            node,
            version,
            high_watermark=high_watermark,
            log_start=log_start,
            records=Records(batches),
        )
        node.last_response = (key, response)
    return node.last_response[1]  # type: ignore[no-any-return]


def _elsewhere(
    node: QuorumNode, leader: LeaderState, version: int, verdict: Validation
) -> FetchResponse:
    """The response to a position that is not in the log: where it diverges, or the snapshot."""
    place = (verdict.epoch, verdict.end_offset)
    diverges = verdict.position is Position.DIVERGING
    return wire.fetch_response(
        node,
        version,
        high_watermark=-1 if leader.high_watermark is None else leader.high_watermark,
        log_start=node.log.start_offset,
        records=Records(()),
        diverging=place if diverges else None,
        snapshot_id=None if diverges else (verdict.end_offset, verdict.epoch),
    )


def _validate(node: QuorumNode, offset: int, last_epoch: int) -> Validation:
    """Judge a position; who begins at 0 gets a snapshot first, which is shorter than the log."""
    if offset == 0 and (snapshot_id := node.log.snapshot_to_offer()) is not None:
        return Validation(Position.SNAPSHOT, *snapshot_id)
    return node.log.validate(offset, last_epoch)


# --- the leader: its log and high watermark -------------------------------------------------------


@step
def append(
    node: QuorumNode, epoch: int, records: Sequence[VersionedRecord | bytes], now_ms: int
) -> int:
    """Add records to the batch that the leader writes next; -> offset of the last one.

    Errors:  NotLeader on any other node; as ``BatchAccumulator.append``.
    """
    role = node.role
    if not isinstance(role, LeaderState):
        raise NotLeader(f"append rejected: node {node.key.id} is {role.name}")
    node.wake_ms = now_ms
    return role.accumulator.append(epoch, records, now_ms)


@step
def on_append(node: QuorumNode, leader: LeaderState, now_ms: int) -> None:
    """The leader's log has grown and is flushed: a leader alone commits by that."""
    if leader.on_local_end(node.log.end_offset, node.history.voters):
        on_high_watermark(node, leader, now_ms)
    complete_parked_fetches(node, now_ms)


def on_high_watermark(node: QuorumNode, leader: LeaderState, now_ms: int) -> None:
    """What a majority has now is committed: listeners and waiting fetches get it."""
    assert leader.high_watermark is not None
    # The role's own is forgotten when the node becomes leader; the log's never goes back, and says
    # what may be put into a snapshot and what may not be truncated.
    node.log.high_watermark = max(node.log.high_watermark, leader.high_watermark)
    node.listeners_behind = True
    node.emit(HighWatermarkChanged(leader.high_watermark, node.history.voters))
    pending_voter_change.on_high_watermark(node, leader)
    complete_parked_fetches(node, now_ms)


def complete_parked_fetches(node: QuorumNode, now_ms: int) -> None:
    """Respond to every parked fetch with what there is now, even nothing.

    Its epoch is compared again: the node may have left it while the fetch was parked. Each fetch
    leaves the list first: to read for it can raise the high watermark, and that comes back here.
    """
    while node.parked:
        parked = node.parked.pop(0)
        partition, version = parked.partition, parked.version
        error = message_checks.check_leader_request(node, partition.current_leader_epoch)
        response = (
            _read(node, parked.replica, partition, parked.max_bytes, version, now_ms)
            if error is None
            else _partition_error(node, version, error)
        )
        node.respond(parked.token, response)
    node.parked_until_ms = None


# --- the follower: a response ---------------------------------------------------------------------


def epoch_of_response(node: QuorumNode, response: FetchResponse) -> ResponseEpoch | bool | None:
    """The leader and epoch of the peer; False for a response about another partition.

    Shapes:  -> None for most responses: without an error, of the leader that this node follows.
    """
    partition = wire.only_fetched_partition(response)
    if partition is None:
        return False
    leader, role = partition.current_leader, node.role
    error_code, epoch = partition.error_code, leader.leader_epoch
    is_of_leader = epoch == role.epoch and leader.leader_id == role.leader_id
    if not error_code and is_of_leader and isinstance(role, FollowerState):
        return None
    leader_id = None if leader.leader_id < 0 else leader.leader_id
    endpoints = wire.response_endpoints(response, leader_id, node.listener_name)
    return ResponseEpoch(ErrorCode.for_code(error_code), leader_id, epoch, endpoints)


def handle_response(node: QuorumNode, node_id: int, response: FetchResponse, now_ms: int) -> bool:
    """Follow the leader's log by one step; an error or a damaged position changes nothing.

    Errors:  InconsistentState where ``Rules.leader_found_again_is_fatal``, unless it is a follower.
    """
    partition = response.responses[0].partitions[0]
    # An unattached node fetches as well, to learn of the leader. Only what comes from a leader that
    # it follows may move its log.
    role = node.role
    if not isinstance(role, FollowerState):
        if node.rules.leader_found_again_is_fatal:
            raise InconsistentState(f"a response to Fetch, and the node is {role.name}")
        return False
    if partition.error_code:
        return False
    snapshot = partition.snapshot_id
    if partition.diverging_epoch.epoch >= 0:
        if not _truncate(node, role, partition.diverging_epoch):
            return False
    elif snapshot.end_offset >= 0 or snapshot.epoch >= 0:
        snapshot_id = (snapshot.end_offset, snapshot.epoch)
        below_committed = role.high_watermark is not None and snapshot_id[0] < role.high_watermark
        # Otherwise listeners would be sent back before what they have consumed.
        if min(snapshot_id) < 0 or below_committed:
            return False
        is_here = snapshot_id in node.log.log.snapshots or snapshot_id == BOOTSTRAP_SNAPSHOT
        # One that is here already ends the download of another too. Otherwise this node would fetch
        # on a snapshot that its leader names no more, until that is deleted there.
        role.fetching_snapshot = None if is_here else FetchingSnapshot(snapshot_id=snapshot_id)
    else:
        _append_as_follower(node, partition.records)
        _update_follower_high_watermark(node, role, partition.high_watermark)
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
    # Again, for the end that it comes to here: an epoch that is unknown in this log ends where the
    # largest one below it does, which may be below what is committed.
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


def _append_as_follower(node: QuorumNode, records: Any) -> None:
    """Append what follows the end, up to the first batch of an epoch yet to come."""
    if not records:
        return
    try:
        batches = Records.of(records).batches
    except InvalidBatch:
        # Damaged bytes are not appended, but the leader has served: the fetch timer starts again.
        return
    appended, log = False, node.log
    for batch in batches:
        # A response that was read after the leader lost the epoch can hold batches of the next one
        # (KAFKA-18723). Appended here, they would let this log end in an epoch that the node is not
        # in yet: its votes are compared with that end.
        if batch.leader_epoch > node.role.epoch:
            break
        if batch.base_offset != log.log.end_offset or batch.leader_epoch < log.last_epoch:
            break
        log.log.append(batch)
        node.emit(Appended(batch))
        appended = True
    if appended:
        # Before the next Fetch leaves, since its offset counts towards the high watermark. A
        # replica about to be added counts as a voter from its first fetch on, so it flushes too.
        if node.is_voter or node.can_become_voter or node.settings.observers_flush:
            node.flush()
        node.read_control_records()


def _update_follower_high_watermark(node: QuorumNode, role: FollowerState, leaders: int) -> None:
    """Follow the leader's high watermark, as far as this log goes; it never goes back."""
    if leaders < 0:
        return
    high_watermark = min(node.log.end_offset, leaders)
    if role.high_watermark is not None and high_watermark <= role.high_watermark:
        return
    role.high_watermark = high_watermark
    node.log.high_watermark = max(node.log.high_watermark, high_watermark)
    node.listeners_behind = True
    node.emit(HighWatermarkChanged(high_watermark))
