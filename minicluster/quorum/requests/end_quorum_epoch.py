"""EndQuorumEpoch: a leader has resigned, and names the voters in the order of their logs.

Versions: 0-1. v1 names candidates with directory ids and the leader's endpoints (KIP-853).
Source:   KafkaRaftClient.handleEndQuorumEpochRequest; KIP-595.
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import EndQuorumEpochRequest
from minicluster.quorum import message_epoch, wire
from minicluster.quorum.message_epoch import VoterRequestEpoch
from minicluster.quorum.state.epoch_state import FollowerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import ReplicaKey


def check_epoch(node: QuorumNode, request: EndQuorumEpochRequest, now_ms: int) -> ErrorCode | None:
    """The leader that resigned and its epoch, which may be news."""
    partition = request.topics[0].partitions[0]
    named = VoterRequestEpoch(
        partition.leader_epoch,
        partition.leader_id,
        partition.leader_id,
        wire.named_endpoints(request.leader_endpoints),
    )
    return message_epoch.check_voter_request(node, named, now_ms)


def handle(
    node: QuorumNode, request: EndQuorumEpochRequest, version: int, token: Any, now_ms: int
) -> Any:
    """Bring the follower's fetch timeout forward: the leader serves no fetches any more."""
    partition = request.topics[0].partitions[0]
    role = node.role
    if isinstance(role, FollowerState) and role.leader_id == partition.leader_id:
        backoff_ms = election_backoff_ms(
            _position(node, partition),
            len(partition.preferred_candidates) or len(partition.preferred_successors),
            node.settings.election_backoff_max_ms,
        )
        role.fetch_deadline_ms = now_ms + backoff_ms
    return wire.election_response(node, request, version, ErrorCode.NONE)


def election_backoff_ms(position: int | None, candidates: int, max_ms: int) -> int:
    """The wait of a preferred candidate before its election: none for the first one.

    The candidates wait one after the other, so that they do not split the votes.

    Shapes:  position in the resigned leader's list, None if absent from it; an absent voter comes
             behind all that are in it, so no voter waits where the list is empty (a leader that
             stopped and started again has none).
    Source:  KafkaRaftClient.endEpochElectionBackoff, strictExponentialElectionBackoffMs.
    """
    if position == 0 or candidates == 0:
        return 0
    if position is None:
        return max_ms
    return min(max_ms, (max_ms >> (candidates - 1)) << (position - 1))


def _position(node: QuorumNode, partition: EndQuorumEpochRequest.PartitionData) -> int | None:
    keys = [
        ReplicaKey.of(each.candidate_id, each.candidate_directory_id)
        for each in partition.preferred_candidates
    ] or [ReplicaKey(each) for each in partition.preferred_successors]
    for position, key in enumerate(keys):
        if key.matches(node.key):
            return position
    return None
