"""The response to EndQuorumEpoch: the voter has learnt that this leader resigned.

Source:  KafkaRaftClient.handleEndQuorumEpochResponse, ResignedState.acknowledgeResignation.
"""

from __future__ import annotations

from minicluster.protocol.messages import EndQuorumEpochResponse
from minicluster.quorum.responses import election
from minicluster.quorum.state.epoch_state import ResignedState
from minicluster.quorum.state.node import QuorumNode


def handle(node: QuorumNode, node_id: int, response: EndQuorumEpochResponse, now_ms: int) -> bool:
    """Record the acknowledgement; the voter gets no further EndQuorumEpoch."""
    if election.has_error(response):
        return False
    if isinstance(node.role, ResignedState):
        node.role.unacknowledged.pop(node_id, None)
    return True
