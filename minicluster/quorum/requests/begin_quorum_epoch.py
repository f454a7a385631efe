"""BeginQuorumEpoch: a new leader announces itself to the voters that do not fetch yet.

Versions: 0-1. v1 names the voter and the leader's endpoints (KIP-853).
Source:   KafkaRaftClient.handleBeginQuorumEpochRequest; KIP-595.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import BeginQuorumEpochRequest
from minicluster.quorum import message_epoch, wire
from minicluster.quorum.message_epoch import VoterRequestEpoch
from minicluster.quorum.requests import validation
from minicluster.quorum.state.node import QuorumNode


def check_epoch(
    node: QuorumNode, request: BeginQuorumEpochRequest, now_ms: int
) -> ErrorCode | None:
    """The leader and its epoch: the node follows them."""
    partition = request.topics[0].partitions[0]
    named = VoterRequestEpoch(
        partition.leader_epoch,
        partition.leader_id,
        partition.leader_id,
        wire.named_endpoints(request.leader_endpoints),
        announces_leader=True,
    )
    return message_epoch.check_voter_request(node, named, now_ms)


def handle(
    node: QuorumNode, request: BeginQuorumEpochRequest, version: int, token: Any, now_ms: int
) -> Any:
    """Acknowledge the leader.

    A wrong voter key is refused only here: the epoch is valid for any receiver.
    """
    directory_id = request.topics[0].partitions[0].voter_directory_id
    is_valid = validation.is_valid_voter_key(node, request.voter_id, directory_id)
    error = ErrorCode.NONE if is_valid else ErrorCode.INVALID_VOTER_KEY
    return wire.election_response(node, request, version, error)
