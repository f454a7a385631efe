"""RemoveRaftVoter: take a voter out of the set; a leader may take itself out.

Versions: 0.
Source:   KIP-853; RemoveVoterHandler.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import LeaderState, RemoveVoterHandlerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import ReplicaKey
from minicluster.quorum.voter_changes import preconditions


def remove_voter(
    node: QuorumNode, token: Any, request: RemoveRaftVoterRequest, version: int, now_ms: int
) -> RemoveRaftVoterResponse | None:
    """Append the smaller voter set; the answer comes with its commit (None here)."""
    refusal = _refuse(node, request, now_ms)
    if refusal is not None:
        return RemoveRaftVoterResponse(error_code=int(refusal[0]), error_message=refusal[1])
    role = node.role
    assert isinstance(role, LeaderState)
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    voters = node.history.voters.remove(key)
    if voters is None:
        why = f"{key.id} is no voter with that directory, or the last one"
        return RemoveRaftVoterResponse(error_code=int(ErrorCode.VOTER_NOT_FOUND), error_message=why)
    role.pending_remove = RemoveVoterHandlerState(
        token=token,
        last_offset=role.accumulator.append_control((voters.to_record(),), now_ms),
        deadline_ms=now_ms + node.settings.request_timeout_ms,
    )
    return None


def _refuse(
    node: QuorumNode, request: RemoveRaftVoterRequest, now_ms: int
) -> preconditions.Refusal | None:
    if not validation.is_this_cluster(node, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID, "the request is for another cluster"
    error = validation.refuse_leader_request(node, node.epoch)
    if error is not None:
        return error, ""
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    if key.directory_id is None:
        return ErrorCode.INVALID_REQUEST, "a voter is named by its id and directory id"
    assert isinstance(node.role, LeaderState)
    return preconditions.refuse_change(node, node.role, now_ms)
