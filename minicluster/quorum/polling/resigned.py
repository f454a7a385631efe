"""A leader that has resigned announces the end of its epoch, then moves to the next one.

Source:  KafkaRaftClient.pollResigned; ResignedState.
"""

from __future__ import annotations

from minicluster.protocol.messages import EndQuorumEpochRequest
from minicluster.quorum import transitions, wire
from minicluster.quorum.polling.send import earliest, maybe_send_to_voters
from minicluster.quorum.state.epoch_state import ResignedState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Voter

END_QUORUM_EPOCH_VERSION = 1


def poll(node: QuorumNode, role: ResignedState, now_ms: int) -> int | None:
    """Send EndQuorumEpoch, also in the turn in which the time is over; -> the wait.

    The next epoch is one in which this node has not voted: it must not lead its own one again.
    """

    def request(_: Voter) -> EndQuorumEpochRequest:
        return wire.end_epoch_request(
            cluster_id=node.cluster_id,
            leader_id=node.key.id,
            epoch=role.epoch,
            preferred=role.preferred,
        )

    wait_ms = maybe_send_to_voters(
        node, role.unacknowledged, request, END_QUORUM_EPOCH_VERSION, now_ms
    )
    if node.is_shutting_down:
        return wait_ms
    if now_ms >= role.election_deadline_ms:
        transitions.to_unattached(node, role.epoch + 1, None, now_ms)
        return 0
    return earliest(role.election_deadline_ms - now_ms, wait_ms)
