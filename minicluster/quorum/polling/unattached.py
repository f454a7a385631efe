"""A node without a leader looks for it and, as a voter, waits for its election timeout.

Source:  KafkaRaftClient.pollUnattached.
"""

from __future__ import annotations

from minicluster.quorum import transitions
from minicluster.quorum.polling.send import earliest, maybe_send_fetch_to_bootstrap_server
from minicluster.quorum.state.epoch_state import UnattachedState
from minicluster.quorum.state.node import QuorumNode


def poll(node: QuorumNode, role: UnattachedState, now_ms: int) -> int | None:
    """Act on what is due; -> the wait."""
    if not node.is_voter:
        return maybe_send_fetch_to_bootstrap_server(node, now_ms)
    if node.is_shutting_down:
        return None
    deadline_ms = role.election_deadline_ms
    if deadline_ms is None or now_ms >= deadline_ms:
        transitions.to_prospective(node, now_ms)
        return 0
    return earliest(deadline_ms - now_ms, maybe_send_fetch_to_bootstrap_server(node, now_ms))
