"""What a leader does by itself: write, announce itself, watch its quorum, resign.

Source:  KafkaRaftClient.pollLeader, LeaderState.
"""

from __future__ import annotations

from minicluster.quorum import transitions, wire
from minicluster.quorum.effects import Appended
from minicluster.quorum.polling.send import ask, earliest
from minicluster.quorum.requests import fetch
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.voter_changes import handler_state

BEGIN_EPOCH_VERSION = 1


def poll(node: QuorumNode, role: LeaderState, now_ms: int) -> int | None:
    """Take one turn as the leader."""
    if (
        node.is_shutting_down
        or role.resign_requested
        or (role.check_quorum_expired(now_ms) and not _ignores_check_quorum(node))
    ):
        transitions.to_resigned(node, role.replicas_by_descending_offset(), now_ms)
        return 0
    handler_state.expire(node, role, now_ms)
    _write(node, role, now_ms)
    _announce(node, role, now_ms)
    left = role.check_quorum_deadline_ms - now_ms
    check = None if len(role.voters) == 1 or left <= 0 else left
    change = handler_state.next_deadline_ms(role)
    due = role.accumulator.due_ms
    announce = None if role.is_alone else role.begin_epoch_deadline_ms - now_ms
    return earliest(
        check,
        None if change is None else max(0, change - now_ms),
        None if due is None else max(0, due - now_ms),
        announce,
    )


def _ignores_check_quorum(node: QuorumNode) -> bool:
    if node.faults.z34_no_check_quorum:
        node.hit("Z34")
        return True
    return False


def _write(node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    due = role.accumulator.due_ms
    if due is None or now_ms < due:
        return
    for batch in role.accumulator.drain():
        node.log.append(batch)
        node.emit(Appended(batch))
    node.read_control_records()
    node.flush()
    if role.on_local_end(node.log.end_offset, node.history.voters):
        fetch.on_high_watermark(node, role, now_ms)
    fetch.wake_all(node, now_ms)


def _announce(node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    if now_ms < role.begin_epoch_deadline_ms:
        return
    voters = node.history.voters

    def request(voter_id: int) -> object:
        voter = voters.get(voter_id)
        assert voter is not None
        return wire.begin_epoch_request(
            cluster_id=node.cluster_id,
            voter=voter.key,
            leader_id=node.key.id,
            epoch=role.epoch,
            endpoints=node.own.endpoints,
        )

    for voter_id in role.silent_voters(now_ms):
        ask(node, voter_id, request, BEGIN_EPOCH_VERSION, now_ms)
    role.begin_epoch_deadline_ms = now_ms + role.begin_epoch_interval_ms
