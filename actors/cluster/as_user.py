"""A cluster as one of its users meets it: the cluster's own client, with his principal.

No socket and no login is in between, so it works in a simulation without listeners, and a seed
repeats it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from minicluster.actors.cluster.actions import access, clients, groups, records, requests, topics
from minicluster.actors.cluster.actions.performing import with_requester
from minicluster.actors.cluster.running import RunningCluster
from minicluster.security.principals import principal_of

P = ParamSpec("P")
R = TypeVar("R")


def _as_user(
    function: Callable[Concatenate[Any, P], R],
) -> Callable[Concatenate[AsUser, P], R]:
    @wraps(function)
    def method(self: AsUser, *args: P.args, **kwargs: P.kwargs) -> R:
        return function(self._cluster, *args, **kwargs)

    return method  # type: ignore[return-value]


class AsUser:
    """The actions of a cluster that are requests, each made by a user and with his rights."""

    __slots__ = ("_cluster", "principal")

    def __init__(self, cluster: RunningCluster, name: str) -> None:
        self.principal = principal_of(name)
        self._cluster = with_requester(cluster, self.principal)

    def __repr__(self) -> str:
        return f"<the cluster as {self.principal}>"

    create_topic = _as_user(topics.create_topic)
    delete_topic = _as_user(topics.delete_topic)
    add_partitions = _as_user(topics.add_partitions)
    reassign = _as_user(topics.reassign)
    set_config = _as_user(topics.set_config)
    elect = _as_user(topics.elect)
    produce = _as_user(records.produce)
    consume = _as_user(clients.consume)
    transaction = _as_user(clients.transaction)
    transform = _as_user(clients.transform)
    wait_for_group = _as_user(groups.wait_for_group)
    delete_records = _as_user(records.delete_records)
    grant = _as_user(access.grant)
    deny = _as_user(access.deny)
    revoke = _as_user(access.revoke)
    admin = _as_user(requests.admin)
