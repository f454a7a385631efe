"""The one change of the voter set that may be under way, and its end.

Source:  LeaderState's addVoterHandlerState and removeVoterHandlerState.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.error_responses.texts import TEXTS
from minicluster.protocol.messages import AddRaftVoterResponse, RemoveRaftVoterResponse
from minicluster.quorum.state.leader_state import (
    AddVoterHandlerState,
    LeaderState,
    RemoveVoterHandlerState,
)
from minicluster.quorum.state.node import QuorumNode


def complete_add(
    node: QuorumNode, change: AddVoterHandlerState, error: ErrorCode, message: str | None
) -> None:
    """Respond to an AddRaftVoter, once: it may have been acknowledged before the commit."""
    if not change.is_completed:
        change.is_completed = True
        response = AddRaftVoterResponse(error_code=int(error), error_message=message)
        node.respond(change.token, response)


def complete_remove(
    node: QuorumNode, change: RemoveVoterHandlerState, error: ErrorCode, message: str | None
) -> None:
    """Respond to a RemoveRaftVoter."""
    response = RemoveRaftVoterResponse(error_code=int(error), error_message=message)
    node.respond(change.token, response)


def on_leadership_lost(node: QuorumNode, role: LeaderState) -> None:
    """Fail what is pending: the next leader may commit the record, or truncate it."""
    _fail(node, role, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def expire(node: QuorumNode, role: LeaderState, now_ms: int) -> bool:
    """Fail what has waited too long; -> a change is still pending."""
    if role.pending_add is None and role.pending_remove is None:
        return False
    for change in (role.pending_add, role.pending_remove):
        if change is not None and now_ms >= change.deadline_ms:
            _fail(node, role, ErrorCode.REQUEST_TIMED_OUT)
    return role.pending_add is not None or role.pending_remove is not None


def on_high_watermark(node: QuorumNode, role: LeaderState) -> None:
    """Complete a change whose record is committed.

    A leader that removed itself resigns only now: it had to commit its own removal.

    Source:  AddVoterHandler.highWatermarkUpdated, RemoveVoterHandler.highWatermarkUpdated.
    """
    # Committed means below the high watermark, which is computed with the new voters: the set that
    # the record holds counts since its append.
    high_watermark = role.high_watermark
    add, remove = role.pending_add, role.pending_remove
    if high_watermark is None:
        return
    if add is not None and add.last_offset is not None and add.last_offset < high_watermark:
        role.pending_add = None
        complete_add(node, add, ErrorCode.NONE, None)
    if remove is not None and remove.last_offset < high_watermark:
        role.pending_remove = None
        complete_remove(node, remove, ErrorCode.NONE, None)
        if not node.is_voter:
            role.resign_requested = True
            node.poll_again = True


def next_deadline_ms(role: LeaderState) -> int | None:
    """The time at which a pending change fails."""
    if role.pending_add is None and role.pending_remove is None:
        return None
    return min(c.deadline_ms for c in (role.pending_add, role.pending_remove) if c is not None)


def _fail(node: QuorumNode, role: LeaderState, error: ErrorCode) -> None:
    message = TEXTS[error]
    add, role.pending_add = role.pending_add, None
    remove, role.pending_remove = role.pending_remove, None
    if add is not None:
        complete_add(node, add, error, message)
    if remove is not None:
        complete_remove(node, remove, error, message)
