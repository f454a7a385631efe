"""The preconditions of any change of the voter set, in Kafka's order of refusals.

Source:  KIP-853; AddVoterHandler, RemoveVoterHandler, UpdateVoterHandler.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.refusals import InvalidRequest
from minicluster.quorum.state.voters import Endpoints, node_at
from minicluster.quorum.voter_changes import handler_state

Refusal = tuple[ErrorCode, str]


def has_default_listener(node: QuorumNode, endpoints: Endpoints) -> bool:
    """The voter has an endpoint of the listener that the quorum uses."""
    return node_at(0, endpoints, node.listener_name) is not None


def invalid(node: QuorumNode, reason: InvalidRequest) -> Refusal:
    """INVALID_REQUEST, with its reason in the response."""
    return validation.invalid(node, reason), reason.value


def refuse_change(
    node: QuorumNode, role: LeaderState, now_ms: int, *, needs_version: bool = True
) -> Refusal | None:
    """Refuse a change while another is not committed.

    The majorities of two voter sets overlap only if they differ by one voter, and a leader that has
    not committed its own epoch may not have the last voter set (KIP-853).
    """
    if handler_state.expire(node, role, now_ms):
        return ErrorCode.REQUEST_TIMED_OUT, "another change of the voters is pending"
    if role.high_watermark is None:
        return ErrorCode.REQUEST_TIMED_OUT, "the leader has not committed its epoch yet"
    if needs_version and node.history.kraft_version == 0:
        return ErrorCode.UNSUPPORTED_VERSION, "kraft.version is 0: the voters are static"
    offset = node.history.voters_offset
    if offset is not None and offset >= role.high_watermark:
        return ErrorCode.REQUEST_TIMED_OUT, "the last change of the voters is not committed yet"
    return None
