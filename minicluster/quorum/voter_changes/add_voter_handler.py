"""AddRaftVoter: request the new voter's ApiVersions, then append the larger voter set.

Versions: 0-1. v1: AckWhenCommitted, false for a response before the commit (auto-join).
Source:   KIP-853; AddVoterHandler.handleAddVoterRequest, handleApiVersionsResponse.
"""

from __future__ import annotations

from typing import Any

from minicluster.metadata.metadata_version import KRAFT_VERSION
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from minicluster.quorum import wire
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import AddVoterHandlerState, LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.refusals import InvalidRequest
from minicluster.quorum.state.voters import ReplicaKey, VersionRange, Voter, node_at
from minicluster.quorum.voter_changes import handler_state, messages, preconditions
from minicluster.quorum.voter_changes.admin_requests import AdminResponse, respond

API_VERSIONS_VERSION = 4
SOFTWARE_NAME = "apache-kafka-java"
SOFTWARE_VERSION = "4.3.0"


def handle(
    node: QuorumNode, request: AddRaftVoterRequest, version: int, token: Any, now_ms: int
) -> AdminResponse | None:
    """Begin to add a voter; the response comes later (None here) unless it is a refusal."""
    role = node.role
    assert isinstance(role, LeaderState)
    endpoints = wire.named_endpoints(request.listeners)
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    refusal = _refuse(node, role, key, endpoints, now_ms)
    if refusal is not None:
        return respond(request, *refusal)
    to = node_at(request.voter_id, endpoints, node.listener_name)
    assert to is not None
    if not node.requests.is_ready(to.id, now_ms):
        return respond(request, ErrorCode.REQUEST_TIMED_OUT, messages.not_ready(key))
    api_versions = ApiVersionsRequest(
        client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
    )
    node.send(to, api_versions, API_VERSIONS_VERSION, now_ms)
    role.pending_add = AddVoterHandlerState(
        token=token,
        voter=key,
        endpoints=endpoints,
        ack_when_committed=request.ack_when_committed,
        deadline_ms=now_ms + node.settings.request_timeout_ms,
    )
    return None


def _refuse(
    node: QuorumNode, role: LeaderState, key: ReplicaKey, endpoints: Any, now_ms: int
) -> preconditions.Refusal | None:
    if not key.is_complete:
        error = validation.invalid(node, InvalidRequest.VOTER_WITHOUT_DIRECTORY)
        return error, "Add voter request didn't include a valid voter"
    if not preconditions.has_default_listener(node, endpoints):
        error = validation.invalid(node, InvalidRequest.LISTENER_MISSING)
        return error, messages.no_default_listener(endpoints, node.listener_name)
    refusal = preconditions.refuse_change(node, role, now_ms, change="adding")
    voters = node.history.voters
    if refusal is None and voters.get(key.id) is not None:
        return ErrorCode.DUPLICATE_VOTER, messages.duplicate_voter(key, voters)
    return refusal


def on_api_versions(
    node: QuorumNode, node_id: int, response: ApiVersionsResponse, now_ms: int
) -> bool:
    """Go on with a pending add: the new voter has named the levels that it supports."""
    error = ErrorCode.for_code(response.error_code)
    versions = next(
        (
            VersionRange(feature.min_version, feature.max_version)
            for feature in response.supported_features
            if feature.name == KRAFT_VERSION
        ),
        None,
    )
    return _go_on(node, node_id, error, versions, now_ms)


def on_api_versions_error(node: QuorumNode, node_id: int, error: ErrorCode, now_ms: int) -> bool:
    """Fail a pending add: the new voter cannot be reached."""
    return _go_on(node, node_id, error, None, now_ms)


def _go_on(
    node: QuorumNode, node_id: int, error: ErrorCode, versions: VersionRange | None, now_ms: int
) -> bool:
    """Append the larger voter set, or refuse; -> the request to the voter has succeeded.

    A voter that lags would leave the quorum without a majority that can commit, were another one
    to fail; so the leader adds one that has caught up within the hour.
    """
    role = node.role
    change = role.pending_add if isinstance(role, LeaderState) else None
    if change is None or change.voter.id != node_id or change.last_offset is not None:
        return True
    assert isinstance(role, LeaderState)
    voters = None
    if versions is not None:
        voter = Voter(key=change.voter, endpoints=change.endpoints, versions=versions)
        voters = node.history.voters.add(voter)
    refusal: preconditions.Refusal | None = None
    if error is not ErrorCode.NONE:
        refusal = ErrorCode.REQUEST_TIMED_OUT, messages.api_versions_error(error.name)
    elif versions is None or not versions.holds(node.history.kraft_version):
        message = messages.unsupported_version(change.voter, versions, node.history.kraft_version)
        refusal = validation.invalid(node, InvalidRequest.KRAFT_VERSION_UNSUPPORTED), message
    elif not role.is_caught_up(change.voter, now_ms):
        refusal = ErrorCode.REQUEST_TIMED_OUT, messages.lagging(change.voter)
    elif voters is None:
        message = messages.duplicate_voter(change.voter, node.history.voters)
        refusal = ErrorCode.DUPLICATE_VOTER, message
    if refusal is not None:
        role.pending_add = None
        handler_state.complete_add(node, change, *refusal)
        return error is ErrorCode.NONE
    assert voters is not None
    change.last_offset = role.accumulator.append_control((voters.to_record(),), now_ms)
    if not change.ack_when_committed:
        handler_state.complete_add(node, change, ErrorCode.NONE, None)
    return True
