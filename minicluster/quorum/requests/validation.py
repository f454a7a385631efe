"""Checks that several requests share.

Source:  KafkaRaftClient.hasValidClusterId, isValidVoterKey, RaftUtil.hasValidTopicPartition.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum import wire
from minicluster.quorum.effects import RequestInvalid
from minicluster.quorum.errors import InconsistentState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.refusals import InvalidRequest
from minicluster.quorum.state.voters import ReplicaKey


def has_valid_cluster_id(node: QuorumNode, cluster_id: str | None) -> bool:
    """A request without a cluster id is valid: the first versions carried none."""
    return cluster_id is None or cluster_id == node.cluster_id


def refuse_election_request(node: QuorumNode, request: Any, version: int) -> Any | None:
    """Refuse a Vote, BeginQuorumEpoch or EndQuorumEpoch as a whole, before its epoch counts."""
    if not has_valid_cluster_id(node, request.cluster_id):
        return wire.election_error(request, ErrorCode.INCONSISTENT_CLUSTER_ID)
    if wire.only_partition(request) is None:
        return wire.election_error(request, invalid(node, InvalidRequest.OTHER_PARTITION))
    return None


def is_valid_voter_key(node: QuorumNode, voter_id: int, directory_id: Any) -> bool:
    """The voter that a request names is this node; a request that names none is valid."""
    return voter_id < 0 or ReplicaKey.of(voter_id, directory_id).matches(node.key)


def invalid(node: QuorumNode, reason: InvalidRequest) -> ErrorCode:
    """INVALID_REQUEST, with its reason as an effect."""
    node.emit(RequestInvalid(reason))
    return ErrorCode.INVALID_REQUEST


def contradiction(node: QuorumNode, reason: InvalidRequest) -> ErrorCode:
    """Refuse what cannot be true: one leader per epoch, no node is its own peer.

    Errors:  InconsistentState where ``Rules.contradicting_request_is_fatal``.
    """
    refuse_fatally(node, reason.value)
    return invalid(node, reason)


def refuse_fatally(node: QuorumNode, reason: str) -> None:
    """End the node over what cannot be true, as Kafka does.

    Errors:  InconsistentState where ``Rules.contradicting_request_is_fatal``.
    """
    if node.rules.contradicting_request_is_fatal:
        raise InconsistentState(reason)
