"""Changes of role. What must survive a crash is persisted here, before anything else happens.

**Invariant:** the epoch never goes down; within an epoch neither the vote nor a known leader
changes. Every change of role drops all outstanding requests: their responses belong to the past.

Source:  QuorumState.transitionTo…, KafkaRaftClient.onBecome…, resetConnections.
"""

from __future__ import annotations

from minicluster.log.quorum_state import QuorumState
from minicluster.planting import step
from minicluster.protocol.error_codes import ErrorCode
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.quorum import listener_context
from minicluster.quorum.effects import Deposed, Voted
from minicluster.quorum.epoch_start_records import epoch_start_records
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
    """Take up what was persisted, or the epoch of the log if that is higher.

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
        deadline = node.election_deadline(now_ms)
        role = UnattachedState(epoch=node.log.last_epoch, election_deadline_ms=deadline)
    elif leader_id == node.key.id:
        role = state_of_former_leader(node, epoch, now_ms)
    elif voted is not None and voted.matches(node.key) and node.is_voter:
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
        to_prospective(node, now_ms)


def to_unattached(node: QuorumNode, epoch: int, leader_id: int | None, now_ms: int) -> None:
    """Move to an epoch without following a leader; the vote of the same epoch stays.

    A voter keeps the election timeout that runs: other nodes' epochs must not put it off for ever.
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
    _after(node, old)


def to_follower(
    node: QuorumNode, epoch: int, leader_id: int, endpoints: Endpoints, now_ms: int
) -> None:
    """Follow the leader of an epoch. Fetches parked here go on to that leader."""
    old = node.role
    voted = old.voted if epoch == old.epoch else None
    role = _follower(node, epoch, leader_id, endpoints, voted, now_ms)
    role.high_watermark = old.high_watermark
    _become(node, role)
    _persist(node)
    parked_fetches.fail_all(node, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _after(node, old)


def to_prospective(node: QuorumNode, now_ms: int) -> None:
    """Request pre-votes in the same epoch: a node that cannot win must not raise it (KIP-996)."""
    old = node.role
    _become(
        node,
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


def to_candidate(node: QuorumNode, now_ms: int) -> None:
    """Request the votes of the next epoch, with this node's own."""
    old = node.role
    role = candidate_state(node, old.epoch + 1, now_ms)
    role.high_watermark = old.high_watermark
    _become(node, role)
    _persist(node)
    node.emit(Voted(role.epoch, node.key.id))
    _after(node, old)
    maybe_elected(node, now_ms)


def to_leader(node: QuorumNode, now_ms: int) -> None:
    """Lead the epoch; its first records, the control records, are written with the next turn."""
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
    _become(node, role)
    _persist(node)
    node.log.begin_epoch(role.epoch)
    role.accumulator.append_control(epoch_start_records(node, role), now_ms)
    _after(node, old)


def to_resigned(node: QuorumNode, preferred: tuple[ReplicaKey, ...], now_ms: int) -> None:
    """Stop leading within the epoch. A resigned leader stays in it and cannot vote in it again."""
    old = node.role
    parked_fetches.fail_all(node, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    _become(node, resigned_state(node, old.epoch, preferred, now_ms))
    _after(node, old, notify=False)


def maybe_elected(node: QuorumNode, now_ms: int) -> None:
    """Take the next step of a won pre-vote or election.

    Source:  KafkaRaftClient.maybeTransitionForward.
    """
    role = node.role
    if isinstance(role, ProspectiveState) and role.election.is_won:
        to_candidate(node, now_ms)
    elif isinstance(role, CandidateState) and role.election.is_won:
        to_leader(node, now_ms)


def on_pre_vote_lost(node: QuorumNode, now_ms: int) -> None:
    """Follow the leader of the epoch again if one is known: most voters still fetch from it.

    Source:  KafkaRaftClient.prospectiveTransitionAfterElectionLoss.
    """
    role = node.role
    if role.leader_id is not None and role.leader_endpoints:
        to_follower(node, role.epoch, role.leader_id, role.leader_endpoints, now_ms)
    else:
        to_unattached(node, role.epoch, role.leader_id, now_ms)


def grant_vote(node: QuorumNode, candidate: ReplicaKey, now_ms: int) -> None:
    """Give the epoch's vote away; the election timeout is drawn anew, for the candidate's sake.

    A prospective node starts its own count again; its requests stay outstanding.

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


@step
def state_of_former_leader(node: QuorumNode, epoch: int, now_ms: int) -> EpochState:
    """Resign on a restart: what this leader appended and did not flush may be lost.

    Another record at such an offset in the same epoch would break the log's matching.
    """
    return resigned_state(node, epoch, (), now_ms)


def candidate_state(node: QuorumNode, epoch: int, now_ms: int) -> CandidateState:
    """A candidate of an epoch, with this node's own vote."""
    return CandidateState(
        epoch=epoch,
        voted=node.key,
        election=_own_election(node),
        election_deadline_ms=node.election_deadline(now_ms),
    )


def resigned_state(
    node: QuorumNode, epoch: int, preferred: tuple[ReplicaKey, ...], now_ms: int
) -> ResignedState:
    """A leader that has resigned, before any voter has acknowledged it."""
    others = (voter for voter in node.history.voters.ids if voter != node.key.id)
    return ResignedState(
        epoch=epoch,
        leader_id=node.key.id,
        leader_endpoints=node.own.endpoints,
        election_deadline_ms=node.election_deadline(now_ms),
        preferred=preferred,
        unacknowledged=dict.fromkeys(others),
    )


# --- inside -------------------------------------------------------------------------------------


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


def _become(node: QuorumNode, role: EpochState) -> None:
    assert role.epoch >= node.role.epoch, "the epoch never goes down"
    node.take_role(role)
    node.poll_again = node.listeners_behind = True


def _after(node: QuorumNode, old: EpochState, *, notify: bool = True) -> None:
    if isinstance(old, LeaderState):
        handler_state.on_leadership_lost(node, old)
        node.emit(Deposed(old.epoch))
    node.requests.reset()
    if notify:
        listener_context.on_leader_change(node)


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
