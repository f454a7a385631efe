"""The response to Vote: a majority of votes makes a leader, a majority of pre-votes a candidate.

Source:  KafkaRaftClient.handleVoteResponse; KIP-595, KIP-996.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import VoteResponse
from minicluster.quorum import transitions
from minicluster.quorum.responses import election
from minicluster.quorum.state.epoch_election import Vote
from minicluster.quorum.state.epoch_state import CandidateState, ProspectiveState
from minicluster.quorum.state.node import QuorumNode


def handle(node: QuorumNode, node_id: int, response: VoteResponse, now_ms: int) -> bool:
    """Record the vote. A candidate's first count of a voter stays; a pre-vote may be taken back."""
    if election.has_error(response):
        return False
    role = node.role
    if not isinstance(role, ProspectiveState | CandidateState):
        return True
    if not role.election.is_voter(node_id):
        return True
    if isinstance(role, CandidateState) and role.election.vote_of(node_id) is not Vote.UNRECORDED:
        return True
    role.election.record(node_id, granted=response.topics[0].partitions[0].vote_granted)
    transitions.maybe_elected(node, now_ms)
    if node.role is role and isinstance(role, ProspectiveState) and role.election.is_lost:
        transitions.on_pre_vote_lost(node, now_ms)
    return True


def on_error(node: QuorumNode, node_id: int, error: ErrorCode, now_ms: int) -> bool:
    """A voter that has no pre-votes makes a prospective node a candidate at once.

    Nobody could win a pre-vote while a majority of the voters runs an older release.
    """
    if error is ErrorCode.UNSUPPORTED_VERSION and isinstance(node.role, ProspectiveState):
        transitions.to_candidate(node, now_ms)
        return True
    return False
