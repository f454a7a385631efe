"""Fetch, as the leader answers it: records, a diverging epoch, a snapshot, or a wait.

Versions: 4-18; v18 brings the replica's high watermark, which can end a wait (KIP-1166).
Source:   KafkaRaftClient.handleFetchRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.log.batch import Records
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import FetchRequest, FetchResponse
from minicluster.quorum import wire
from minicluster.quorum.effects import HighWatermarkChanged
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import ParkedFetch, QuorumNode
from minicluster.quorum.state.raft_log import Position, Validation
from minicluster.quorum.state.voters import ReplicaKey
from minicluster.quorum.voter_changes import handler_state

FIRST_WITH_REPLICA_STATE = 15


def fetch(
    node: QuorumNode, token: Any, request: FetchRequest, version: int, now_ms: int
) -> FetchResponse | None:
    """Answer a Fetch, or park it (None)."""
    if not validation.is_this_cluster(node, request.cluster_id):
        return wire.fetch_error(ErrorCode.INCONSISTENT_CLUSTER_ID)
    partition = wire.only_fetch_partition(request)
    if partition is None:
        return wire.fetch_error(ErrorCode.INVALID_REQUEST)
    if (
        request.max_wait_ms < 0
        or partition.fetch_offset < 0
        or partition.last_fetched_epoch < 0
        or partition.current_leader_epoch < 0
        or partition.last_fetched_epoch > partition.current_leader_epoch
    ):
        return _error(node, version, ErrorCode.INVALID_REQUEST)
    replica_id = (
        request.replica_state.replica_id
        if version >= FIRST_WITH_REPLICA_STATE
        else request.replica_id
    )
    replica = ReplicaKey.of(replica_id, partition.replica_directory_id)
    response = answer(node, replica, partition, request.max_bytes, version, now_ms)
    if request.max_wait_ms == 0 or _says_something(response, partition):
        return response
    node.parked.append(
        ParkedFetch(
            token=token,
            version=version,
            replica=replica,
            partition=partition,
            max_bytes=request.max_bytes,
            deadline_ms=now_ms + request.max_wait_ms,
            prepared=response,
        )
    )
    return None


def _says_something(response: FetchResponse, asked: FetchRequest.FetchPartition) -> bool:
    told = response.responses[0].partitions[0]
    return bool(
        told.error_code != ErrorCode.NONE
        or told.records
        or told.diverging_epoch.epoch >= 0
        or told.snapshot_id.epoch >= 0
        or told.high_watermark > asked.high_watermark
    )


def answer(
    node: QuorumNode,
    replica: ReplicaKey,
    partition: FetchRequest.FetchPartition,
    max_bytes: int,
    version: int,
    now_ms: int,
) -> FetchResponse:
    """Judge a fetch in the present epoch; a valid one counts as the replica's progress.

    One that asks for an offset inside a batch has only what is before that batch.
    """
    refusal = validation.refuse_leader_request(node, partition.current_leader_epoch)
    if refusal is not None:
        return _error(node, version, refusal)
    role = node.role
    assert isinstance(role, LeaderState)
    offset = partition.fetch_offset
    verdict = _validate(node, offset, partition.last_fetched_epoch)
    records = Records(())
    if verdict.position is Position.VALID:
        if replica.id == node.key.id:
            return _error(node, version, ErrorCode.UNKNOWN_SERVER_ERROR)
        records = Records(node.log.log.read(offset, max_bytes))
        first = records.batches[0].base_offset if records.batches else offset
        if replica.id >= 0 and role.on_fetch(replica, min(offset, first), now_ms):
            on_high_watermark(node, role, now_ms)
    mark = -1 if role.high_watermark is None else role.high_watermark
    if verdict.position is Position.VALID and not records:
        return _nothing_new(node, version, mark)
    diverging = verdict.position is Position.DIVERGING
    snapshot = verdict.position is Position.SNAPSHOT
    return wire.fetch_answer(
        version,
        node,
        high_watermark=mark,
        log_start=node.log.start_offset,
        records=records,
        diverging=(verdict.epoch, verdict.end_offset) if diverging else None,
        snapshot_id=(verdict.end_offset, verdict.epoch) if snapshot else None,
    )


def _nothing_new(node: QuorumNode, version: int, high_watermark: int) -> FetchResponse:
    """The answer without records, the same value again as long as nothing changes."""
    key = (version, node.epoch, high_watermark, node.log.start_offset)
    if node.last_answer[0] != key:
        answer = wire.fetch_answer(
            version,
            node,
            high_watermark=high_watermark,
            log_start=node.log.start_offset,
            records=Records(()),
        )
        node.last_answer = (key, answer)
    return node.last_answer[1]  # type: ignore[no-any-return]


def _validate(node: QuorumNode, offset: int, last_epoch: int) -> Validation:
    snapshot_id = node.log.snapshot_to_offer()
    if offset == 0 and snapshot_id is not None:
        return Validation(Position.SNAPSHOT, *snapshot_id)
    return node.log.validate(offset, last_epoch)


def _error(node: QuorumNode, version: int, error: ErrorCode) -> FetchResponse:
    return wire.fetch_answer(
        version, node, error=error, log_start=node.log.start_offset, records=Records(())
    )


def on_high_watermark(node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    """More is committed: answer what waited for it."""
    assert role.high_watermark is not None
    node.log.high_watermark = max(node.log.high_watermark, role.high_watermark)
    node.news = True
    if role.committed_early:
        node.hit("S24")
    node.emit(HighWatermarkChanged(role.high_watermark, node.history.voters))
    handler_state.on_high_watermark(node, role)
    wake_all(node, now_ms)


def wake_all(node: QuorumNode, now_ms: int) -> None:
    """Judge every parked fetch anew and answer it with what there is, even nothing."""
    while node.parked:
        parked = node.parked.pop(0)
        response = answer(
            node, parked.replica, parked.partition, parked.max_bytes, parked.version, now_ms
        )
        node.reply(parked.token, response)
