"""The messages of an election: Vote, BeginQuorumEpoch, EndQuorumEpoch, and their responses.

Vote:             0-2. A candidate requests the vote of its epoch, a prospective node a pre-vote.
                  v1 names the voter and directory ids (KIP-853), v2 the pre-vote (KIP-996).
BeginQuorumEpoch: 0-1. A new leader announces itself to the voters that do not fetch yet.
                  v1 names the voter and the leader's endpoints (KIP-853).
EndQuorumEpoch:   0-1. A leader has resigned, and names the voters in the order of their logs.
                  v1 names candidates with directory ids and the leader's endpoints (KIP-853).

``handlers`` runs ``validate``, then the check of the epoch, then ``handle``. A vote request of a
higher epoch has thus moved the receiver to Unattached of that epoch, durably, even if the vote is
rejected then. The vote is granted by the role in that epoch (``EpochState.vote_rejection``):

===============  ==========================================  =====================================
receiver         vote                                        pre-vote
===============  ==========================================  =====================================
Unattached or    to the first candidate whose log is up to   if the log is up to date
Prospective      date, while no leader is known; to the
                 same one again
Follower         never: the epoch has a leader               if the log is up to date, and the
                                                             leader has not served a fetch yet
Candidate        never: its vote is its own                  if the log is up to date
Leader           never                                       never
Resigned         never: it has led the epoch                 if the log is up to date
===============  ==========================================  =====================================

A log is up to date if its (last epoch, end offset) is not below the receiver's. Every committed
record is in the logs of a majority, and a majority must grant: so the winner has it (Raft, 5.4.1).
The longer log is not the one that wins. Of three voters, 1 led epoch 2, was cut off with 8 records
committed, and wrote alone up to 40; 2 led epoch 3 and committed with 3 up to 10: (3, 10) is above
(2, 40), so neither 2 nor 3 votes for 1, which lacks the last two records that are committed.
A vote is persisted before it is granted. A pre-vote promises nothing, changes nothing at the
receiver, and may be granted to many. Votes are also given to ids outside the receiver's voter set:
a candidate's set may be newer.

Source:  KIP-595, KIP-996; KafkaRaftClient.handleVoteRequest, handleVoteResponse,
         handleBeginQuorumEpochRequest, handleBeginQuorumEpochResponse,
         handleEndQuorumEpochRequest, handleEndQuorumEpochResponse.
"""

from __future__ import annotations

from typing import Any

from minicluster.planting import step
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    VoteRequest,
    VoteResponse,
)
from minicluster.quorum import message_checks, transitions, wire
from minicluster.quorum.effects import VoteRejected
from minicluster.quorum.errors import InconsistentState, InvalidRequest, VoteRejection
from minicluster.quorum.message_checks import ResponseEpoch, VoterRequestEpoch
from minicluster.quorum.state.epoch_state import (
    CandidateState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
    Vote,
)
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import ReplicaKey
from minicluster.quorum.transitions import Event

LogEnd = tuple[int, int]  # (last epoch, end offset): the higher one is more up to date

# --- all three ----------------------------------------------------------------------------------


def validate(node: QuorumNode, request: Any, version: int) -> Any | None:
    """Reject a Vote, BeginQuorumEpoch or EndQuorumEpoch as a whole, before its epoch counts."""
    if not message_checks.has_valid_cluster_id(node, request.cluster_id):
        return wire.election_error(request, ErrorCode.INCONSISTENT_CLUSTER_ID)
    if wire.only_partition(request) is None:
        return wire.election_error(
            request, message_checks.invalid(node, InvalidRequest.OTHER_PARTITION)
        )
    return None


def is_valid_voter_key(node: QuorumNode, voter_id: int, directory_id: Any) -> bool:
    """The voter that a request names is this node; a request that names none is valid."""
    return voter_id < 0 or ReplicaKey.of(voter_id, directory_id).matches(node.key)


def epoch_of_response(node: QuorumNode, response: Any) -> ResponseEpoch | bool:
    """The leader and epoch of the voter; False for a response about another partition."""
    partition = wire.only_partition(response)
    if partition is None:
        return False
    leader_id = None if partition.leader_id < 0 else partition.leader_id
    return ResponseEpoch(
        ErrorCode.for_code(partition.error_code),
        leader_id,
        partition.leader_epoch,
        wire.response_endpoints(response, leader_id, node.listener_name),
    )


def _has_error(response: Any) -> bool:
    """The voter rejected the request for a reason that is not its epoch."""
    return bool(response.topics[0].partitions[0].error_code != ErrorCode.NONE)


# --- Vote ---------------------------------------------------------------------------------------


def validate_vote(node: QuorumNode, request: VoteRequest, version: int) -> Any | None:
    """Reject a request whose log end cannot be: a candidate's epoch is above its log's last."""
    rejection = validate(node, request, version)
    if rejection is not None:
        return rejection
    partition = request.topics[0].partitions[0]
    epoch, last_epoch = partition.replica_epoch, partition.last_offset_epoch
    too_high = last_epoch > epoch if partition.pre_vote else last_epoch >= epoch
    if partition.last_offset < 0 or last_epoch < 0 or too_high:
        error = message_checks.invalid(node, InvalidRequest.IMPOSSIBLE_LOG_END)
        return wire.election_response(node, request, version, error)
    return None


def check_vote_epoch(node: QuorumNode, request: VoteRequest, now_ms: int) -> ErrorCode | None:
    """The candidate's epoch; it moves this node whether or not the vote is granted."""
    partition = request.topics[0].partitions[0]
    named = VoterRequestEpoch(partition.replica_epoch, partition.replica_id)
    return message_checks.check_voter_request(node, named, now_ms)


def handle_vote_request(
    node: QuorumNode, request: VoteRequest, version: int, token: Any, now_ms: int
) -> Any:
    """Grant or reject a vote or a pre-vote; a pre-vote leaves no trace here."""
    partition = request.topics[0].partitions[0]
    if not is_valid_voter_key(node, request.voter_id, partition.voter_directory_id):
        return wire.election_response(node, request, version, ErrorCode.INVALID_VOTER_KEY)
    candidate = ReplicaKey.of(partition.replica_id, partition.replica_directory_id)
    end = (partition.last_offset_epoch, partition.last_offset)
    rejection = vote_rejection(node, candidate, end, partition.pre_vote)
    role = node.role
    if rejection is not None:
        node.emit(VoteRejected(role.epoch, candidate.id, partition.pre_vote, rejection))
    elif not partition.pre_vote and isinstance(role, UnattachedState | ProspectiveState):
        if candidate.id == node.key.id and role.voted is None:
            error = message_checks.contradiction(node, InvalidRequest.VOTE_OF_OWN_ID)
            return wire.election_response(node, request, version, error)
        transitions.grant_vote(node, candidate, now_ms)
    return wire.election_response(node, request, version, ErrorCode.NONE, granted=rejection is None)


@step
def vote_rejection(
    node: QuorumNode, candidate: ReplicaKey, end: LogEnd, pre_vote: bool
) -> VoteRejection | None:
    """The reason not to grant a vote, by role and by the end of the candidate's log.

    A candidate whose log is behind a majority's could lose what is committed (Raft, 5.4.1).
    """
    up_to_date = end >= (node.log.last_epoch, node.log.end_offset)
    return node.role.vote_rejection(candidate, up_to_date, pre_vote)


def handle_vote_response(
    node: QuorumNode, node_id: int, response: VoteResponse, now_ms: int
) -> bool:
    """Record the vote. A candidate's first count of a voter stays; a pre-vote may be taken back.

    A vote is given once per epoch, so a second response can only be late. A pre-vote promises
    nothing: a voter that the leader has served since then rejects the next one.
    """
    if _has_error(response):
        return False
    role = node.role
    if not isinstance(role, ProspectiveState | CandidateState):
        return True
    # The voter set may have changed since the request: the election is over the set that it began
    # with, or a node could win by voters that were asked under another set.
    if not role.election.is_voter(node_id):
        return True
    if isinstance(role, CandidateState) and role.election.vote_of(node_id) is not Vote.UNRECORDED:
        return True
    role.election.record(node_id, granted=response.topics[0].partitions[0].vote_granted)
    transitions.maybe_elected(node, now_ms)
    if node.role is role and isinstance(role, ProspectiveState) and role.election.is_lost:
        transitions.on_pre_vote_lost(node, now_ms)
    return True


def on_vote_error(node: QuorumNode, node_id: int, error: ErrorCode, now_ms: int) -> bool:
    """A voter that has no pre-votes makes a prospective node a candidate at once.

    Otherwise nobody could win a pre-vote while a majority of the voters runs an older release.
    """
    if error is ErrorCode.UNSUPPORTED_VERSION and isinstance(node.role, ProspectiveState):
        transitions.to_candidate(node, Event.NO_PRE_VOTES, now_ms)
        return True
    return False


# --- BeginQuorumEpoch ---------------------------------------------------------------------------


def check_begin_epoch(
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
    return message_checks.check_voter_request(node, named, now_ms)


def handle_begin_request(
    node: QuorumNode, request: BeginQuorumEpochRequest, version: int, token: Any, now_ms: int
) -> Any:
    """Acknowledge the leader.

    A wrong voter key is rejected only here: the epoch is valid for any receiver.
    """
    directory_id = request.topics[0].partitions[0].voter_directory_id
    is_valid = is_valid_voter_key(node, request.voter_id, directory_id)
    error = ErrorCode.NONE if is_valid else ErrorCode.INVALID_VOTER_KEY
    return wire.election_response(node, request, version, error)


def handle_begin_response(
    node: QuorumNode, node_id: int, response: BeginQuorumEpochResponse, now_ms: int
) -> bool:
    """Record the acknowledgement of a voter.

    Errors:  InconsistentState where ``Rules.late_begin_acknowledgement_is_fatal``, for a voter that
             was removed meanwhile.
    """
    if _has_error(response):
        return False
    role = node.role
    if isinstance(role, LeaderState):
        state = role.voters.get(node_id)
        if state is not None:
            state.acknowledged = True
        # Its response was under way while its removal was written. Kafka 4.3 looks it up among the
        # voters, and the leader falls over (Z57).
        elif node.rules.late_begin_acknowledgement_is_fatal:
            raise InconsistentState(f"an acknowledgement of {node_id}, which does not vote")
    return True


# --- EndQuorumEpoch -----------------------------------------------------------------------------


def check_end_epoch(
    node: QuorumNode, request: EndQuorumEpochRequest, now_ms: int
) -> ErrorCode | None:
    """The leader that resigned and its epoch, which may be news."""
    partition = request.topics[0].partitions[0]
    named = VoterRequestEpoch(
        partition.leader_epoch,
        partition.leader_id,
        partition.leader_id,
        wire.named_endpoints(request.leader_endpoints),
    )
    return message_checks.check_voter_request(node, named, now_ms)


def handle_end_request(
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

    Otherwise, if all started at once, they would split the votes. Each position waits twice as long
    as the one before, the last at most ``max_ms``. A voter that the list leaves out comes behind
    all that are in it. In an empty list, which a leader has that stopped and started again, nobody
    comes before anybody: no voter waits.

    Shapes:  ``position`` in the resigned leader's list, None if absent from it.
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


def handle_end_response(
    node: QuorumNode, node_id: int, response: EndQuorumEpochResponse, now_ms: int
) -> bool:
    """Record the acknowledgement; the voter gets no further EndQuorumEpoch."""
    if _has_error(response):
        return False
    if isinstance(node.role, ResignedState):
        node.role.unacknowledged.pop(node_id, None)
    return True
