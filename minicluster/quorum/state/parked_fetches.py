"""Fetches that wait at the leader, until something changes or their time is over.

``replication`` completes them when the log or the high watermark has grown.

Source:  ThresholdPurgatory as KafkaRaftClient uses it; KIP-1166.
"""

from __future__ import annotations

from minicluster.protocol.error_codes import ErrorCode
from minicluster.quorum import wire
from minicluster.quorum.state.node import ParkedFetch, QuorumNode


def park(node: QuorumNode, fetch: ParkedFetch) -> None:
    """Let a fetch wait."""
    deadline_ms = node.parked_until_ms
    if deadline_ms is None or fetch.deadline_ms < deadline_ms:
        node.parked_until_ms = fetch.deadline_ms
    node.parked.append(fetch)


def fail_all(node: QuorumNode, error: ErrorCode) -> None:
    """Refuse every parked fetch."""
    parked, node.parked, node.parked_until_ms = node.parked, [], None
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
    node.parked_until_ms = min((fetch.deadline_ms for fetch in node.parked), default=None)
