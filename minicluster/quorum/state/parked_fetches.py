"""Fetches that wait at the leader, until something changes or their time is over.

``replication`` completes them when the log or the high watermark has grown.

Source:  ThresholdPurgatory as KafkaRaftClient uses it; KIP-1166.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum import wire
from minicluster.quorum.state.node import QuorumNode


def fail_all(node: QuorumNode, error: ErrorCode) -> None:
    """Refuse every parked fetch."""
    parked, node.parked = node.parked, []
    for fetch in parked:
        response = wire.fetch_response(
            node, fetch.version, error=error, log_start=node.log.start_offset
        )
        node.respond(fetch.token, response)


def expire(node: QuorumNode, now_ms: int) -> None:
    """Respond to those whose wait is over with what was prepared when they came."""
    due = [fetch for fetch in node.parked if now_ms >= fetch.deadline_ms]
    for fetch in due:
        node.parked.remove(fetch)
        node.respond(fetch.token, fetch.prepared)


def next_deadline_ms(node: QuorumNode) -> int | None:
    """The time at which the next wait is over."""
    return min([fetch.deadline_ms for fetch in node.parked]) if node.parked else None
