"""AddRaftVoter: ask the new voter what it supports, then append the larger set.

Versions: 0-1; v1 may ask for an answer before the commit (AckWhenCommitted).
Source:   KIP-853; AddVoterHandler.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from minicluster.quorum import wire
from minicluster.quorum.requests import validation
from minicluster.quorum.state.leader_state import AddVoterHandlerState, LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import ReplicaKey, VersionRange, Voter, node_at
from minicluster.quorum.voter_changes import handler_state, preconditions

KRAFT_VERSION = "kraft.version"
API_VERSIONS_VERSION = 4
SOFTWARE_NAME = "apache-kafka-java"
SOFTWARE_VERSION = "4.3.0"


def add_voter(
    node: QuorumNode, token: Any, request: AddRaftVoterRequest, version: int, now_ms: int
) -> AddRaftVoterResponse | None:
    """Begin to add a voter; the answer comes later (None here) unless it is a refusal."""
    refusal = _refuse(node, request, now_ms)
    if refusal is not None:
        return AddRaftVoterResponse(error_code=int(refusal[0]), error_message=refusal[1])
    role = node.role
    assert isinstance(role, LeaderState)
    endpoints = wire.named_endpoints(request.listeners)
    to = node_at(request.voter_id, endpoints, node.listener_name)
    assert to is not None
    if not node.requests.is_ready(to.id, now_ms):
        why = "the new voter cannot be asked for its versions now"
        return AddRaftVoterResponse(error_code=int(ErrorCode.REQUEST_TIMED_OUT), error_message=why)
    asked = ApiVersionsRequest(
        client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
    )
    node.send(to, asked, API_VERSIONS_VERSION, now_ms)
    role.pending_add = AddVoterHandlerState(
        token=token,
        voter=ReplicaKey.of(request.voter_id, request.voter_directory_id),
        endpoints=endpoints,
        ack_when_committed=request.ack_when_committed,
        deadline_ms=now_ms + node.settings.request_timeout_ms,
    )
    return None


def _refuse(
    node: QuorumNode, request: AddRaftVoterRequest, now_ms: int
) -> preconditions.Refusal | None:
    if not validation.is_this_cluster(node, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID, "the request is for another cluster"
    error = validation.refuse_leader_request(node, node.epoch)
    if error is not None:
        return error, ""
    key = ReplicaKey.of(request.voter_id, request.voter_directory_id)
    if key.directory_id is None:
        return ErrorCode.INVALID_REQUEST, "a voter is named by its id and directory id"
    if not preconditions.has_listener(node, wire.named_endpoints(request.listeners)):
        return ErrorCode.INVALID_REQUEST, f"the listener {node.listener_name} is missing"
    assert isinstance(node.role, LeaderState)
    refusal = preconditions.refuse_change(node, node.role, now_ms)
    if refusal is None and node.history.voters.get(key.id) is not None:
        return ErrorCode.DUPLICATE_VOTER, f"{key.id} is a voter already"
    return refusal


def on_api_versions_response(
    node: QuorumNode, node_id: int, response: ApiVersionsResponse, now_ms: int
) -> bool:
    """Go on with a pending add once its voter has said what it supports."""
    error = ErrorCode.for_code(response.error_code)
    versions = next(
        (
            VersionRange(feature.min_version, feature.max_version)
            for feature in response.supported_features
            if feature.name == KRAFT_VERSION
        ),
        None,
    )
    return on_api_versions(node, node_id, error, versions, now_ms)


def on_api_versions(
    node: QuorumNode, node_id: int, error: ErrorCode, versions: VersionRange | None, now_ms: int
) -> bool:
    """Append the larger voter set, or refuse; -> whether the request to the voter succeeded."""
    role = node.role
    change = role.pending_add if isinstance(role, LeaderState) else None
    if change is None or change.voter.id != node_id or change.last_offset is not None:
        return True
    assert isinstance(role, LeaderState)
    if error is not ErrorCode.NONE:
        role.pending_add = None
        why = "the new voter did not say which versions it supports"
        handler_state.answer_add(node, change, ErrorCode.REQUEST_TIMED_OUT, why)
        return False
    if versions is None or not versions.holds(node.history.kraft_version):
        role.pending_add = None
        why = "the new voter does not support the cluster's kraft.version"
        handler_state.answer_add(node, change, ErrorCode.INVALID_REQUEST, why)
        return True
    if not role.is_caught_up(change.voter, now_ms):
        role.pending_add = None
        why = "the new voter lags behind the leader"
        handler_state.answer_add(node, change, ErrorCode.REQUEST_TIMED_OUT, why)
        return True
    voters = node.history.voters.add(
        Voter(key=change.voter, endpoints=change.endpoints, versions=versions)
    )
    if voters is None:
        role.pending_add = None
        handler_state.answer_add(node, change, ErrorCode.DUPLICATE_VOTER, "it is a voter already")
        return True
    change.last_offset = role.accumulator.append_control((voters.to_record(),), now_ms)
    if not change.ack_when_committed:
        handler_state.answer_add(node, change, ErrorCode.NONE, None)
    return True
