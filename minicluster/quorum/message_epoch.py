"""What every answer says of leader and epoch, and when a node obeys it.

Source:  KafkaRaftClient.maybeHandleCommonResponse.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum import transitions
from minicluster.quorum.requests import validation
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Endpoints


def follow(
    node: QuorumNode,
    error: ErrorCode,
    leader_id: int | None,
    epoch: int,
    endpoints: Endpoints,
    now_ms: int,
) -> bool | None:
    """Obey what any answer says of leader and epoch; -> None if the answer is still to be used."""
    if leader_id is not None and not endpoints:
        endpoints = node.history.voters.endpoints_of(leader_id)
    if epoch < node.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return True
    if epoch > node.epoch or error in (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ):
        return transitions.follow_message(node, leader_id, epoch, endpoints, now_ms)
    if leader_id is not None and node.role.leader_id is None and leader_id != node.key.id:
        transitions.follow_message(node, leader_id, epoch, endpoints, now_ms)
        return None if error is ErrorCode.NONE else True
    if error is ErrorCode.INVALID_REQUEST:
        validation.contradiction(node, f"a request in epoch {epoch} was found invalid")
        return False
    if error is ErrorCode.BROKER_NOT_AVAILABLE:
        return False
    if error is ErrorCode.INVALID_VOTER_KEY:  # it was sent to another voter than is there
        return True
    return None
