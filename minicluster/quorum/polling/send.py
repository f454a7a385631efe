"""Sending: what every role that asks peers has in common."""

from __future__ import annotations

from collections.abc import Callable

from minicluster.quorum import wire
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import node_at


def earliest(*waits_ms: int | None) -> int | None:
    """The shortest wait; None, which is for ever, only if there is no other."""
    shortest: int | None = None
    for wait in waits_ms:
        if wait is not None and (shortest is None or wait < shortest):
            shortest = wait
    return shortest


def ask(
    node: QuorumNode, voter_id: int, request: Callable[[int], object], version: int, now_ms: int
) -> int | None:
    """Send a request to a voter if it can be asked; -> how long until it can be asked (again)."""
    if voter_id == node.key.id:
        return None
    to = node_at(voter_id, node.history.voters.endpoints_of(voter_id), node.listener_name)
    if to is None:
        return None
    if node.requests.is_ready(voter_id, now_ms):
        node.send(to, request(voter_id), version, now_ms)
    return node.requests.wait_ms(voter_id, now_ms)


def fetch_request(node: QuorumNode) -> object:
    """The Fetch for what follows this node's log, the same value again while nothing changes."""
    mark = node.role.high_watermark
    key = (node.epoch, node.log.end_offset, node.log.last_epoch, mark)
    if node.last_fetch[0] != key:
        node.last_fetch = (key, _fetch_request(node, mark))
    return node.last_fetch[1]


def _fetch_request(node: QuorumNode, mark: int | None) -> object:
    return wire.fetch_request(
        cluster_id=node.cluster_id,
        replica=node.key,
        epoch=node.role.epoch,
        offset=node.log.end_offset,
        last_epoch=node.log.last_epoch,
        high_watermark=-1 if mark is None else mark,
        max_wait_ms=node.settings.fetch_max_wait_ms,
        max_bytes=node.settings.fetch_max_bytes,
    )
