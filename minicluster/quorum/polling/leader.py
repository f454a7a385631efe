"""A leader writes what was appended, announces itself to voters that do not fetch, or resigns.

Source:  KafkaRaftClient.pollLeader, maybeSendBeginQuorumEpochRequests, appendBatch.
"""

from __future__ import annotations

from minicluster.planting import step
from minicluster.protocol.messages import BeginQuorumEpochRequest
from minicluster.quorum import replication, transitions, wire
from minicluster.quorum.effects import Appended
from minicluster.quorum.polling.send import earliest, maybe_send_to_voters
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Voter
from minicluster.quorum.voter_changes import handler_state

BEGIN_QUORUM_EPOCH_VERSION = 1


def poll(node: QuorumNode, role: LeaderState, now_ms: int) -> int | None:
    """Act on what is due; -> the wait."""
    if node.is_shutting_down or role.resign_requested or check_quorum_expired(node, role, now_ms):
        transitions.to_resigned(node, role.voters_by_descending_offset(), now_ms)
        return 0
    handler_state.expire(node, role, now_ms)
    _write(node, role, now_ms)
    _maybe_send_begin_quorum_epoch(node, role, now_ms)
    left_ms = role.check_quorum_deadline_ms - now_ms
    check_ms = None if len(role.voters) == 1 or left_ms <= 0 else left_ms
    change_ms = handler_state.next_deadline_ms(role)
    drain_ms = role.accumulator.due_ms
    return earliest(
        check_ms,
        None if change_ms is None else max(0, change_ms - now_ms),
        None if drain_ms is None else max(0, drain_ms - now_ms),
        None if role.is_only_voter else role.begin_epoch_deadline_ms - now_ms,
    )


@step
def check_quorum_expired(node: QuorumNode, role: LeaderState, now_ms: int) -> bool:
    """A majority has not fetched for too long: it may have elected another leader.

    The leader resigns, so that its clients look for that leader instead of waiting for commits.

    Source:  KIP-835; LeaderState.timeUntilCheckQuorumExpires.
    """
    return role.check_quorum_expired(now_ms)


def _write(node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    due_ms = role.accumulator.due_ms
    if due_ms is None or now_ms < due_ms:
        return
    for batch in role.accumulator.drain():
        node.log.log.append(batch)
        node.emit(Appended(batch))
    node.read_control_records()
    node.flush()
    replication.on_append(node, role, now_ms)


def _maybe_send_begin_quorum_epoch(node: QuorumNode, role: LeaderState, now_ms: int) -> None:
    """Announce this leader to voters that do not fetch: they may wait for their election."""
    if now_ms < role.begin_epoch_deadline_ms:
        return

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
