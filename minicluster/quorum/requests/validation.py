"""Refusals that several requests share.

Source:  KafkaRaftClient.validateVoterOnlyRequest, validateLeaderOnlyRequest, isValidVoterKey.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum.errors import InconsistentState
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import ReplicaKey


def is_this_cluster(node: QuorumNode, cluster_id: str | None) -> bool:
    """Whether a request is for this cluster; one that does not say is."""
    return cluster_id is None or cluster_id == node.cluster_id


def refuse_voter_request(node: QuorumNode, remote_id: int, epoch: int) -> ErrorCode | None:
    """What is wrong with a request between voters."""
    if epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if remote_id < 0:
        return ErrorCode.INVALID_REQUEST
    return None


def refuse_leader_request(node: QuorumNode, epoch: int) -> ErrorCode | None:
    """What is wrong with a request that only the leader of an epoch answers."""
    if epoch < node.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > node.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(node.role, LeaderState):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if node.is_shutting_down:
        return ErrorCode.BROKER_NOT_AVAILABLE
    return None


def contradiction(node: QuorumNode, what: str) -> ErrorCode:
    """Refuse what cannot be true: one leader per epoch, nobody is its own peer.

    Errors:  InconsistentState where ``Rules.contradicting_request_is_fatal``.
    """
    if node.rules.contradicting_request_is_fatal:
        raise InconsistentState(what)
    return ErrorCode.INVALID_REQUEST


def is_meant_for(node: QuorumNode, voter_id: int, key: ReplicaKey) -> bool:
    """Whether a request that names a voter means this node; without a name it does."""
    if voter_id < 0:
        return True
    return key.stands_for(node.key)
