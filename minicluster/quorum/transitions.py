"""Changes of role. What must survive a crash is persisted here, before anything else happens.

**Invariant:** the epoch never goes down; within an epoch neither the vote nor a known leader
changes. Every change of role forgets all outstanding requests.

Source:  QuorumState.transitionTo…, KafkaRaftClient.onBecome….
"""

from __future__ import annotations

from minicluster.log.quorum_state import QuorumState
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.quorum import epoch_start_records, listener_context
from minicluster.quorum.effects import Deposed, Voted
from minicluster.quorum.state import parked_fetches
from minicluster.quorum.state.batch_accumulator import BatchAccumulator
from minicluster.quorum.state.epoch_election import EpochElection
from minicluster.quorum.state.epoch_state import (
    CandidateState,
    EpochState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Endpoints, ReplicaKey
from minicluster.quorum.voter_changes import handler_state


def initialize(node: QuorumNode, now_ms: int) -> None:
    """Take up what was persisted, and what the log says beyond it.

    Source:  QuorumState.initialize.
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
        deadline = node.election_deadline(now_ms)
        role = UnattachedState(epoch=node.log.last_epoch, election_deadline_ms=deadline)
    elif leader_id == node.key.id and node.faults.z32_leader_resumes_epoch and node.is_voter:
        node.hit("Z32")
        role = _candidate(node, epoch, now_ms)
        for voter in node.history.voters.ids:
            role.tally.record(voter, granted=True)
    elif leader_id == node.key.id:
        role = _resigned(node, epoch, (), now_ms)
    elif voted is not None and voted.stands_for(node.key) and node.is_voter:
        role = _candidate(node, epoch, now_ms)
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
    node.role = role
    _persist(node)
    if isinstance(role, CandidateState):
        node.emit(Voted(role.epoch, node.key.id))
        go_forward(node, now_ms)
    if node.is_only_voter and not isinstance(node.role, LeaderState | CandidateState):
        to_prospective(node, now_ms)


def follow_message(
    node: QuorumNode, leader_id: int | None, epoch: int, endpoints: Endpoints, now_ms: int
) -> bool:
    """Obey the leader and epoch that a message names, if they are news.

    Shapes:  -> False if the message contradicts what is known of the same epoch.
    Source:  KafkaRaftClient.maybeTransition, hasConsistentLeader.
    """
    if not is_consistent(node, leader_id, epoch):
        return False
    role = node.role
    if epoch > role.epoch or (
        epoch == role.epoch
        and leader_id is not None
        and (role.leader_id is None or len(endpoints) > len(role.leader_endpoints))
    ):
        if leader_id is not None and endpoints:
            to_follower(node, epoch, leader_id, endpoints, now_ms)
        else:
            to_unattached(node, epoch, leader_id, now_ms)
    return True


def is_consistent(node: QuorumNode, leader_id: int | None, epoch: int) -> bool:
    """Whether a message's leader fits what is known: one leader per epoch."""
    if leader_id is None:
        return True
    if leader_id == node.key.id:
        return epoch <= node.epoch and (epoch < node.epoch or node.role.leader_id == leader_id)
    return epoch != node.epoch or node.role.leader_id in (None, leader_id)


def to_unattached(node: QuorumNode, epoch: int, leader_id: int | None, now_ms: int) -> None:
    """Move to an epoch without following anybody; the vote of the same epoch stays."""
    old = node.role
    deadline: int | None
    if not node.is_voter:
        deadline = None
    elif (
        isinstance(old, UnattachedState | CandidateState | ResignedState)
        and (old.election_deadline_ms is not None)
    ) or (isinstance(old, ProspectiveState) and not old.tally.is_lost):
        deadline = old.election_deadline_ms
    else:
        deadline = node.election_deadline(now_ms)
    same_epoch = epoch == old.epoch
    _become(
        node,
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
    if isinstance(old, LeaderState) and not node.rules.parked_fetch_outlives_leadership:
        parked_fetches.fail_all(node, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _after(node, old, now_ms)


def to_follower(
    node: QuorumNode, epoch: int, leader_id: int, endpoints: Endpoints, now_ms: int
) -> None:
    """Follow the leader of an epoch."""
    old = node.role
    voted = old.voted if epoch == old.epoch else None
    role = _follower(node, epoch, leader_id, endpoints, voted, now_ms)
    role.high_watermark = old.high_watermark
    _become(node, role)
    _persist(node)
    parked_fetches.fail_all(node, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _after(node, old, now_ms)


def to_prospective(node: QuorumNode, now_ms: int) -> None:
    """Ask the voters, in the same epoch, whether they would vote for this node (KIP-996)."""
    old = node.role
    _become(
        node,
        ProspectiveState(
            epoch=old.epoch,
            leader_id=old.leader_id,
            leader_endpoints=old.leader_endpoints,
            voted=old.voted,
            high_watermark=old.high_watermark,
            tally=_own_tally(node),
            election_deadline_ms=node.election_deadline(now_ms),
        ),
    )
    _after(node, old, now_ms)
    go_forward(node, now_ms)


def to_candidate(node: QuorumNode, now_ms: int) -> None:
    """Stand for election in the next epoch, with the own vote."""
    old = node.role
    role = _candidate(node, old.epoch + 1, now_ms)
    role.high_watermark = old.high_watermark
    _become(node, role)
    _persist(node)
    node.emit(Voted(role.epoch, node.key.id))
    _after(node, old, now_ms)
    go_forward(node, now_ms)


def to_leader(node: QuorumNode, now_ms: int) -> None:
    """Lead the epoch; its first records are written with the next poll."""
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
            epoch=old.epoch,
            next_offset=start,
            linger_ms=settings.append_linger_ms,
            faults=node.faults,
        ),
        granting=old.tally.granting,
        check_quorum_timeout_ms=settings.check_quorum_timeout_ms,
        check_quorum_deadline_ms=now_ms + settings.check_quorum_timeout_ms,
        begin_epoch_deadline_ms=now_ms,
        begin_epoch_interval_ms=settings.begin_epoch_interval_ms,
        commits_early=node.faults.s24_commits_below_majority,
    )
    role.set_voters(node.history.voters)
    _become(node, role)
    _persist(node)
    node.log.begin_epoch(role.epoch)
    role.accumulator.append_control(epoch_start_records.epoch_start(node, role), now_ms)
    _after(node, old, now_ms)


def to_resigned(node: QuorumNode, preferred: tuple[ReplicaKey, ...], now_ms: int) -> None:
    """Stop leading within the epoch, and tell the voters."""
    old = node.role
    parked_fetches.fail_all(node, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _become(node, _resigned(node, old.epoch, preferred, now_ms))
    _after(node, old, now_ms, tell=False)


def go_forward(node: QuorumNode, now_ms: int) -> None:
    """Take the next step of a won pre-vote or election."""
    role = node.role
    if isinstance(role, ProspectiveState) and role.tally.is_won:
        to_candidate(node, now_ms)
    elif isinstance(role, CandidateState) and role.tally.is_won:
        to_leader(node, now_ms)


def lose_pre_vote(node: QuorumNode, now_ms: int) -> None:
    """Follow the remembered leader again, or nobody, in the same epoch."""
    role = node.role
    if role.leader_id is not None and role.leader_endpoints:
        to_follower(node, role.epoch, role.leader_id, role.leader_endpoints, now_ms)
    else:
        to_unattached(node, role.epoch, role.leader_id, now_ms)


def grant_vote(node: QuorumNode, candidate: ReplicaKey, now_ms: int) -> None:
    """Give the epoch's vote away; the election timeout is drawn anew.

    A Prospective starts its own count again, and its requests stay out.
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
        role.tally = _own_tally(node)
    if node.faults.s22_vote_not_persisted:
        node.hit("S22")
    else:
        _persist(node)
    node.emit(Voted(role.epoch, candidate.id))


# --- inside -------------------------------------------------------------------------------------


def _own_tally(node: QuorumNode) -> EpochElection:
    tally = EpochElection(node.history.voters.ids)
    tally.record(node.key.id, granted=True)
    return tally


def _candidate(node: QuorumNode, epoch: int, now_ms: int) -> CandidateState:
    return CandidateState(
        epoch=epoch,
        voted=node.key,
        tally=_own_tally(node),
        election_deadline_ms=node.election_deadline(now_ms),
    )


def _resigned(
    node: QuorumNode, epoch: int, preferred: tuple[ReplicaKey, ...], now_ms: int
) -> ResignedState:
    others = (voter for voter in node.history.voters.ids if voter != node.key.id)
    return ResignedState(
        epoch=epoch,
        leader_id=node.key.id,
        leader_endpoints=node.own.endpoints,
        election_deadline_ms=node.election_deadline(now_ms),
        preferred=preferred,
        unacknowledged=dict.fromkeys(others),
    )


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


def _become(node: QuorumNode, role: EpochState) -> None:
    assert role.epoch >= node.role.epoch, "the epoch never goes down"
    node.role = role
    node.moved = node.news = True


def _after(node: QuorumNode, old: EpochState, now_ms: int, *, tell: bool = True) -> None:
    if isinstance(old, LeaderState):
        handler_state.abandon(node, old)
        node.emit(Deposed(old.epoch))
    node.requests.reset()
    if tell:
        listener_context.tell_leader_change(node)


def _persist(node: QuorumNode) -> None:
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
