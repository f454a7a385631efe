"""The leader's side of replication: fetches move the high watermark, which completes fetches.

A valid fetch of an offset shows that everything below it is flushed at the replica. What a majority
of the voters has, from the leader's own epoch on, is committed (Raft, 5.4.2). Fetches that had
nothing to wait for then are responded to with what there is.

Source:  KafkaRaftClient.tryCompleteFetchRequest, onUpdateLeaderHighWatermark;
         LeaderState.updateReplicaState, updateLocalState.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.log.batch import RecordBatch
from minicluster.log.records import Records
from minicluster.planting import step
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchRequest, FetchResponse
from minicluster.protocol.records import VersionedRecord
from minicluster.quorum import message_epoch, wire
from minicluster.quorum.effects import HighWatermarkChanged
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.raft_log import VALID, Position, Validation
from minicluster.quorum.state.voters import ReplicaKey
from minicluster.quorum.voter_changes import handler_state


def read(
    node: QuorumNode,
    replica: ReplicaKey,
    partition: FetchRequest.FetchPartition,
    max_bytes: int,
    version: int,
    now_ms: int,
) -> FetchResponse:
    """Read what a replica fetches as the leader; a valid fetch counts as the replica's progress.

    A fetch of an offset inside a batch shows only what is before that batch.
    """
    leader = node.role
    assert isinstance(leader, LeaderState)
    offset = partition.fetch_offset
    verdict = _validate(node, offset, partition.last_fetched_epoch)
    if verdict is not VALID:
        return _elsewhere(node, leader, version, verdict)
    if replica.id == node.key.id:
        return fetch_refusal(node, version, ErrorCode.UNKNOWN_SERVER_ERROR)
    batches = node.log.log.read(offset, max_bytes)
    shown = min(offset, batches[0].base_offset) if batches else offset
    if replica.id >= 0 and update_replica_state(node, leader, replica, shown, now_ms):
        _on_high_watermark(node, leader, now_ms)
    return _with_batches(node, leader, version, batches)


def fetch_refusal(node: QuorumNode, version: int, error: ErrorCode) -> FetchResponse:
    """The response that refuses the partition of a Fetch."""
    return wire.fetch_response(
        node, version, error=error, log_start=node.log.start_offset, records=Records(())
    )


def _with_batches(
    node: QuorumNode, leader: LeaderState, version: int, batches: tuple[RecordBatch, ...]
) -> FetchResponse:
    """The response with batches, or none, and the same value again for the next replica.

    In a leader's epoch nothing is truncated: the same offsets are the same batches.
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


@step
def append(
    node: QuorumNode,
    leader: LeaderState,
    epoch: int,
    records: Sequence[VersionedRecord | bytes],
    now_ms: int,
) -> int:
    """Add records to the batch that the leader writes next; -> offset of the last one.

    Errors:  as ``BatchAccumulator.append``.
    """
    return leader.accumulator.append(epoch, records, now_ms)


def on_append(node: QuorumNode, leader: LeaderState, now_ms: int) -> None:
    """The leader's log has grown and is flushed: a leader alone commits by that."""
    if update_local_state(node, leader):
        _on_high_watermark(node, leader, now_ms)
    complete_parked_fetches(node, now_ms)


@step
def update_local_state(node: QuorumNode, leader: LeaderState) -> bool:
    """Record the leader's own end; -> the high watermark has advanced."""
    return leader.on_local_end(node.log.end_offset, node.history.voters)


@step
def update_replica_state(
    node: QuorumNode, leader: LeaderState, replica: ReplicaKey, offset: int, now_ms: int
) -> bool:
    """Record a replica's end; -> the high watermark has advanced."""
    return leader.on_fetch(replica, offset, now_ms)


def _on_high_watermark(node: QuorumNode, leader: LeaderState, now_ms: int) -> None:
    assert leader.high_watermark is not None
    node.log.high_watermark = max(node.log.high_watermark, leader.high_watermark)
    node.listeners_behind = True
    node.emit(HighWatermarkChanged(leader.high_watermark, node.history.voters))
    handler_state.on_high_watermark(node, leader)
    complete_parked_fetches(node, now_ms)


def complete_parked_fetches(node: QuorumNode, now_ms: int) -> None:
    """Respond to every parked fetch with what there is now, even nothing.

    Its epoch is compared again: the node may have left it while the fetch was parked.
    """
    while node.parked:
        parked = node.parked.pop(0)
        partition, version = parked.partition, parked.version
        error = message_epoch.check_leader_request(node, partition.current_leader_epoch)
        response = (
            read(node, parked.replica, partition, parked.max_bytes, version, now_ms)
            if error is None
            else fetch_refusal(node, version, error)
        )
        node.respond(parked.token, response)
    node.parked_until_ms = None
