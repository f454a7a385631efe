"""The preconditions of any change of the voter set, in Kafka's order of refusals.

Source:  KIP-853; AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Endpoints, node_at
from minicluster.quorum.voter_changes import handler_state, messages

Refusal = tuple[ErrorCode, str]


def has_default_listener(node: QuorumNode, endpoints: Endpoints) -> bool:
    """The voter has an endpoint of the listener that the quorum uses."""
    return node_at(0, endpoints, node.listener_name) is not None


def refuse_change(
    node: QuorumNode, role: LeaderState, now_ms: int, *, change: str | None
) -> Refusal | None:
    """Refuse a change while another is not committed.

    The majorities of two voter sets overlap only if they differ by one voter, and a leader that has
    not committed its own epoch may not have the last voter set (KIP-853).

    Shapes:  ``change`` is adding or removing, which need kraft.version 1; None for an update.
    """
    if handler_state.expire(node, role, now_ms):
        return ErrorCode.REQUEST_TIMED_OUT, messages.PREVIOUS_CHANGE
    if role.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT, messages.NO_HIGH_WATERMARK
    if change is not None and node.history.kraft_version == 0:
        return ErrorCode.UNSUPPORTED_VERSION, messages.static_voters(change, 0)
    offset = node.history.voters_offset
    if offset is not None and offset >= role.high_watermark:
        message = messages.uncommitted_voters(offset, role.high_watermark)
        return ErrorCode.REQUEST_TIMED_OUT, message
    return None
