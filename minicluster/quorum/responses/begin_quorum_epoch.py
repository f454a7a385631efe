"""The response to BeginQuorumEpoch: the voter follows this leader.

Source:  KafkaRaftClient.handleBeginQuorumEpochResponse, LeaderState.addAcknowledgementFrom.
"""

from __future__ import annotations

from minicluster.protocol.messages import BeginQuorumEpochResponse
from minicluster.quorum.errors import InconsistentState
from minicluster.quorum.responses import election
from minicluster.quorum.state.leader_state import LeaderState
from minicluster.quorum.state.node import QuorumNode


def handle(node: QuorumNode, node_id: int, response: BeginQuorumEpochResponse, now_ms: int) -> bool:
    """Record the acknowledgement of a voter.

    Errors:  InconsistentState where ``Rules.late_begin_acknowledgement_is_fatal``, for a voter that
             was removed meanwhile.
    """
    if election.has_error(response):
        return False
    role = node.role
    if isinstance(role, LeaderState):
        state = role.voters.get(node_id)
        if state is not None:
            state.acknowledged = True
        elif node.rules.late_begin_acknowledgement_is_fatal:
            raise InconsistentState(f"an acknowledgement of {node_id}, which does not vote")
    return True
