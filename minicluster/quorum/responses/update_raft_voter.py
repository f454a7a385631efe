"""The response to this node's own UpdateRaftVoter (KIP-853).

Source:  KafkaRaftClient.handleUpdateVoterResponse.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import UpdateRaftVoterResponse
from minicluster.quorum.message_epoch import ResponseEpoch
from minicluster.quorum.state.epoch_state import FollowerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Endpoint


def epoch_of(node: QuorumNode, response: UpdateRaftVoterResponse) -> ResponseEpoch | bool:
    """The leader and epoch of the peer.

    A leader without the API names no epoch, which would look like a past one: the response counts
    at once, unless ``Rules.unsupported_update_voter_is_retried``.
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
        (Endpoint(node.listener_name, leader.host, leader.port),)
        if leader_id is not None and leader.host
        else ()
    )
    return ResponseEpoch(error, leader_id, leader.leader_epoch, endpoints)


def handle(node: QuorumNode, node_id: int, response: UpdateRaftVoterResponse, now_ms: int) -> bool:
    """The leader has this voter's endpoints and versions; a success counts as a fetch."""
    role = node.role
    if not isinstance(role, FollowerState):
        return False
    if response.error_code in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        role.has_updated_leader = True
        role.reset_fetch_timeout_for_successful_fetch(node.settings.fetch_timeout_ms, now_ms)
        return True
    return False


def on_error(node: QuorumNode, node_id: int, error: ErrorCode, now_ms: int) -> bool:
    """A lost connection names no epoch and so counts as a response of a past one."""
    return True
