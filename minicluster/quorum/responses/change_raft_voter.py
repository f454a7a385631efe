"""The responses to this node's own AddRaftVoter and RemoveRaftVoter (auto-join, KIP-853).

Source:  KafkaRaftClient.handleAddVoterResponse, handleRemoveVoterResponse.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import AddRaftVoterResponse, RemoveRaftVoterResponse
from minicluster.quorum.state.epoch_state import FollowerState
from minicluster.quorum.state.node import QuorumNode

_SUCCESS = (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT)


def handle_add(node: QuorumNode, node_id: int, response: AddRaftVoterResponse, now_ms: int) -> bool:
    """The leader has added this node, has it already, or is still at it."""
    return _handle(node, response.error_code, ErrorCode.DUPLICATE_VOTER, now_ms)


def handle_remove(
    node: QuorumNode, node_id: int, response: RemoveRaftVoterResponse, now_ms: int
) -> bool:
    """The leader has removed this node's old entry, had none, or is still at it."""
    return _handle(node, response.error_code, ErrorCode.VOTER_NOT_FOUND, now_ms)


def _handle(node: QuorumNode, error_code: int, done_before: ErrorCode, now_ms: int) -> bool:
    if error_code not in (*_SUCCESS, done_before):
        return False
    if isinstance(node.role, FollowerState):
        node.role.reset_update_voter_period(node.settings.update_voter_period_ms, now_ms)
    return True
