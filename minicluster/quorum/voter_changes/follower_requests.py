"""What a follower asks of the leader about itself: UpdateRaftVoter, and to join by itself.

Source:  KIP-853 and, in 4.3, auto-join; KafkaRaftClient.pollFollowerAsVoter,
         pollFollowerAsObserver.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    RemoveRaftVoterRequest,
    UpdateRaftVoterRequest,
)
from minicluster.quorum.message_epoch import follow
from minicluster.quorum.state.epoch_state import FollowerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Endpoint

UPDATE_VOTER_VERSION = 0
ADD_VOTER_VERSION = 1
REMOVE_VOTER_VERSION = 0


def update_voter(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Tell the leader this voter's endpoints and versions if it needs them.

    Shapes:  -> how long to wait before asking again; None if there is nothing to tell.
    """
    if node.history.kraft_version > 0:
        needed = node.history.voters.needs_update(node.own)
    else:
        needed = not role.has_updated_leader
    if not needed:
        _rest(node, role, now_ms)
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
    return _ask_leader(node, role, request, UPDATE_VOTER_VERSION, now_ms)


def may_join(node: QuorumNode) -> bool:
    """Whether this observer adds itself to the voters."""
    return node.settings.auto_join and node.can_become_voter and node.history.kraft_version > 0


def join(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Ask to become a voter; first let an entry with another directory go."""
    entry = node.history.voters.get(node.key.id)
    request: Any
    if entry is not None:
        request = RemoveRaftVoterRequest(
            cluster_id=node.cluster_id,
            voter_id=entry.key.id,
            voter_directory_id=entry.key.wire_directory_id,
        )
        return _ask_leader(node, role, request, REMOVE_VOTER_VERSION, now_ms)
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
    return _ask_leader(node, role, request, ADD_VOTER_VERSION, now_ms)


def _ask_leader(
    node: QuorumNode, role: FollowerState, request: Any, version: int, now_ms: int
) -> int | None:
    leader = node.leader_node
    if leader is None:
        return None
    if node.requests.is_ready(leader.id, now_ms):
        node.send(leader, request, version, now_ms)
        _rest(node, role, now_ms)
    return node.requests.wait_ms(leader.id, now_ms)


def _rest(node: QuorumNode, role: FollowerState, now_ms: int) -> None:
    role.update_voter_deadline_ms = now_ms + node.settings.update_voter_period_ms


def on_update_voter(node: QuorumNode, node_id: int, response: Any, now_ms: int) -> bool:
    """The leader has answered UpdateRaftVoter; a success counts as a sign of life."""
    error = ErrorCode.for_code(response.error_code)
    leader = response.current_leader
    leader_id = None if leader.leader_id < 0 else leader.leader_id
    endpoints = (
        (Endpoint(node.listener_name, leader.host, leader.port),)
        if leader_id is not None and leader.host
        else ()
    )
    role = node.role
    if (
        error is ErrorCode.UNSUPPORTED_VERSION
        and isinstance(role, FollowerState)
        and not node.rules.unsupported_update_voter_is_asked_again
    ):
        role.has_updated_leader = True
        return True
    handled = follow(node, error, leader_id, leader.leader_epoch, endpoints, now_ms)
    if handled is not None:
        return handled
    role = node.role
    if not isinstance(role, FollowerState):
        return False
    if error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        role.has_updated_leader = True
        role.has_fetched = True
        role.fetch_deadline_ms = now_ms + node.settings.fetch_timeout_ms
        return True
    return False


def on_join(node: QuorumNode, node_id: int, response: Any, now_ms: int) -> bool:
    """The leader has answered this node's own AddRaftVoter or RemoveRaftVoter."""
    role = node.role
    settled = (
        ErrorCode.DUPLICATE_VOTER
        if isinstance(response, AddRaftVoterResponse)
        else ErrorCode.VOTER_NOT_FOUND
    )
    if response.error_code not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, settled):
        return False
    if isinstance(role, FollowerState):
        _rest(node, role, now_ms)
    return True
