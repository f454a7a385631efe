"""UpdateRaftVoter: a voter's endpoints and versions, as it tells the leader itself.

Versions: 0.
Source:   KIP-853; UpdateVoterHandler.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from minicluster.quorum import wire
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import ReplicaKey, VersionRange, Voter
from minicluster.quorum.voter_changes import preconditions


def update_voter(
    node: QuorumNode, request: UpdateRaftVoterRequest, version: int, now_ms: int
) -> UpdateRaftVoterResponse:
    """Take a voter's news up, as a record or, with kraft.version 0, in memory."""
    error = _update(node, request, now_ms)
    leader = node.leader_node
    return UpdateRaftVoterResponse(
        error_code=int(error),
        current_leader=UpdateRaftVoterResponse.CurrentLeader(
            leader_id=node.leader_id,
            leader_epoch=node.epoch,
            host="" if leader is None else leader.host,
            port=0 if leader is None else leader.port,
        ),
    )


def _update(node: QuorumNode, request: UpdateRaftVoterRequest, now_ms: int) -> ErrorCode:
    if not validation.is_this_cluster(node, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    refusal = validation.refuse_leader_request(node, request.current_leader_epoch)
    if refusal is not None:
        return refusal
    role = node.role
    assert isinstance(role, LeaderState)
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    endpoints = wire.named_endpoints(request.listeners)
    feature = request.kraft_version_feature
    versions = VersionRange(feature.min_supported_version, feature.max_supported_version)
    if (
        key.directory_id is None
        or not preconditions.has_listener(node, endpoints)
        or not 0 <= versions.min <= versions.max
    ):
        return ErrorCode.INVALID_REQUEST
    blocked = preconditions.refuse_change(node, role, now_ms, needs_version=False)
    if blocked is not None:
        return blocked[0]
    if node.history.kraft_version == 0 and role.upgraded_version is not None:
        return ErrorCode.REQUEST_TIMED_OUT
    if not versions.holds(node.history.kraft_version):
        return ErrorCode.INVALID_REQUEST
    voter = Voter(key=key, endpoints=endpoints, versions=versions)
    static = node.history.kraft_version == 0
    voters = node.history.voters.update(voter, by_id=static)
    if voters is None:
        return ErrorCode.VOTER_NOT_FOUND
    if key.id == node.key.id:
        return validation.contradiction(node, "the leader tells itself of its endpoints")
    if static:
        role.reported_voters[key.id] = voter
    else:
        role.accumulator.append_control((voters.to_record(),), now_ms)
    role.on_contact(key, now_ms)
    return ErrorCode.NONE
