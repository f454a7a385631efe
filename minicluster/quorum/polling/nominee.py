"""A prospective or a candidate requests votes until its election is won, lost or timed out.

Source:  NomineeState; KafkaRaftClient.pollProspective, pollCandidate, maybeSendVoteRequests.
"""

from __future__ import annotations

from minicluster.protocol.messages import VoteRequest
from minicluster.quorum import transitions, wire
from minicluster.quorum.polling.send import earliest, maybe_send_to_voters
from minicluster.quorum.state.epoch_state import CandidateState, ProspectiveState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Voter

VOTE_VERSION = 2


def poll(node: QuorumNode, role: ProspectiveState | CandidateState, now_ms: int) -> int | None:
    """Act on what is due; -> the wait. A node that shuts down starts no further election."""
    if node.is_shutting_down:
        return _maybe_send_votes(node, role, now_ms)
    if now_ms >= role.election_deadline_ms:
        if isinstance(role, ProspectiveState):
            transitions.on_pre_vote_lost(node, now_ms)
        else:
            transitions.to_prospective(node, now_ms)
        return 0
    return earliest(role.election_deadline_ms - now_ms, _maybe_send_votes(node, role, now_ms))


def _maybe_send_votes(
    node: QuorumNode, role: ProspectiveState | CandidateState, now_ms: int
) -> int | None:
    """Send a Vote to each voter without a vote; a lost election waits for its timeout instead."""
    if role.election.is_lost:
        return None

    def request(voter: Voter) -> VoteRequest:
        return wire.vote_request(
            cluster_id=node.cluster_id,
            voter=voter.key,
            candidate=node.key,
            epoch=role.epoch,
            last_epoch=node.log.last_epoch,
            end_offset=node.log.end_offset,
            pre_vote=isinstance(role, ProspectiveState),
        )

    return maybe_send_to_voters(node, role.election.unrecorded, request, VOTE_VERSION, now_ms)
