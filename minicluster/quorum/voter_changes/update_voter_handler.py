"""UpdateRaftVoter: a voter's endpoints and supported versions, sent by the voter itself.

Versions: 0.
Source:   KIP-853; UpdateVoterHandler.handleUpdateVoterRequest.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import UpdateRaftVoterRequest, UpdateRaftVoterResponse
from minicluster.quorum import message_epoch, wire
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.refusals import InvalidRequest
from minicluster.quorum.state.voters import ReplicaKey, VersionRange, Voter
from minicluster.quorum.voter_changes import preconditions


def validate(
    node: QuorumNode, request: UpdateRaftVoterRequest, version: int
) -> UpdateRaftVoterResponse | None:
    """Refuse another cluster."""
    if validation.has_valid_cluster_id(node, request.cluster_id):
        return None
    return respond(node, request, version, ErrorCode.INCONSISTENT_CLUSTER_ID)


def check_epoch(node: QuorumNode, request: UpdateRaftVoterRequest, now_ms: int) -> ErrorCode | None:
    """The epoch of the leader that the voter follows."""
    return message_epoch.check_leader_request(node, request.current_leader_epoch)


def respond(
    node: QuorumNode, request: UpdateRaftVoterRequest, version: int, error: ErrorCode
) -> UpdateRaftVoterResponse:
    """The response with an error or none, and with the leader that this node has learnt of."""
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


def handle(
    node: QuorumNode, request: UpdateRaftVoterRequest, version: int, token: Any, now_ms: int
) -> UpdateRaftVoterResponse:
    """Replace the voter's entry: by a record or, with kraft.version 0, in memory.

    In memory it is what the upgrade of kraft.version writes, which needs every voter's directory.
    """
    error = _update(node, request, now_ms)
    return respond(node, request, version, error)


def _update(node: QuorumNode, request: UpdateRaftVoterRequest, now_ms: int) -> ErrorCode:
    role = node.role
    assert isinstance(role, LeaderState)
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    endpoints = wire.named_endpoints(request.listeners)
    feature = request.kraft_version_feature
    versions = VersionRange(feature.min_supported_version, feature.max_supported_version)
    if not key.is_complete:
        return validation.invalid(node, InvalidRequest.VOTER_WITHOUT_DIRECTORY)
    if not preconditions.has_default_listener(node, endpoints):
        return validation.invalid(node, InvalidRequest.LISTENER_MISSING)
    if not 0 <= versions.min <= versions.max:
        return validation.invalid(node, InvalidRequest.IMPOSSIBLE_VERSIONS)
    refusal = preconditions.refuse_change(node, role, now_ms, change=None)
    if refusal is not None:
        return refusal[0]
    if node.history.kraft_version == 0 and role.upgraded_version is not None:
        return ErrorCode.REQUEST_TIMED_OUT
    if not versions.holds(node.history.kraft_version):
        return validation.invalid(node, InvalidRequest.KRAFT_VERSION_UNSUPPORTED)
    voter = Voter(key=key, endpoints=endpoints, versions=versions)
    is_static = node.history.kraft_version == 0
    voters = node.history.voters.update(voter, by_id=is_static)
    if voters is None:
        return ErrorCode.VOTER_NOT_FOUND
    if key.id == node.key.id:
        return validation.contradiction(node, InvalidRequest.UPDATE_OF_OWN_ID)
    if is_static:
        role.reported_voters[key.id] = voter
    else:
        role.accumulator.append_control((voters.to_record(),), now_ms)
    role.on_contact(key, now_ms)
    return ErrorCode.NONE
