"""The one change of the voter set that may be under way: its end, good or bad.

Source:  LeaderState's add and remove handler states.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import AddRaftVoterResponse, RemoveRaftVoterResponse
from minicluster.quorum.state.leader_state import (
    AddVoterHandlerState,
    LeaderState,
    RemoveVoterHandlerState,
)
from minicluster.quorum.state.node import QuorumNode


def answer_add(
    node: QuorumNode, change: AddVoterHandlerState, error: ErrorCode, why: str | None
) -> None:
    """Answer an AddRaftVoter, once."""
    if not change.answered:
        change.answered = True
        node.reply(change.token, AddRaftVoterResponse(error_code=int(error), error_message=why))


def answer_remove(
    node: QuorumNode, change: RemoveVoterHandlerState, error: ErrorCode, why: str | None
) -> None:
    """Answer a RemoveRaftVoter."""
    node.reply(change.token, RemoveRaftVoterResponse(error_code=int(error), error_message=why))


def abandon(node: QuorumNode, role: LeaderState) -> None:
    """Leadership is lost: what is pending fails."""
    _end(node, role, ErrorCode.NOT_LEADER_OR_FOLLOWER, "The leader has changed")


def expire(node: QuorumNode, role: LeaderState, now_ms: int) -> bool:
    """Give up what has waited too long; -> whether a change is still pending."""
    if role.pending_add is None and role.pending_remove is None:
        return False
    for change in (role.pending_add, role.pending_remove):
        if change is not None and now_ms >= change.deadline_ms:
            _end(node, role, ErrorCode.REQUEST_TIMED_OUT, "The change was not committed in time")
    return role.pending_add is not None or role.pending_remove is not None


def on_high_watermark(node: QuorumNode, role: LeaderState) -> None:
    """Answer a change whose record is committed; a leader that removed itself resigns."""
    mark = role.high_watermark
    add, remove = role.pending_add, role.pending_remove
    if mark is None:
        return
    if add is not None and add.last_offset is not None and add.last_offset < mark:
        role.pending_add = None
        answer_add(node, add, ErrorCode.NONE, None)
    if remove is not None and remove.last_offset < mark:
        role.pending_remove = None
        answer_remove(node, remove, ErrorCode.NONE, None)
        if not node.is_voter:
            role.resign_requested = True
            node.moved = True


def next_deadline_ms(role: LeaderState) -> int | None:
    """When a pending change is given up."""
    if role.pending_add is None and role.pending_remove is None:
        return None
    return min(c.deadline_ms for c in (role.pending_add, role.pending_remove) if c is not None)


def _end(node: QuorumNode, role: LeaderState, error: ErrorCode, why: str) -> None:
    add, role.pending_add = role.pending_add, None
    remove, role.pending_remove = role.pending_remove, None
    if add is not None:
        answer_add(node, add, error, why)
    if remove is not None:
        answer_remove(node, remove, error, why)
