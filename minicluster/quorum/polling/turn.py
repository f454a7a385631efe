"""One turn of a node: the end of a shutdown, due timers and sending, one message, the listeners.

Each role's function acts on what is due and returns how long it can wait (None: until a message
comes). A due timer comes before sending; what the new role sends goes out with the next poll.

Source:  KafkaRaftClient.poll, pollCurrentState; order as in the transcripts.
"""

from __future__ import annotations

from minicluster.quorum import dispatch, listener_context, transitions, wire
from minicluster.quorum.effects import Began, ShutDown
from minicluster.quorum.polling import leader
from minicluster.quorum.polling.send import ask, earliest, fetch_request
from minicluster.quorum.state import parked_fetches
from minicluster.quorum.state.epoch_state import (
    CandidateState,
    FollowerState,
    ProspectiveState,
    ResignedState,
    UnattachedState,
)
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Node
from minicluster.quorum.voter_changes import follower_requests

VOTE_VERSION = 2
END_EPOCH_VERSION = 1
FETCH_VERSION = 18
FETCH_SNAPSHOT_VERSION = 1
MAX_TURNS = 1000


def start(node: QuorumNode, now_ms: int) -> None:
    """Take up log and election state."""
    node.running = True
    node.log.recover()
    node.log.forget_unwritten_epochs()
    node.emit(Began(node.log.end_offset, node.log.last_epoch))
    node.history.update()
    node.tell_voters()
    transitions.initialize(node, now_ms)


def poll_once(node: QuorumNode, now_ms: int) -> None:
    """Take one turn."""
    if node.parked:
        parked_fetches.expire(node, now_ms)
    if node.shutdown_deadline_ms is not None and _shutdown_ends(node, now_ms):
        return
    wait_ms = _poll_role(node, now_ms)
    if node.messages:
        dispatch.handle(node, node.messages.popleft(), now_ms)
    listener_context.deliver(node)
    node.wake_ms = earliest(
        None if wait_ms is None else now_ms + wait_ms,
        node.shutdown_deadline_ms,
        parked_fetches.next_deadline_ms(node) if node.parked else None,
    )


def settle(node: QuorumNode, now_ms: int, message: dispatch.Message | None = None) -> None:
    """Take a message and as many turns as it needs until nothing is left to do at this time.

    A turn before the message would do nothing, and is not taken, while no timer is due.
    """
    if message is not None:
        if node.running and not node.messages and (node.wake_ms is None or now_ms < node.wake_ms):
            dispatch.handle(node, message, now_ms)
            listener_context.deliver(node)
        else:
            node.messages.append(message)
    for _ in range(MAX_TURNS):
        if not node.running:
            return
        node.moved = False
        more = bool(node.messages)
        poll_once(node, now_ms)
        if not more and not node.moved:
            return
    raise AssertionError(f"node {node.key.id} does not come to rest at {now_ms}")


def _shutdown_ends(node: QuorumNode, now_ms: int) -> bool:
    deadline = node.shutdown_deadline_ms
    if deadline is None:
        return False
    finished = not node.is_voter or node.is_only_voter or node.has_remote_leader
    timed_out = now_ms >= deadline
    if not finished and not timed_out:
        return False
    node.running = False
    node.wake_ms = None
    node.emit(ShutDown(timed_out=timed_out))
    return True


def _poll_role(node: QuorumNode, now_ms: int) -> int | None:
    role = node.role
    if isinstance(role, LeaderState):
        return leader.poll(node, role, now_ms)
    if isinstance(role, FollowerState):
        return _poll_follower(node, role, now_ms)
    if isinstance(role, UnattachedState):
        return _poll_unattached(node, role, now_ms)
    if isinstance(role, ProspectiveState):
        return _poll_prospective(node, role, now_ms)
    if isinstance(role, CandidateState):
        return _poll_candidate(node, role, now_ms)
    assert isinstance(role, ResignedState)
    return _poll_resigned(node, role, now_ms)


# --- looking for a leader ---------------------------------------------------------------------


def _poll_unattached(node: QuorumNode, role: UnattachedState, now_ms: int) -> int | None:
    if not node.is_voter:
        return fetch_from_bootstrap(node, now_ms)
    if node.is_shutting_down:
        return None
    deadline = role.election_deadline_ms
    if deadline is None or now_ms >= deadline:
        transitions.to_prospective(node, now_ms)
        return 0
    return earliest(deadline - now_ms, fetch_from_bootstrap(node, now_ms))


def _poll_prospective(node: QuorumNode, role: ProspectiveState, now_ms: int) -> int | None:
    if node.is_shutting_down:
        return _ask_for_votes(node, role, now_ms)
    if now_ms >= role.election_deadline_ms:
        transitions.lose_pre_vote(node, now_ms)
        return 0
    return earliest(role.election_deadline_ms - now_ms, _ask_for_votes(node, role, now_ms))


def _poll_candidate(node: QuorumNode, role: CandidateState, now_ms: int) -> int | None:
    if node.is_shutting_down:
        return _ask_for_votes(node, role, now_ms)
    if now_ms >= role.election_deadline_ms:
        transitions.to_prospective(node, now_ms)
        return 0
    return earliest(role.election_deadline_ms - now_ms, _ask_for_votes(node, role, now_ms))


def _ask_for_votes(
    node: QuorumNode, role: ProspectiveState | CandidateState, now_ms: int
) -> int | None:
    if role.tally.is_lost:
        return None
    voters = node.history.voters
    pre_vote = isinstance(role, ProspectiveState)

    def request(voter_id: int) -> object:
        voter = voters.get(voter_id)
        assert voter is not None
        return wire.vote_request(
            cluster_id=node.cluster_id,
            voter=voter.key,
            candidate=node.key,
            epoch=role.epoch,
            last_epoch=node.log.last_epoch,
            end_offset=node.log.end_offset,
            pre_vote=pre_vote,
        )

    waits = [
        ask(node, voter_id, request, VOTE_VERSION, now_ms)
        for voter_id in role.tally.unrecorded
        if voters.get(voter_id) is not None
    ]
    return earliest(*waits)


def _poll_resigned(node: QuorumNode, role: ResignedState, now_ms: int) -> int | None:
    """Tell the voters, also in the turn in which the time is over, and then go on."""

    def request(_: int) -> object:
        return wire.end_epoch_request(
            cluster_id=node.cluster_id,
            leader_id=node.key.id,
            epoch=role.epoch,
            preferred=role.preferred,
        )

    waits = [
        ask(node, voter_id, request, END_EPOCH_VERSION, now_ms) for voter_id in role.unacknowledged
    ]
    if node.is_shutting_down:
        return earliest(*waits)
    if now_ms >= role.election_deadline_ms:
        transitions.to_unattached(node, role.epoch + 1, None, now_ms)
        return 0
    return earliest(role.election_deadline_ms - now_ms, *waits)


# --- following --------------------------------------------------------------------------------


def _poll_follower(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    if not node.is_voter:
        return _poll_observer(node, role, now_ms)
    if node.is_shutting_down:
        return 0
    if now_ms >= role.fetch_deadline_ms:
        transitions.to_prospective(node, now_ms)
        return 0
    wait_ms = None
    if now_ms >= role.update_voter_deadline_ms:
        wait_ms = follower_requests.update_voter(node, role, now_ms)
    if wait_ms is None:
        wait_ms = fetch_from_leader(node, role, now_ms)
    return earliest(
        role.fetch_deadline_ms - now_ms, _until_due(role.update_voter_deadline_ms, now_ms), wait_ms
    )


def _until_due(deadline_ms: int, now_ms: int) -> int | None:
    """How long until a deadline; what is due already waits for something else."""
    return deadline_ms - now_ms if deadline_ms > now_ms else None


def _poll_observer(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    if follower_requests.may_join(node) and now_ms >= role.update_voter_deadline_ms:
        wait_ms = follower_requests.join(node, role, now_ms)
        if wait_ms is not None:
            return wait_ms
    wait_ms = fetch_from_leader(node, role, now_ms)
    if follower_requests.may_join(node):
        return earliest(wait_ms, _until_due(role.update_voter_deadline_ms, now_ms))
    return wait_ms


def fetch_from_leader(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Fetch from the leader; from a bootstrap server if the leader is silent or held back."""
    leader = node.leader_node
    requests = node.requests
    if leader is None:
        return fetch_from_bootstrap(node, now_ms)
    if requests.has_timed_out(leader.id, now_ms):
        requests.drop(leader.id)
        return fetch_from_bootstrap(node, now_ms)
    if requests.is_backing_off(leader.id, now_ms):
        return fetch_from_bootstrap(node, now_ms)
    if requests.has_any_in_flight(now_ms):
        return requests.bootstrap_wait_ms(now_ms)
    if requests.is_ready(leader.id, now_ms):
        _fetch(node, role, leader, now_ms)
    return requests.wait_ms(leader.id, now_ms)


def _fetch(node: QuorumNode, role: FollowerState, leader: Node, now_ms: int) -> None:
    if role.download is None:
        node.send(leader, fetch_request(node), FETCH_VERSION, now_ms)
        return
    request = wire.fetch_snapshot_request(
        cluster_id=node.cluster_id,
        replica=node.key,
        epoch=role.epoch,
        snapshot_id=role.download.snapshot_id,
        position=len(role.download.content),
        max_bytes=node.settings.fetch_snapshot_max_bytes,
    )
    node.send(leader, request, FETCH_SNAPSHOT_VERSION, now_ms)


def fetch_from_bootstrap(node: QuorumNode, now_ms: int) -> int | None:
    """Fetch from some bootstrap server, which will say who leads."""
    if now_ms < node.bootstrap_rest_until_ms:
        return node.bootstrap_rest_until_ms - now_ms
    server = node.requests.find_ready_bootstrap_server(now_ms)
    if server is not None:
        node.send(server, fetch_request(node), FETCH_VERSION, now_ms)
        node.bootstrap_rest_until_ms = now_ms + node.settings.leaderless_pause_ms
    return node.requests.bootstrap_wait_ms(now_ms)
