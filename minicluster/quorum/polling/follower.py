"""A follower fetches from its leader: a voter within the fetch timeout, an observer for ever.

Source:  KafkaRaftClient.pollFollower, pollFollowerAsVoter, pollFollowerAsObserver,
         maybeSendFetchToBestNode.
"""

from __future__ import annotations

from minicluster.quorum import transitions, wire
from minicluster.quorum.polling.send import (
    FETCH_VERSION,
    earliest,
    fetch_request,
    maybe_send_fetch_to_bootstrap_server,
)
from minicluster.quorum.state.epoch_state import FollowerState
from minicluster.quorum.state.node import QuorumNode
from minicluster.quorum.state.voters import Node
from minicluster.quorum.voter_changes import follower_requests

FETCH_SNAPSHOT_VERSION = 1


def poll(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Act on what is due; -> the wait."""
    return (_poll_voter if node.history.is_voter else _poll_observer)(node, role, now_ms)


def _poll_voter(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    if node.shutdown_deadline_ms is not None:
        return 0
    if now_ms >= role.fetch_deadline_ms:
        transitions.to_prospective(node, now_ms)
        return 0
    wait_ms = None
    if now_ms >= role.update_voter_deadline_ms:
        wait_ms = follower_requests.maybe_send_update_voter(node, role, now_ms)
    if wait_ms is None:
        wait_ms = _maybe_send_fetch(node, role, now_ms)
    return earliest(
        role.fetch_deadline_ms - now_ms, _until(role.update_voter_deadline_ms, now_ms), wait_ms
    )


def _poll_observer(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    if not follower_requests.auto_joins(node):
        return _maybe_send_fetch(node, role, now_ms)
    if now_ms >= role.update_voter_deadline_ms:
        wait_ms = follower_requests.maybe_send_add_or_remove_voter(node, role, now_ms)
        if wait_ms is not None:
            return wait_ms
    wait_ms = _maybe_send_fetch(node, role, now_ms)
    return earliest(wait_ms, _until(role.update_voter_deadline_ms, now_ms))


def _until(deadline_ms: int, now_ms: int) -> int | None:
    """The wait until a deadline; what is due already waits for something else."""
    return deadline_ms - now_ms if deadline_ms > now_ms else None


def _maybe_send_fetch(node: QuorumNode, role: FollowerState, now_ms: int) -> int | None:
    """Fetch from the leader; from a bootstrap server if the leader is silent or held back.

    The leader may have changed without a word to this node; any peer names the new one.
    """
    leader, requests = node.leader_node, node.requests
    if leader is None:
        return maybe_send_fetch_to_bootstrap_server(node, now_ms)
    if requests.are_any:
        if requests.has_timed_out(leader.id, now_ms):
            requests.drop(leader.id)
            return maybe_send_fetch_to_bootstrap_server(node, now_ms)
        if requests.is_backing_off(leader.id, now_ms):
            return maybe_send_fetch_to_bootstrap_server(node, now_ms)
        if requests.has_any_in_flight(now_ms):
            return requests.bootstrap_wait_ms(now_ms)
    _send_fetch(node, role, leader, now_ms)
    return requests.request_timeout_ms


def _send_fetch(node: QuorumNode, role: FollowerState, leader: Node, now_ms: int) -> None:
    fetching = role.fetching_snapshot
    if fetching is None:
        node.send(leader, fetch_request(node), FETCH_VERSION, now_ms)
        return
    request = wire.fetch_snapshot_request(
        cluster_id=node.cluster_id,
        replica=node.key,
        epoch=role.epoch,
        snapshot_id=fetching.snapshot_id,
        position=len(fetching.content),
        max_bytes=node.settings.fetch_snapshot_max_bytes,
    )
    node.send(leader, request, FETCH_SNAPSHOT_VERSION, now_ms)
