"""Vote: a candidate requests the vote of its epoch, a prospective node a pre-vote.

Versions: 0-2. v1 names the voter and directory ids (KIP-853), v2 the pre-vote (KIP-996).
Source:   KafkaRaftClient.handleVoteRequest; KIP-595.
"""

from __future__ import annotations

from typing import Any

from minicluster.planting import step
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import VoteRequest
from minicluster.quorum import message_epoch, transitions, wire
from minicluster.quorum.effects import VoteRejected
from minicluster.quorum.message_epoch import VoterRequestEpoch
from minicluster.quorum.requests import validation
from minicluster.quorum.state.epoch_state import ProspectiveState, UnattachedState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.refusals import InvalidRequest, VoteRefusal
from minicluster.quorum.state.voters import ReplicaKey

LogEnd = tuple[int, int]  # (last epoch, end offset): the higher one is more up to date


def validate(node: QuorumNode, request: VoteRequest, version: int) -> Any | None:
    """Refuse a request whose log end cannot be: a candidate's epoch is above its log's last."""
    refusal = validation.refuse_election_request(node, request, version)
    if refusal is not None:
        return refusal
    partition = request.topics[0].partitions[0]
    epoch, last_epoch = partition.replica_epoch, partition.last_offset_epoch
    too_high = last_epoch > epoch if partition.pre_vote else last_epoch >= epoch
    if partition.last_offset < 0 or last_epoch < 0 or too_high:
        error = validation.invalid(node, InvalidRequest.IMPOSSIBLE_LOG_END)
        return wire.election_response(node, request, version, error)
    return None


def check_epoch(node: QuorumNode, request: VoteRequest, now_ms: int) -> ErrorCode | None:
    """The candidate's epoch; it moves this node whether or not the vote is granted."""
    partition = request.topics[0].partitions[0]
    named = VoterRequestEpoch(partition.replica_epoch, partition.replica_id)
    return message_epoch.check_voter_request(node, named, now_ms)


def handle(node: QuorumNode, request: VoteRequest, version: int, token: Any, now_ms: int) -> Any:
    """Grant or reject a vote or a pre-vote; a pre-vote leaves no trace here."""
    partition = request.topics[0].partitions[0]
    if not validation.is_valid_voter_key(node, request.voter_id, partition.voter_directory_id):
        return wire.election_response(node, request, version, ErrorCode.INVALID_VOTER_KEY)
    candidate = ReplicaKey.of(partition.replica_id, partition.replica_directory_id)
    end = (partition.last_offset_epoch, partition.last_offset)
    refusal = vote_refusal(node, candidate, end, partition.pre_vote)
    role = node.role
    if refusal is not None:
        node.emit(VoteRejected(role.epoch, candidate.id, partition.pre_vote, refusal))
    elif not partition.pre_vote and isinstance(role, UnattachedState | ProspectiveState):
        if candidate.id == node.key.id and role.voted is None:
            error = validation.contradiction(node, InvalidRequest.VOTE_OF_OWN_ID)
            return wire.election_response(node, request, version, error)
        transitions.grant_vote(node, candidate, now_ms)
    return wire.election_response(node, request, version, ErrorCode.NONE, granted=refusal is None)


@step
def vote_refusal(
    node: QuorumNode, candidate: ReplicaKey, end: LogEnd, pre_vote: bool
) -> VoteRefusal | None:
    """The reason not to grant a vote, by role and by the end of the candidate's log.

    A candidate whose log is behind a majority's could lose what is committed (Raft, 5.4.1).
    """
    up_to_date = end >= (node.log.last_epoch, node.log.end_offset)
    return node.role.vote_refusal(candidate, up_to_date, pre_vote)
