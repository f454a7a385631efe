"""The roles of a node, and every change between them.

What affects the role of a node is decided in this file, by the table below: an event that has no
entry for the present role is a mistake of this code, and is not carried out. A voter's way::

             fetch timeout             pre-votes won              votes won
    Follower -------------> Prospective -----------> Candidate ------------> Leader
        ^                    |   |   ^  (epoch + 1)      |                     | resigns
        | lost, leader known |   |   | election timeout  |                     v
        +--------------------+   |   +-------------------+                  Resigned
        |                   lost v   ^ election timeout                        |
        +------------------ Unattached <--------------- election timeout ------+
          leader found                                    (epoch + 1)

Besides, a message of a higher epoch moves any role to Unattached, or to Follower if it names the
leader and where that is.

**Invariant:** the epoch never goes down; within an epoch neither the vote nor a known leader
changes. Every change of role drops all outstanding requests: their responses belong to the past.

That invariant is what a crash must not break, so the quorum-state file is written within the
change, before any message of the new role leaves:

============  ==========  ===============================  =======================================
to            epoch       quorum-state                     timer
============  ==========  ===============================  =======================================
Unattached    any higher  written; vote of the same epoch  what is left of an election timeout (see
              or same     is kept                          ``to_unattached``), else a new one
Follower      as above    written; likewise                the whole fetch timeout
Prospective   same        not written: nothing in it       a new election timeout
                          has changed
Candidate     + 1         written, with its own vote       a new election timeout
Leader        same        written, without a vote: after   check-quorum
                          a restart it is Resigned, which
                          grants none in that epoch
Resigned      same        not written                      a new election timeout
============  ==========  ===============================  =======================================

Two states of KIP-595 are not roles here, as in Kafka since KIP-996. *Voted* is Unattached, or
Prospective, with a vote (``grant_vote``). *Observer* is a node outside the voter set: it is
Unattached or Follower, and no timeout makes it Prospective (``polling``); only a leader that has
removed itself resigns outside the set.

Source:  QuorumState (the comment at its head, transitionTo…), KafkaRaftClient.onBecome…,
         resetConnections.
"""

from __future__ import annotations

from enum import Enum

from minicluster.log.quorum_state import QuorumState
from minicluster.planting import step
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.records import KRaftVersionRecord, LeaderChangeMessage
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.quorum import listener_context, pending_voter_change
from minicluster.quorum.effects import Deposed, Voted
from minicluster.quorum.errors import InconsistentState
from minicluster.quorum.state.batch_accumulator import BatchAccumulator
from minicluster.quorum.state.epoch_state import (
    CandidateState,
    EpochElection,
    EpochState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voter_set_history import BEFORE_THE_LOG
from minicluster.quorum.state.voters import Endpoints, ReplicaKey


class Event(Enum):
    """The reason for a change of role."""

    EPOCH = "a message of a higher epoch, or the leader of this one, without its endpoint"
    LEADER = "a message that names the leader of a higher epoch or of this one, and its endpoint"
    FETCH_TIMEOUT = "the leader has served no fetch for the fetch timeout"
    ELECTION_TIMEOUT = "the election timeout of the role is over"
    ONLY_VOTER = "the node is the only voter at its start: there is nobody to wait for"
    NO_PRE_VOTES = "a voter runs a release without pre-votes"
    WON = "a majority has granted its votes, or pre-votes"
    LOST = "the pre-vote is lost or timed out, and no leader is known"
    LOST_TO_LEADER = "the pre-vote is lost or timed out, and the epoch has a leader"
    RESIGNED = "requested, check-quorum expired, a shutdown, or the leader has removed itself"


# Of every role.
_EPOCHS: dict[Event, type[EpochState]] = {
    Event.EPOCH: UnattachedState,
    Event.LEADER: FollowerState,
}

TRANSITIONS: dict[type[EpochState], dict[Event, type[EpochState]]] = {
    UnattachedState: {
        **_EPOCHS,
        Event.ELECTION_TIMEOUT: ProspectiveState,
        Event.ONLY_VOTER: ProspectiveState,
    },
    FollowerState: {
        **_EPOCHS,
        Event.FETCH_TIMEOUT: ProspectiveState,
    },
    ProspectiveState: {
        **_EPOCHS,
        Event.WON: CandidateState,  # of the next epoch
        Event.NO_PRE_VOTES: CandidateState,
        Event.LOST: UnattachedState,
        Event.LOST_TO_LEADER: FollowerState,
    },
    CandidateState: {
        **_EPOCHS,
        Event.WON: LeaderState,
        Event.ELECTION_TIMEOUT: ProspectiveState,
    },
    LeaderState: {
        **_EPOCHS,
        Event.RESIGNED: ResignedState,
    },
    ResignedState: {
        **_EPOCHS,
        Event.ELECTION_TIMEOUT: UnattachedState,  # of the next epoch
        Event.ONLY_VOTER: ProspectiveState,
    },
}


def initialize(node: QuorumNode, now_ms: int) -> None:
    """Enter the role that was persisted, or the epoch of the log if that is higher.

    The first that applies decides, in Kafka's order: a vote for itself makes the node a candidate
    again even where the file names the leader that has won since.

    Errors:  InconsistentState where ``Rules.removed_candidate_cannot_start``.
    Source:  QuorumState.initialize, KafkaRaftClient.initialize.
    """
    stored = node.persisted or QuorumState()
    voted = (
        None if stored.voted_id < 0 else ReplicaKey.of(stored.voted_id, stored.voted_directory_id)
    )
    leader_id = None if stored.leader_id < 0 else stored.leader_id
    epoch = stored.leader_epoch
    endpoints = () if leader_id is None else node.history.voters.endpoints_of(leader_id)
    role: EpochState
    if epoch < node.log.last_epoch:
        # The file was lost or is an old one: each epoch is persisted before a record of it comes.
        deadline = node.election_deadline(now_ms)
        role = UnattachedState(epoch=node.log.last_epoch, election_deadline_ms=deadline)
    elif leader_id == node.key.id:
        role = resigned_state(node, epoch, (), now_ms)
    elif voted is not None and voted.matches(node.key) and _can_be_candidate(node):
        role = candidate_state(node, epoch, now_ms)
    elif leader_id is not None and endpoints:
        role = _follower(node, epoch, leader_id, endpoints, voted, now_ms)
    else:
        role = UnattachedState(
            epoch=epoch,
            leader_id=leader_id,
            leader_endpoints=endpoints,
            voted=voted,
            election_deadline_ms=node.election_deadline(now_ms),
        )
    node.take_role(role)
    _persist(node)
    if isinstance(role, CandidateState):
        node.emit(Voted(role.epoch, node.key.id))
        maybe_elected(node, now_ms)
    if node.is_only_voter and not isinstance(node.role, LeaderState | CandidateState):
        to_prospective(node, Event.ONLY_VOTER, now_ms)


def _can_be_candidate(node: QuorumNode) -> bool:
    """It may have been removed from the voters after it had voted for itself."""
    if not node.is_voter and node.rules.removed_candidate_cannot_start:
        raise InconsistentState(f"node {node.key.id} voted for itself and is no voter")
    return node.is_voter


# --- transitionTo… --------------------------------------------------------------------------------


def to_unattached(
    node: QuorumNode, event: Event, epoch: int, leader_id: int | None, now_ms: int
) -> None:
    """Move to an epoch without following a leader; the vote of the same epoch stays.

    A voter keeps the election timeout that runs. Otherwise a node that raises its epoch again and
    again, and cannot win, would keep all others from their elections for ever.

    Source:  QuorumState.transitionToUnattached.
    """
    old = node.role
    deadline: int | None
    if not node.is_voter:
        deadline = None
    elif (
        isinstance(old, UnattachedState | CandidateState | ResignedState)
        and (old.election_deadline_ms is not None)
    ) or (isinstance(old, ProspectiveState) and not old.election.is_lost):
        deadline = old.election_deadline_ms
    else:
        deadline = node.election_deadline(now_ms)
    same_epoch = epoch == old.epoch
    _become(
        node,
        event,
        UnattachedState(
            epoch=epoch,
            leader_id=leader_id,
            leader_endpoints=()
            if leader_id is None
            else node.history.voters.endpoints_of(leader_id),
            voted=old.voted if same_epoch else None,
            high_watermark=old.high_watermark,
            election_deadline_ms=deadline,
        ),
    )
    _persist(node)
    # Kafka leaves them parked here, unlike on the way to Follower or Resigned, and responds after
    # their wait with what it prepared as the leader of the epoch before (Z59).
    if isinstance(old, LeaderState) and not node.rules.parked_fetch_outlives_leadership:
        node.fail_parked(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _after(node, old)


def to_follower(
    node: QuorumNode,
    event: Event,
    epoch: int,
    leader_id: int,
    endpoints: Endpoints,
    now_ms: int,
) -> None:
    """Follow the leader of an epoch. Fetches parked here fail: their senders turn to that leader.

    Source:  QuorumState.transitionToFollower.
    """
    old = node.role
    voted = old.voted if epoch == old.epoch else None
    role = _follower(node, epoch, leader_id, endpoints, voted, now_ms)
    role.high_watermark = old.high_watermark
    _become(node, event, role)
    _persist(node)
    node.fail_parked(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _after(node, old)


def to_prospective(node: QuorumNode, event: Event, now_ms: int) -> None:
    """Request pre-votes in the same epoch (KIP-996).

    Otherwise a node that was cut off comes back with a higher epoch, which deposes a leader that a
    majority follows. The leader and the vote of the epoch are kept: if the pre-vote is lost, the
    node must be able to continue where it was.

    Source:  QuorumState.transitionToProspective.
    """
    old = node.role
    _become(
        node,
        event,
        ProspectiveState(
            epoch=old.epoch,
            leader_id=old.leader_id,
            leader_endpoints=old.leader_endpoints,
            voted=old.voted,
            high_watermark=old.high_watermark,
            election=_own_election(node),
            election_deadline_ms=node.election_deadline(now_ms),
        ),
    )
    _after(node, old)
    maybe_elected(node, now_ms)


def to_candidate(node: QuorumNode, event: Event, now_ms: int) -> None:
    """Request the votes of the next epoch, with this node's own, which is persisted first.

    Source:  QuorumState.transitionToCandidate.
    """
    old = node.role
    role = candidate_state(node, old.epoch + 1, now_ms)
    role.high_watermark = old.high_watermark
    _become(node, event, role)
    _persist(node)
    node.emit(Voted(role.epoch, node.key.id))
    _after(node, old)
    maybe_elected(node, now_ms)


def to_leader(node: QuorumNode, now_ms: int) -> None:
    """Lead the epoch; its first records, the control records, are written with the next turn.

    Source:  QuorumState.transitionToLeader, KafkaRaftClient.onBecomeLeader.
    """
    old = node.role
    assert isinstance(old, CandidateState)
    settings = node.settings
    start = node.log.end_offset
    role = LeaderState(
        epoch=old.epoch,
        leader_id=node.key.id,
        leader_endpoints=node.own.endpoints,
        key=node.key,
        epoch_start_offset=start,
        accumulator=BatchAccumulator(
            epoch=old.epoch, next_offset=start, linger_ms=settings.append_linger_ms
        ),
        granting=old.election.granting,
        check_quorum_timeout_ms=settings.check_quorum_timeout_ms,
        check_quorum_deadline_ms=now_ms + settings.check_quorum_timeout_ms,
        begin_epoch_deadline_ms=now_ms,
        begin_epoch_interval_ms=settings.begin_epoch_interval_ms,
    )
    role.set_voters(node.history.voters)
    _become(node, Event.WON, role)
    _persist(node)
    # From the election on, before LeaderChange is written: a leader that resigns at once compares
    # the logs of candidates with one that ends in its own epoch.
    node.log.begin_epoch(role.epoch)
    role.accumulator.append_control(_epoch_start_records(node, role), now_ms)
    _after(node, old)


def _epoch_start_records(node: QuorumNode, role: LeaderState) -> tuple[object, ...]:
    """LeaderChange; and the voters, if no record has them or this node's entry is old.

    The voters of a bootstrap checkpoint are in no record, and the checkpoint is sent to nobody.
    Otherwise a node that was formatted without it would never learn who votes.

    Source:  LeaderState.appendStartOfEpochControlRecords; KIP-595, KIP-853.
    """
    history = node.history
    records: list[object] = [
        LeaderChangeMessage(
            version=0,
            leader_id=node.key.id,
            voters=tuple(LeaderChangeMessage.Voter(voter_id=i) for i in sorted(role.voters)),
            granting_voters=tuple(LeaderChangeMessage.Voter(voter_id=i) for i in role.granting),
        )
    ]
    only_bootstrapped = history.voters_offset == BEFORE_THE_LOG
    if history.kraft_version > 0 and (only_bootstrapped or history.voters.needs_update(node.own)):
        voters = history.voters.update(node.own) or history.voters
        records.append(KRaftVersionRecord(version=0, kraft_version=history.kraft_version))
        records.append(voters.to_record())
    return tuple(records)


def to_resigned(node: QuorumNode, preferred: tuple[ReplicaKey, ...], now_ms: int) -> None:
    """Stop leading within the epoch, which is over only with the next one.

    Otherwise, if the node left its role at once, it could grant another candidate a vote of the
    epoch that it led itself.

    Source:  QuorumState.transitionToResigned.
    """
    old = node.role
    node.fail_parked(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _become(node, Event.RESIGNED, resigned_state(node, old.epoch, preferred, now_ms))
    _after(node, old, notify=False)


# --- the votes of an election ---------------------------------------------------------------------


def maybe_elected(node: QuorumNode, now_ms: int) -> None:
    """Continue with the next step of a won pre-vote or election.

    Source:  KafkaRaftClient.maybeTransitionForward.
    """
    role = node.role
    if isinstance(role, ProspectiveState) and role.election.is_won:
        to_candidate(node, Event.WON, now_ms)
    elif isinstance(role, CandidateState) and role.election.is_won:
        to_leader(node, now_ms)


def on_pre_vote_lost(node: QuorumNode, now_ms: int) -> None:
    """Follow the leader of the epoch again if one is known: most voters still fetch from it.

    Source:  KafkaRaftClient.prospectiveTransitionAfterElectionLoss.
    """
    role = node.role
    if role.leader_id is not None and role.leader_endpoints:
        event = Event.LOST_TO_LEADER
        to_follower(node, event, role.epoch, role.leader_id, role.leader_endpoints, now_ms)
    else:
        to_unattached(node, Event.LOST, role.epoch, role.leader_id, now_ms)


def grant_vote(node: QuorumNode, candidate: ReplicaKey, now_ms: int) -> None:
    """Give the epoch's vote away, and draw another election timeout.

    Otherwise a voter whose timeout is near would compete with the candidate that it voted for. A
    prospective node starts its own count again; its requests stay outstanding.

    Source:  QuorumState.unattachedAddVotedState, prospectiveAddVotedState.
    """
    role = node.role
    if role.voted is not None:
        return
    role.voted = candidate
    deadline = node.election_deadline(now_ms)
    if isinstance(role, UnattachedState):
        role.election_deadline_ms = deadline
    elif isinstance(role, ProspectiveState):
        role.election_deadline_ms = deadline
        role.election = _own_election(node)
    persist_vote(node)
    node.emit(Voted(role.epoch, candidate.id))


@step
def persist_vote(node: QuorumNode) -> None:
    """Persist the vote before the response that grants it: a restart must not grant another."""
    _persist(node)


# --- states as they begin -------------------------------------------------------------------------


def candidate_state(node: QuorumNode, epoch: int, now_ms: int) -> CandidateState:
    """A candidate of an epoch, with this node's own vote."""
    return CandidateState(
        epoch=epoch,
        voted=node.key,
        election=_own_election(node),
        election_deadline_ms=node.election_deadline(now_ms),
    )


@step
def resigned_state(
    node: QuorumNode, epoch: int, preferred: tuple[ReplicaKey, ...], now_ms: int
) -> EpochState:
    """A leader that has resigned, before any voter has acknowledged it.

    So does one that restarts: what it appended and did not flush may be lost. Otherwise it would
    append other records at such offsets in the same epoch, and two logs could differ where their
    epochs and offsets are the same.
    """
    others = (voter for voter in node.history.voters.ids if voter != node.key.id)
    return ResignedState(
        epoch=epoch,
        leader_id=node.key.id,
        leader_endpoints=node.own.endpoints,
        election_deadline_ms=node.election_deadline(now_ms),
        preferred=preferred,
        unacknowledged=dict.fromkeys(others),
    )


def _own_election(node: QuorumNode) -> EpochElection:
    election = EpochElection(node.history.voters.ids)
    election.record(node.key.id, granted=True)
    return election


def _follower(
    node: QuorumNode,
    epoch: int,
    leader_id: int,
    endpoints: Endpoints,
    voted: ReplicaKey | None,
    now_ms: int,
) -> FollowerState:
    return FollowerState(
        epoch=epoch,
        leader_id=leader_id,
        leader_endpoints=endpoints,
        voted=voted,
        fetch_deadline_ms=now_ms + node.settings.fetch_timeout_ms,
        update_voter_deadline_ms=now_ms + node.settings.update_voter_period_ms,
    )


# --- what every change does -----------------------------------------------------------------------


def _become(node: QuorumNode, event: Event, role: EpochState) -> None:
    old = type(node.role)
    assert TRANSITIONS[old].get(event) is type(role), f"{old.name}: {event.name} to {role.name}"
    assert role.epoch >= node.role.epoch, "the epoch never goes down"
    node.take_role(role)
    node.poll_again = node.listeners_behind = True


def _after(node: QuorumNode, old: EpochState, *, notify: bool = True) -> None:
    if isinstance(old, LeaderState):
        pending_voter_change.on_leadership_lost(node, old)
        node.emit(Deposed(old.epoch))
    # A late response must not count in the new role: a pre-vote of the Prospective is not a vote
    # for the Candidate, and the peer that was backed off may be the new leader.
    node.requests.reset()
    if notify:
        listener_context.on_leader_change(node)


def _persist(node: QuorumNode) -> None:
    """Write quorum-state: version 0 of the file has the voters, version 1 the voted directory."""
    role, version = node.role, node.history.kraft_version
    voted = role.voted
    node.persist(
        QuorumState(
            leader_id=node.leader_id,
            leader_epoch=role.epoch,
            voted_id=-1 if voted is None else voted.id,
            voted_directory_id=ZERO_UUID
            if voted is None or version == 0
            else voted.wire_directory_id,
            current_voters=node.history.voters.ids if version == 0 else (),
            data_version=0 if version == 0 else 1,
        )
    )
