"""Requests to the active controller, or to one node, on behalf of a test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minicluster.actors.cluster.actions.performing import ms
from minicluster.actors.cluster.client import AdminOperation, Operation
from minicluster.actors.cluster.cluster import ZOOKEEPER
from minicluster.actors.cluster.roles import ClusterRoles
from minicluster.actors.cluster.views import Node
from minicluster.durations import format_duration
from minicluster.errors import NoResponse, RequestRejected, UserError
from minicluster.protocol import ErrorCode, encode
from minicluster.protocol.api import highest_version
from minicluster.protocol.errors import ProtocolError
from minicluster.scenario.actions.action import ADMIN_WITHIN
from minicluster.scenario.actions.arguments import Duration, read_duration
from minicluster.scenario.checks.limits import shown
from minicluster.server.controller_listener import is_for_controllers
from minicluster.values import replace

COMMITTED_WITHIN_MS = 5_000
CLIENT_NAME = "minicluster"


def admin(
    cluster: ClusterRoles,
    request: Any,
    *,
    to: Node | int | None = None,
    within: Duration = ADMIN_WITHIN,
) -> Any:
    """Send any request to the active controller, or to one node, and give its response.

    Without ``to``, what controllers do not handle goes to a running broker: so do DescribeCluster
    of brokers (``endpoint_type`` 1), Metadata and DescribeGroups.

    Shapes:  a request whose ``timeout_ms`` is 0 by default, as that of DeleteTopics, may take as
             long as ``within``: Kafka's controller rejects it at once, and no client sends it so.
    Errors:  UserError for a request that no bytes can carry; NoResponse.
    """
    task = type(request).__name__
    if not hasattr(request, "api_key"):
        raise UserError(
            f"admin: {shown(request)} is not a request, such as DescribeQuorumRequest()"
        )
    node_id = None if to is None else cluster.node_id(to)
    limit = read_duration(within, f"{task}: within")
    if getattr(request, "timeout_ms", None) == 0 and type(request)().timeout_ms == 0:
        request = replace(request, timeout_ms=ms(limit))
    return send(cluster, task, request, limit, to=node_id)


def send(
    cluster: ClusterRoles, task: str, request: Any, within: Duration, *, to: int | None = None
) -> Any:
    """Send a request under a name that errors begin with."""
    cluster.check_running(task)
    within_ms = ms(within)
    version = highest_version(cluster.rules, request)
    try:
        encode(request, version)
    except (ProtocolError, ValueError, TypeError, AttributeError) as error:
        raise UserError(f"{task}: version {version} cannot carry it: {error}") from None
    of_brokers = cluster.mode != ZOOKEEPER and not is_for_controllers(request, cluster.rules)
    is_combined = not set(cluster.broker_ids).isdisjoint(cluster.controller_ids)
    operation = AdminOperation(
        deadline_ms=cluster.now_ms + within_ms,
        request=request,
        version=version,
        to=to,
        requester=cluster.requester,
        of_brokers=of_brokers,
        # A node that is both takes what has a client.id as its broker.
        client_id=CLIENT_NAME if of_brokers and is_combined else "",
    )
    with cluster.rt.exclusive():
        cluster.own_client.deliver(operation)
    finish(cluster, [operation], operation.deadline_ms + 1_000)
    if operation.response is None:
        why = operation.failure or "no response"
        limit = format_duration(within_ms)
        role = "broker" if of_brokers else "controller"
        node = role if to is None else f"response of node {to}"
        verb = "responded" if to is None else "came"
        raise NoResponse(f"{task}: no {node} {verb} within {limit} ({why})")
    return operation.response


def reject_on_zookeeper(cluster: ClusterRoles, task: str, why: str) -> None:
    """Reject what a cluster on ZooKeeper does not have, before its brokers do in fewer words."""
    if cluster.mode == ZOOKEEPER:
        raise UserError(f"{task}: {why} (mode zookeeper)")


def finish(cluster: ClusterRoles, operations: Sequence[Operation], until_ms: int) -> None:
    """Let the cluster run until operations are done, or their deadline passes."""
    within_ms = max(1, until_ms - cluster.now_ms)
    cluster.run_until(lambda: all(operation.done for operation in operations), within_ms)


def wait_for_commit(cluster: ClusterRoles, condition: Callable[[], bool]) -> None:
    """Wait for the commit behind a response, which a planted fault (S26) may send earlier."""
    cluster.run_until(condition, COMMITTED_WITHIN_MS)


def raise_if_rejected(task: str, code: int, message: str | None = None) -> None:
    """Raise the error of an error code.

    Errors:  RequestRejected unless the code is NONE.
    """
    if code != ErrorCode.NONE:
        raise RequestRejected(task, ErrorCode(code), message)
