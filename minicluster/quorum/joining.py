"""A node's own entry in the voter set: what it requests of its leader, and the responses.

A voter reports its endpoints and versions (UpdateRaftVoter). With auto-join, a controller outside
the set adds itself, after it has removed an entry of its id that names another directory.

Source:  KIP-853 and, in 4.3, auto-join (KIP-1186); KafkaRaftClient.shouldSendUpdateVoteRequest,
         shouldSendAddOrRemoveVoterRequest, buildUpdateVoterRequest, buildAddVoterRequest,
         handleUpdateVoterResponse, handleAddVoterResponse, handleRemoveVoterResponse.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UpdateRaftVoterRequest,
    UpdateRaftVoterResponse,
)
from minicluster.quorum.message_checks import ResponseEpoch
from minicluster.quorum.state.epoch_state import FollowerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import VoterEndpoint

UPDATE_VOTER_VERSION = 0
ADD_VOTER_VERSION = 1
REMOVE_VOTER_VERSION = 0
_SUCCESS = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)

# --- UpdateRaftVoter ----------------------------------------------------------------------------


def maybe_send_update_voter(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Send this voter's endpoints and versions where the leader has others, or none.

    Shapes:  -> the wait until the next try; None if there is nothing to send.
    """
    # With kraft.version 0 no record shows what the leader has of this node: it keeps that in memory
    # and forgets it with its leadership, so each new leader is told once.
    if node.history.kraft_version > 0:
        is_due = node.history.voters.needs_update(node.own)
    else:
        is_due = not role.has_updated_leader
    if not is_due:
        role.reset_update_voter_period(node.settings.update_voter_period_ms, now_ms)
        return None
    versions = node.own.versions
    request = UpdateRaftVoterRequest(
        cluster_id=node.cluster_id,
        current_leader_epoch=role.epoch,
        voter_id=node.key.id,
        voter_directory_id=node.key.wire_directory_id,
        listeners=tuple(
            UpdateRaftVoterRequest.Listener(name=e.name, host=e.host, port=e.port)
            for e in node.own.endpoints
        ),
        kraft_version_feature=UpdateRaftVoterRequest.KRaftVersionFeature(
            min_supported_version=versions.min, max_supported_version=versions.max
        ),
    )
    return _send_to_leader(node, role, request, UPDATE_VOTER_VERSION, now_ms)


def epoch_of_update_response(
    node: QuorumNode, response: UpdateRaftVoterResponse
) -> ResponseEpoch | bool:
    """The leader and epoch of the peer.

    A leader without the API names no epoch, and its response counts at once. Otherwise it would
    look like one of a past epoch and be dropped, and the node would send the request for ever, as
    Kafka does (``Rules.unsupported_update_voter_is_retried``).
    """
    error = ErrorCode.for_code(response.error_code)
    role, leader = node.role, response.current_leader
    if (
        error is ErrorCode.UNSUPPORTED_VERSION
        and isinstance(role, FollowerState)
        and not node.rules.unsupported_update_voter_is_retried
    ):
        role.has_updated_leader = True
        return True
    leader_id = None if leader.leader_id < 0 else leader.leader_id
    endpoints = (
        (VoterEndpoint(node.listener_name, leader.host, leader.port),)
        if leader_id is not None and leader.host
        else ()
    )
    return ResponseEpoch(error, leader_id, leader.leader_epoch, endpoints)


def handle_update_response(
    node: QuorumNode, node_id: int, response: UpdateRaftVoterResponse, now_ms: int
) -> bool:
    """The leader has this voter's endpoints and versions; a success counts as a fetch."""
    role = node.role
    if not isinstance(role, FollowerState):
        return False
    if response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        role.has_updated_leader = True
        role.reset_fetch_timeout_for_successful_fetch(node.settings.fetch_timeout_ms, now_ms)
        return True
    return False


def on_update_error(node: QuorumNode, node_id: int, error: ErrorCode, now_ms: int) -> bool:
    """A lost connection names no epoch and so counts as a response of a past one."""
    return True


# --- AddRaftVoter, RemoveRaftVoter --------------------------------------------------------------


def auto_joins(node: QuorumNode) -> bool:
    """This observer is a controller that adds itself to the voters."""
    return node.settings.auto_join and node.can_become_voter and node.history.kraft_version > 0


def maybe_send_add_or_remove_voter(
    node: QuorumNode, role: FollowerState, now_ms: int
) -> int | None:
    """Request to become a voter; first the removal of an entry with another directory.

    That entry is this node's own from before its disk was lost: it can never vote again.
    """
    entry = node.history.voters.get(node.key.id)
    request: Any
    if entry is not None:
        request = RemoveRaftVoterRequest(
            cluster_id=node.cluster_id,
            voter_id=entry.key.id,
            voter_directory_id=entry.key.wire_directory_id,
        )
        return _send_to_leader(node, role, request, REMOVE_VOTER_VERSION, now_ms)
    request = AddRaftVoterRequest(
        cluster_id=node.cluster_id,
        timeout_ms=node.settings.request_timeout_ms,
        voter_id=node.key.id,
        voter_directory_id=node.key.wire_directory_id,
        listeners=tuple(
            AddRaftVoterRequest.Listener(name=e.name, host=e.host, port=e.port)
            for e in node.own.endpoints
        ),
        ack_when_committed=False,
    )
    return _send_to_leader(node, role, request, ADD_VOTER_VERSION, now_ms)


def handle_add_response(
    node: QuorumNode, node_id: int, response: AddRaftVoterResponse, now_ms: int
) -> bool:
    """The leader has added this node, has it already, or is still adding it."""
    return _handle_change(node, response.error_code, ErrorCode.DUPLICATE_VOTER, now_ms)


def handle_remove_response(
    node: QuorumNode, node_id: int, response: RemoveRaftVoterResponse, now_ms: int
) -> bool:
    """The leader has removed this node's old entry, had none, or is still removing it."""
    return _handle_change(node, response.error_code, ErrorCode.VOTER_NOT_FOUND, now_ms)


def _handle_change(node: QuorumNode, error_code: int, done_before: ErrorCode, now_ms: int) -> bool:
    if error_code not in (*_SUCCESS, done_before):
        return False
    if isinstance(node.role, FollowerState):
        node.role.reset_update_voter_period(node.settings.update_voter_period_ms, now_ms)
    return True


def _send_to_leader(
    node: QuorumNode, role: FollowerState, request: Any, version: int, now_ms: int
) -> int | None:
    leader = node.leader_node
    if leader is None:
        return None
    if node.requests.is_ready(leader.id, now_ms):
        node.send(leader, request, version, now_ms)
        role.reset_update_voter_period(node.settings.update_voter_period_ms, now_ms)
    return node.requests.wait_ms(leader.id, now_ms)
