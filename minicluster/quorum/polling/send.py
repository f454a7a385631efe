"""Requests that several roles send."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from minicluster.protocol.messages import FetchRequest
from minicluster.quorum import wire
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Voter, node_at

FETCH_VERSION = 18


def earliest(*waits_ms: int | None) -> int | None:
    """The shortest wait; None, which is for ever, only if there is no other."""
    shortest: int | None = None
    for wait in waits_ms:
        if wait is not None and (shortest is None or wait < shortest):
            shortest = wait
    return shortest


def maybe_send_to_voters(
    node: QuorumNode,
    voter_ids: Iterable[int],
    request: Callable[[Voter], object],
    version: int,
    now_ms: int,
) -> int | None:
    """Send a request to each voter that can take one now; -> the wait until one can (again).

    Source:  KafkaRaftClient.maybeSendRequest.
    """
    waits_ms: list[int] = []
    for voter_id in voter_ids:
        voter = node.history.voters.get(voter_id)
        if voter is None or voter_id == node.key.id:
            continue
        to = node_at(voter_id, voter.endpoints, node.listener_name)
        if to is None:
            continue
        if node.requests.is_ready(voter_id, now_ms):
            node.send(to, request(voter), version, now_ms)
        waits_ms.append(node.requests.wait_ms(voter_id, now_ms))
    return min(waits_ms, default=None)


def maybe_send_fetch_to_bootstrap_server(node: QuorumNode, now_ms: int) -> int | None:
    """Fetch from a bootstrap server, whose response names the leader.

    Source:  KafkaRaftClient.maybeSendFetchToAnyBootstrap.
    """
    if now_ms < node.leaderless_pause_until_ms:
        return node.leaderless_pause_until_ms - now_ms
    server = node.requests.find_ready_bootstrap_server(now_ms)
    if server is not None:
        node.send(server, fetch_request(node), FETCH_VERSION, now_ms)
        node.leaderless_pause_until_ms = now_ms + node.settings.leaderless_pause_ms
    return node.requests.bootstrap_wait_ms(now_ms)


def fetch_request(node: QuorumNode) -> FetchRequest:
    """The Fetch for what follows this node's log, the same value again while nothing changes."""
    role, offset, last_epoch = node.role, node.log.end_offset, node.log.last_epoch
    high_watermark = -1 if role.high_watermark is None else role.high_watermark
    key = (role.epoch, offset, last_epoch, high_watermark)
    if node.last_fetch is None or node.last_fetch[0] != key:
        request = wire.fetch_request(
            cluster_id=node.cluster_id,
            replica=node.key,
            epoch=role.epoch,
            offset=offset,
            last_epoch=last_epoch,
            high_watermark=high_watermark,
            max_wait_ms=node.settings.fetch_max_wait_ms,
            max_bytes=node.settings.fetch_max_bytes,
        )
        node.last_fetch = (key, request)
    return node.last_fetch[1]
