"""One turn of a node, and what each role does in it by itself.

A turn is: the end of a shutdown, what the role has due, one message, the listeners. Each role's
function acts on what is due and returns its wait (None: until a message comes). A due timer comes
before sending; what the new role sends is sent with the next turn.

Source:  KafkaRaftClient.initialize, poll, pollCurrentState, pollUnattached, pollFollower,
         pollFollowerAsVoter, pollFollowerAsObserver, pollProspective, pollCandidate, pollLeader,
         pollResigned, maybeCompleteShutdown; order as in the transcripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minicluster.planting import step
from minicluster.protocol.messages import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchRequest,
    VoteRequest,
)
from minicluster.quorum import (
    joining,
    listener_context,
    pending_voter_change,
    replication,
    transitions,
    wire,
)
from minicluster.quorum.effects import Appended, Began, ShutDown
from minicluster.quorum.state.epoch_state import (
    CandidateState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Node, Voter, node_at
from minicluster.quorum.transitions import Event

VOTE_VERSION = 2
BEGIN_QUORUM_EPOCH_VERSION = 1
END_QUORUM_EPOCH_VERSION = 1
FETCH_VERSION = 18
FETCH_SNAPSHOT_VERSION = 1
MAX_TURNS = 1000


# --- turns ----------------------------------------------------------------------------------------


def start(node: QuorumNode, now_ms: int) -> None:
    """Recover the log, then the role from quorum-state."""
    node.running = True
    # The log first: the role is compared with its last epoch, and the voters come from it.
    node.log.recover()
    node.log.forget_unwritten_epochs()
    node.emit(Began(node.log.end_offset, node.log.last_epoch))
    node.history.update()
    node.emit_voters_changed()
    transitions.initialize(node, now_ms)


def poll_once(node: QuorumNode, now_ms: int) -> None:
    """One turn."""
    parked_until_ms = node.parked_until_ms
    if parked_until_ms is not None and now_ms >= parked_until_ms:
        node.expire_parked(now_ms)
    if node.shutdown_deadline_ms is not None and _maybe_complete_shutdown(node, now_ms):
        return
    role = node.role
    wait_ms = _POLL[type(role)](node, role, now_ms)
    if node.messages:
        handle, message = node.messages.popleft()
        handle(node, *message, now_ms)
    if node.listeners_behind:
        listener_context.update_listeners(node)
    wake_ms = None if wait_ms is None else now_ms + wait_ms
    if node.parked_until_ms is not None or node.shutdown_deadline_ms is not None:
        wake_ms = _earliest(wake_ms, node.parked_until_ms, node.shutdown_deadline_ms)
    node.wake_ms = wake_ms


def on_message(
    node: QuorumNode, handle: Callable[..., None], message: tuple[Any, ...], now_ms: int
) -> None:
    """Handle a message, and take turns until nothing is left to do at this time.

    Kafka polls before each message; while no timer is due that does nothing, and is left out.
    """
    if node.running and not node.messages and (node.wake_ms is None or now_ms < node.wake_ms):
        handle(node, *message, now_ms)
        if node.listeners_behind:
            listener_context.update_listeners(node)
    else:
        node.messages.append((handle, message))
    poll_until_idle(node, now_ms)


def poll_until_idle(node: QuorumNode, now_ms: int) -> None:
    """Take turns until nothing is left to do at this time."""
    for _ in range(MAX_TURNS):
        if not node.running:
            return
        node.poll_again = False
        more = bool(node.messages)
        poll_once(node, now_ms)
        if not more and not node.poll_again:
            return
    raise AssertionError(f"node {node.key.id} does not come to rest at {now_ms}")


def _maybe_complete_shutdown(node: QuorumNode, now_ms: int) -> bool:
    """End a graceful shutdown once another leader is known: a leader hands its epoch over first.

    Otherwise the quorum would be without a leader until a fetch timeout, at each rolling restart.
    """
    deadline_ms = node.shutdown_deadline_ms
    finished = not node.is_voter or node.is_only_voter or node.has_remote_leader
    timed_out = deadline_ms is not None and now_ms >= deadline_ms
    if not finished and not timed_out:
        return False
    node.running = False
    node.wake_ms = None
    node.emit(ShutDown(timed_out=timed_out))
    return True


# --- Unattached -----------------------------------------------------------------------------------


def _poll_unattached(node: QuorumNode, role: UnattachedState, now_ms: int) -> int | None:
    """Look for the leader and, as a voter, wait for the election timeout."""
    if not node.is_voter:
        return _maybe_send_fetch_to_bootstrap_server(node, now_ms)
    if node.is_shutting_down:
        return None
    # A voter fetches, too: the response names a leader that it has not heard from, and spares the
    # quorum an election.
    deadline_ms = role.election_deadline_ms
    if deadline_ms is None or now_ms >= deadline_ms:
        transitions.to_prospective(node, Event.ELECTION_TIMEOUT, now_ms)
        return 0
    return _earliest(deadline_ms - now_ms, _maybe_send_fetch_to_bootstrap_server(node, now_ms))


# --- Follower -------------------------------------------------------------------------------------


def _poll_follower(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Fetch from the leader: a voter within the fetch timeout, an observer for ever."""
    if node.history.is_voter:
        return _poll_follower_as_voter(node, role, now_ms)
    return _poll_follower_as_observer(node, role, now_ms)


def _poll_follower_as_voter(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    # It knows another leader, so the next turn ends the shutdown; it starts no election on the way.
    if node.shutdown_deadline_ms is not None:
        return 0
    if now_ms >= role.fetch_deadline_ms:
        transitions.to_prospective(node, Event.FETCH_TIMEOUT, now_ms)
        return 0
    wait_ms = None
    if now_ms >= role.update_voter_deadline_ms:
        wait_ms = joining.maybe_send_update_voter(node, role, now_ms)
    if wait_ms is None:
        wait_ms = _maybe_send_fetch(node, role, now_ms)
    return _earliest(
        role.fetch_deadline_ms - now_ms, _until(role.update_voter_deadline_ms, now_ms), wait_ms
    )


def _poll_follower_as_observer(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    if not joining.auto_joins(node):
        return _maybe_send_fetch(node, role, now_ms)
    if now_ms >= role.update_voter_deadline_ms:
        wait_ms = joining.maybe_send_add_or_remove_voter(node, role, now_ms)
        if wait_ms is not None:
            return wait_ms
    wait_ms = _maybe_send_fetch(node, role, now_ms)
    return _earliest(wait_ms, _until(role.update_voter_deadline_ms, now_ms))


def _until(deadline_ms: int, now_ms: int) -> int | None:
    """The wait until a deadline; what is due already waits for something else."""
    return deadline_ms - now_ms if deadline_ms > now_ms else None


def _maybe_send_fetch(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Fetch from the leader; from a bootstrap server if the leader is silent or backing off.

    Otherwise an observer, to which no leader announces itself, would fetch for ever from one that
    is gone; any peer names the next.

    Source:  KafkaRaftClient.maybeSendFetchToBestNode.
    """
    leader, requests = node.leader_node, node.requests
    if leader is None:
        return _maybe_send_fetch_to_bootstrap_server(node, now_ms)
    if requests.are_any:
        if requests.has_timed_out(leader.id, now_ms):
            requests.drop(leader.id)
            return _maybe_send_fetch_to_bootstrap_server(node, now_ms)
        if requests.is_backing_off(leader.id, now_ms):
            return _maybe_send_fetch_to_bootstrap_server(node, now_ms)
        if requests.has_any_in_flight(now_ms):
            return requests.bootstrap_wait_ms(now_ms)
    _send_fetch(node, role, leader, now_ms)
    return requests.request_timeout_ms


def _send_fetch(node: QuorumNode, role: FollowerState, leader: Node, now_ms: int) -> None:
    fetching = role.fetching_snapshot
    if fetching is None:
        node.send(leader, _fetch_request(node), FETCH_VERSION, now_ms)
        return
    request = wire.fetch_snapshot_request(
        cluster_id=node.cluster_id,
        replica=node.key,
        epoch=role.epoch,
        snapshot_id=fetching.snapshot_id,
        position=len(fetching.content),
        max_bytes=node.settings.fetch_snapshot_max_bytes,
    )
    node.send(leader, request, FETCH_SNAPSHOT_VERSION, now_ms)


# --- Prospective, Candidate -----------------------------------------------------------------------


def _poll_nominee(
    node: QuorumNode, role: ProspectiveState | CandidateState, now_ms: int
) -> int | None:
    """Request votes until the election is won, lost or timed out.

    A node that shuts down starts no further election.
    """
    if node.is_shutting_down:
        return _maybe_send_votes(node, role, now_ms)
    if now_ms >= role.election_deadline_ms:
        if isinstance(role, ProspectiveState):
            transitions.on_pre_vote_lost(node, now_ms)
        else:
            transitions.to_prospective(node, Event.ELECTION_TIMEOUT, now_ms)
        return 0
    return _earliest(role.election_deadline_ms - now_ms, _maybe_send_votes(node, role, now_ms))


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

    return _maybe_send_to_voters(node, role.election.unrecorded, request, VOTE_VERSION, now_ms)


# --- Leader ---------------------------------------------------------------------------------------


def _poll_leader(node: QuorumNode, role: LeaderState, now_ms: int) -> int | None:
    """Resign; or write what was appended, and announce this leader to voters that are silent."""
    if (
        role.resign_requested
        or node.shutdown_deadline_ms is not None
        or (now_ms >= role.check_quorum_deadline_ms and check_quorum_expired(node, role, now_ms))
    ):
        transitions.to_resigned(node, role.voters_by_descending_offset(), now_ms)
        return 0
    if role.pending_add is not None or role.pending_remove is not None:
        pending_voter_change.expire(node, role, now_ms)
    due_ms = role.accumulator.due_ms
    if due_ms is not None and now_ms >= due_ms:
        _write(node, role, now_ms)
    if now_ms >= role.begin_epoch_deadline_ms:
        _send_begin_quorum_epoch(node, role, now_ms)
    return _leader_wait_ms(role, now_ms)


def _leader_wait_ms(role: LeaderState, now_ms: int) -> int | None:
    """The wait until the next deadline, nothing where one is due by now."""
    deadlines_ms = [] if role.is_only_voter else [role.begin_epoch_deadline_ms]
    if len(role.voters) > 1 and now_ms < role.check_quorum_deadline_ms:
        deadlines_ms.append(role.check_quorum_deadline_ms)
    for deadline_ms in (role.accumulator.due_ms, pending_voter_change.next_deadline_ms(role)):
        if deadline_ms is not None:
            deadlines_ms.append(deadline_ms)
    return max(0, min(deadlines_ms) - now_ms) if deadlines_ms else None


@step
def check_quorum_expired(node: QuorumNode, role: LeaderState, now_ms: int) -> bool:
    """A majority has not fetched for too long: it may have elected another leader.

    Otherwise, cut off from the majority, it would lead on and its clients would wait for commits
    that never come, instead of looking for that leader.

    Source:  KIP-835; LeaderState.timeUntilCheckQuorumExpires.
    """
    return role.check_quorum_expired(now_ms)


def _write(node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    for batch in role.accumulator.drain():
        node.log.log.append(batch)
        node.emit(Appended(batch))
    node.read_control_records()
    # Before the own end counts. Otherwise the high watermark would pass records that a power cut
    # takes from this log, and that only a minority has then.
    node.flush()
    replication.on_append(node, role, now_ms)


def _send_begin_quorum_epoch(node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    """Announce this leader to voters that do not fetch: they may wait for their election."""

    def request(voter: Voter) -> BeginQuorumEpochRequest:
        return wire.begin_epoch_request(
            cluster_id=node.cluster_id,
            voter=voter.key,
            leader_id=node.key.id,
            epoch=role.epoch,
            endpoints=node.own.endpoints,
        )

    silent = role.voters_without_recent_fetch(now_ms)
    _maybe_send_to_voters(node, silent, request, BEGIN_QUORUM_EPOCH_VERSION, now_ms)
    role.begin_epoch_deadline_ms = now_ms + role.begin_epoch_interval_ms


# --- Resigned -------------------------------------------------------------------------------------


def _poll_resigned(node: QuorumNode, role: ResignedState, now_ms: int) -> int | None:
    """Announce the end of the epoch, then move to the next one.

    The announcement is sent also in the turn in which the time is over. Otherwise a node that is
    polled late would leave every voter to its fetch timeout. The next epoch is one in which this
    node has not voted: it must not lead its own one again.
    """

    def request(_: Voter) -> EndQuorumEpochRequest:
        return wire.end_epoch_request(
            cluster_id=node.cluster_id,
            leader_id=node.key.id,
            epoch=role.epoch,
            preferred=role.preferred,
        )

    wait_ms = _maybe_send_to_voters(
        node, role.unacknowledged, request, END_QUORUM_EPOCH_VERSION, now_ms
    )
    if node.is_shutting_down:
        return wait_ms
    if now_ms >= role.election_deadline_ms:
        transitions.to_unattached(node, Event.ELECTION_TIMEOUT, role.epoch + 1, None, now_ms)
        return 0
    return _earliest(role.election_deadline_ms - now_ms, wait_ms)


_POLL: dict[type, Callable[[QuorumNode, Any, int], int | None]] = {
    UnattachedState: _poll_unattached,
    FollowerState: _poll_follower,
    ProspectiveState: _poll_nominee,
    CandidateState: _poll_nominee,
    LeaderState: _poll_leader,
    ResignedState: _poll_resigned,
}


# --- sending --------------------------------------------------------------------------------------


def _earliest(*waits_ms: int | None) -> int | None:
    """The shortest wait; None, which is for ever, only if there is no other."""
    shortest: int | None = None
    for wait in waits_ms:
        if wait is not None and (shortest is None or wait < shortest):
            shortest = wait
    return shortest


def _maybe_send_to_voters(
    node: QuorumNode,
    voter_ids: Iterable[int],
    request: Callable[[Voter], object],
    version: int,
    now_ms: int,
) -> int | None:
    """Send a request to each voter that can take one now; -> the wait until one can (again).

    Source:  KafkaRaftClient.maybeSendRequest.
    """
    waits_ms: list[int] = []
    for voter_id in voter_ids:
        voter = node.history.voters.get(voter_id)
        if voter is None or voter_id == node.key.id:
            continue
        to = node_at(voter_id, voter.endpoints, node.listener_name)
        if to is None:
            continue
        if node.requests.is_ready(voter_id, now_ms):
            node.send(to, request(voter), version, now_ms)
        waits_ms.append(node.requests.wait_ms(voter_id, now_ms))
    return min(waits_ms, default=None)


def _maybe_send_fetch_to_bootstrap_server(node: QuorumNode, now_ms: int) -> int | None:
    """Fetch from a bootstrap server, whose response names the leader.

    Source:  KafkaRaftClient.maybeSendFetchToAnyBootstrap.
    """
    if now_ms < node.leaderless_pause_until_ms:
        return node.leaderless_pause_until_ms - now_ms
    server = node.requests.find_ready_bootstrap_server(now_ms)
    if server is not None:
        node.send(server, _fetch_request(node), FETCH_VERSION, now_ms)
        node.leaderless_pause_until_ms = now_ms + node.settings.leaderless_pause_ms
    return node.requests.bootstrap_wait_ms(now_ms)


def _fetch_request(node: QuorumNode) -> FetchRequest:
    """The Fetch for what follows this node's log, the same value again while nothing changes.

    Otherwise an idle quorum, which does nothing but fetch, would build and encode each one.
    """
    role, offset, last_epoch = node.role, node.log.end_offset, node.log.last_epoch
    high_watermark = -1 if role.high_watermark is None else role.high_watermark
    key = (role.epoch, offset, last_epoch, high_watermark)
    if node.last_fetch is None or node.last_fetch[0] != key:
        request = wire.fetch_request(
            cluster_id=node.cluster_id,
            replica=node.key,
            epoch=role.epoch,
            offset=offset,
            last_epoch=last_epoch,
            high_watermark=high_watermark,
            max_wait_ms=node.settings.fetch_max_wait_ms,
            max_bytes=node.settings.fetch_max_bytes,
        )
        node.last_fetch = (key, request)
    return node.last_fetch[1]
