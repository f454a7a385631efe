"""A leader writes what was appended, announces itself to voters that do not fetch, or resigns.

Source:  KafkaRaftClient.pollLeader, maybeSendBeginQuorumEpochRequests, appendBatch.
"""

from __future__ import annotations

from minicluster.planting import step
from minicluster.protocol.messages import BeginQuorumEpochRequest
from minicluster.quorum import replication, transitions, wire
from minicluster.quorum.effects import Appended
from minicluster.quorum.polling.send import maybe_send_to_voters
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Voter
from minicluster.quorum.voter_changes import handler_state

BEGIN_QUORUM_EPOCH_VERSION = 1


def poll(node: QuorumNode, role: LeaderState, now_ms: int) -> int | None:
    """Act on what is due; -> the wait."""
    if (
        role.resign_requested
        or node.shutdown_deadline_ms is not None
        or (now_ms >= role.check_quorum_deadline_ms and check_quorum_expired(node, role, now_ms))
    ):
        transitions.to_resigned(node, role.voters_by_descending_offset(), now_ms)
        return 0
    if role.pending_add is not None or role.pending_remove is not None:
        handler_state.expire(node, role, now_ms)
    due_ms = role.accumulator.due_ms
    if due_ms is not None and now_ms >= due_ms:
        _write(node, role, now_ms)
    if now_ms >= role.begin_epoch_deadline_ms:
        _send_begin_quorum_epoch(node, role, now_ms)
    return _wait_ms(role, now_ms)


def _wait_ms(role: LeaderState, now_ms: int) -> int | None:
    """The wait until the next deadline, nothing where one is due by now."""
    deadlines_ms = [] if role.is_only_voter else [role.begin_epoch_deadline_ms]
    if len(role.voters) > 1 and now_ms < role.check_quorum_deadline_ms:
        deadlines_ms.append(role.check_quorum_deadline_ms)
    for deadline_ms in (role.accumulator.due_ms, handler_state.next_deadline_ms(role)):
        if deadline_ms is not None:
            deadlines_ms.append(deadline_ms)
    return max(0, min(deadlines_ms) - now_ms) if deadlines_ms else None


@step
def check_quorum_expired(node: QuorumNode, role: LeaderState, now_ms: int) -> bool:
    """A majority has not fetched for too long: it may have elected another leader.

    The leader resigns, so that its clients look for that leader instead of waiting for commits.

    Source:  KIP-835; LeaderState.timeUntilCheckQuorumExpires.
    """
    return role.check_quorum_expired(now_ms)


def _write(node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    for batch in role.accumulator.drain():
        node.log.log.append(batch)
        node.emit(Appended(batch))
    node.read_control_records()
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
    maybe_send_to_voters(node, silent, request, BEGIN_QUORUM_EPOCH_VERSION, now_ms)
    role.begin_epoch_deadline_ms = now_ms + role.begin_epoch_interval_ms
