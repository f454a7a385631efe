"""Faults of the quorum."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minicluster.planting import plant
from minicluster.protocol.records import (
    ConfigRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    VersionedRecord,
)
from minicluster.quorum import (
    elections,
    listener_context,
    polling,
    replication,
    snapshots,
    transitions,
)
from minicluster.quorum.errors import VoteRejection
from minicluster.quorum.state.epoch_state import EpochState
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import ListenerContext, QuorumNode
from minicluster.quorum.state.voters import ReplicaKey
from minicluster.values import replace

Records = tuple[VersionedRecord, ...]


@plant(transitions.resigned_state, "z32_leader_resumes_epoch")
def _z32(
    original: Callable[..., EpochState],
    node: QuorumNode,
    epoch: int,
    preferred: tuple[ReplicaKey, ...],
    now_ms: int,
) -> EpochState:
    is_restart = not isinstance(node.role, LeaderState)
    if not is_restart or not node.is_voter:
        return original(node, epoch, preferred, now_ms)
    node.hit("Z32")
    candidate = transitions.candidate_state(node, epoch, now_ms)
    for voter in node.history.voters.ids:
        candidate.election.record(voter, granted=True)
    return candidate


@plant(transitions.persist_vote, "s22_vote_not_persisted")
def _s22(original: Callable[..., None], node: QuorumNode) -> None:
    node.hit("S22")


@plant(elections.vote_rejection, "s23_vote_for_shorter_log")
def _s23(
    original: Callable[..., VoteRejection | None],
    node: QuorumNode,
    candidate: ReplicaKey,
    end: elections.LogEnd,
    pre_vote: bool,
) -> VoteRejection | None:
    rejection = original(node, candidate, end, pre_vote)
    if rejection is VoteRejection.LOG_BEHIND:
        node.hit("S23")
        return None
    return rejection


@plant(polling.check_quorum_expired, "z34_no_check_quorum")
def _z34(original: Callable[..., bool], node: QuorumNode, role: LeaderState, now_ms: int) -> bool:
    if original(node, role, now_ms):
        node.hit("Z34")
    return False


@plant(replication.on_append, "s24_commits_below_majority")
def _s24(original: Callable[..., None], node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    original(node, role, now_ms)
    ends = sorted((-1 if end is None else end for end in role.end_offsets), reverse=True)
    reached = ends[max(0, len(ends) // 2 - 1)]
    if reached >= 0 and role.advance_to(reached):
        node.hit("S24")
        replication.on_high_watermark(node, role, now_ms)


@plant(listener_context.update, "s18_publishes_uncommitted")
def _s18(
    original: Callable[..., None], node: QuorumNode, name: str, context: ListenerContext, end: int
) -> None:
    if not node.is_voter and node.log.end_offset > end:
        node.hit("S18")
        end = node.log.end_offset
    original(node, name, context, end)


@plant(QuorumNode.flush, "s59_unflushed_counts")
def _s59(original: Callable[..., None], node: QuorumNode) -> None:
    if isinstance(node.role, LeaderState):
        node.hit("S59")
    else:
        original(node)


@plant(snapshots.create, "s60_snapshot_has_time_of_writing")
def _s60(
    original: Callable[..., bool],
    node: QuorumNode,
    snapshot_id: tuple[int, int],
    records: Sequence[VersionedRecord],
    last_contained_log_timestamp: int,
    content: bytes | None,
    now_ms: int,
) -> bool:
    created = original(node, snapshot_id, records, now_ms, content, now_ms)
    if created and content is None and now_ms != last_contained_log_timestamp:
        node.hit("S60")
    return created


@plant(snapshots.create, "z24_snapshot_without_configs")
def _z24(original: Callable[..., bool], node: QuorumNode, *created: Any) -> bool:
    return _of_other_records(original, node, created, "Z24", _without(ConfigRecord))


@plant(snapshots.create, "z25_snapshot_without_producer_ids")
def _z25(original: Callable[..., bool], node: QuorumNode, *created: Any) -> bool:
    return _of_other_records(original, node, created, "Z25", _without(ProducerIdsRecord))


@plant(snapshots.create, "s20_snapshot_resets_partition_epochs")
def _s20(original: Callable[..., bool], node: QuorumNode, *created: Any) -> bool:
    return _of_other_records(original, node, created, "S20", _first_epochs)


def _of_other_records(
    original: Callable[..., bool],
    node: QuorumNode,
    created: tuple[Any, ...],
    zoo_id: str,
    change: Callable[[Records], Records],
) -> bool:
    snapshot_id, records, *rest = created
    changed = change(records)
    if changed != records:
        node.hit(zoo_id)
    return original(node, snapshot_id, changed, *rest)


def _without(kind: type) -> Callable[[Records], Records]:
    return lambda records: tuple(r for r in records if not isinstance(r.record, kind))


def _first_epochs(records: Records) -> Records:
    return tuple(
        VersionedRecord(replace(r.record, partition_epoch=0), r.version)
        if isinstance(r.record, PartitionRecord)
        else r
        for r in records
    )


@plant(replication.append, "z23_deletion_in_pieces")
def _z23(
    original: Callable[..., int],
    node: QuorumNode,
    epoch: int,
    records: Sequence[VersionedRecord | bytes],
    now_ms: int,
) -> int:
    """The controller counts the hit, where it decides the deletion."""
    role = node.role
    if not isinstance(role, LeaderState) or not any(map(_is_deletion, records)):
        return original(node, epoch, records, now_ms)
    last_offset = role.accumulator.next_offset - 1
    for record in records:
        role.accumulator.complete_current_batch()
        last_offset = original(node, epoch, [record], now_ms)
    return last_offset


def _is_deletion(record: VersionedRecord | bytes) -> bool:
    return isinstance(record, VersionedRecord) and isinstance(record.record, RemoveTopicRecord)
