"""One turn of a node: the end of a shutdown, due timers and sending, one message, the listeners.

Each role's ``poll`` acts on what is due and returns its wait (None: until a message comes). A due
timer comes before sending; what the new role sends goes out with the next turn.

Source:  KafkaRaftClient.initialize, poll, pollCurrentState, maybeCompleteShutdown; order as in the
         transcripts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.quorum import listener_context, transitions
from minicluster.quorum.effects import Began, ShutDown
from minicluster.quorum.polling import follower, leader, nominee, resigned, unattached
from minicluster.quorum.polling.send import earliest
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

MAX_TURNS = 1000

_POLL: dict[type, Callable[[QuorumNode, Any, int], int | None]] = {
    UnattachedState: unattached.poll,
    FollowerState: follower.poll,
    ProspectiveState: nominee.poll,
    CandidateState: nominee.poll,
    LeaderState: leader.poll,
    ResignedState: resigned.poll,
}


def start(node: QuorumNode, now_ms: int) -> None:
    """Take up log and election state."""
    node.running = True
    node.log.recover()
    node.log.forget_unwritten_epochs()
    node.emit(Began(node.log.end_offset, node.log.last_epoch))
    node.history.update()
    node.emit_voters_changed()
    transitions.initialize(node, now_ms)


def poll_once(node: QuorumNode, now_ms: int) -> None:
    """Take one turn."""
    parked_until_ms = node.parked_until_ms
    if parked_until_ms is not None and now_ms >= parked_until_ms:
        parked_fetches.expire(node, now_ms)
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
        wake_ms = earliest(wake_ms, node.parked_until_ms, node.shutdown_deadline_ms)
    node.wake_ms = wake_ms


def on_message(
    node: QuorumNode, handle: Callable[..., None], message: tuple[Any, ...], now_ms: int
) -> None:
    """Handle a message, and take turns until nothing is left to do at this time.

    A turn before the message would do nothing, and is not taken, while no timer is due.
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
    """End a graceful shutdown once another leader is known: a leader hands its epoch over first."""
    deadline_ms = node.shutdown_deadline_ms
    finished = not node.is_voter or node.is_only_voter or node.has_remote_leader
    timed_out = deadline_ms is not None and now_ms >= deadline_ms
    if not finished and not timed_out:
        return False
    node.running = False
    node.wake_ms = None
    node.emit(ShutDown(timed_out=timed_out))
    return True
