"""RemoveRaftVoter: append the smaller voter set; a leader may remove itself.

Versions: 0.
Source:   KIP-853; RemoveVoterHandler.handleRemoveVoterRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import RemoveRaftVoterRequest
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import LeaderState, RemoveVoterHandlerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.refusals import InvalidRequest
from minicluster.quorum.state.voters import ReplicaKey
from minicluster.quorum.voter_changes import messages, preconditions
from minicluster.quorum.voter_changes.admin_requests import AdminResponse, respond


def handle(
    node: QuorumNode, request: RemoveRaftVoterRequest, version: int, token: Any, now_ms: int
) -> AdminResponse | None:
    """Append the smaller voter set; the response comes with its commit (None here)."""
    role = node.role
    assert isinstance(role, LeaderState)
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    if not key.is_complete:
        error = validation.invalid(node, InvalidRequest.VOTER_WITHOUT_DIRECTORY)
        return respond(request, error, "Remove voter request didn't include a valid voter")
    refusal = preconditions.refuse_change(node, role, now_ms, change="removing")
    if refusal is not None:
        return respond(request, *refusal)
    voters = node.history.voters.remove(key)
    if voters is None:
        message = messages.cannot_remove(key, node.history.voters)
        return respond(request, ErrorCode.VOTER_NOT_FOUND, message)
    role.pending_remove = RemoveVoterHandlerState(
        token=token,
        last_offset=role.accumulator.append_control((voters.to_record(),), now_ms),
        deadline_ms=now_ms + node.settings.request_timeout_ms,
    )
    return None
