"""The functions of selectors and conditions as one table: form, meaning, arguments, value."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from minicluster import values
from minicluster.scenario.errors import ScenarioError
from minicluster.scenario.view import ClusterView

NOBODY = -1
Value = int | bool | tuple[int, ...]
NAMED_SETS: Mapping[str, str] = {
    "brokers": "all brokers",
    "controllers": "all controllers",
    "all": "all nodes, brokers first",
    "clients": "Kafka's clients that have sent a request so far, by their `client.id`",
    "apps": "users' programs inside the simulation, by their names",
    "none": "nobody: `leader(orders-0) == none`",
}


class Type(Enum):
    """The type of an expression, found before anything runs."""

    NODES = "nodes"
    NUMBER = "a number"
    TRUTH = "a condition"


class Takes(Enum):
    """The argument of a function."""

    NOTHING = "no argument"
    PARTITION = "a partition such as orders-0"
    NODE = "one node's number"
    NODES = "nodes such as broker(1) or brokers"
    CLIENT_ID = "a client.id such as app-1"
    APP = "the name of an app, such as orders-1"
    NODES_OR_BROKERS = "nodes such as controllers, or nothing for all brokers"


class Function(values.Value):
    """One function.

    Shapes:  value(view, the function's name, its argument, n): a partition comes as topic and
             index, a client.id as text, nodes as ids. ``numbered`` functions take ``n=…``.
    """

    form: str
    text: str
    takes: Takes
    type: Type
    value: Callable[[ClusterView, str, Any, int], Value]
    numbered: bool = False

    @property
    def name(self) -> str:
        """The word before the parenthesis."""
        return self.form.partition("(")[0]


def as_nodes(value: Value) -> tuple[int, ...]:
    """A value as ids; one id is a list of one."""
    return value if isinstance(value, tuple) else (int(value),)


def _listed(ids: tuple[int, ...]) -> str:
    return ", ".join(str(node_id) for node_id in ids)


def _broker(view: ClusterView, _: str, nodes: tuple[int, ...], _n: int) -> Value:
    if len(nodes) != 1 or nodes[0] not in view.broker_ids:
        selected = _listed(nodes)
        existing = _listed(view.broker_ids)
        raise ScenarioError(f"broker({selected}): there is no such broker; brokers are {existing}")
    return nodes[0]


def _controller(view: ClusterView, _: str, nodes: tuple[int, ...], _n: int) -> Value:
    ids = view.controller_ids
    value = nodes[0] if len(nodes) == 1 else NOBODY
    if 0 <= value < len(ids):
        return ids[value]
    if value in ids:
        return value
    raise ScenarioError(
        f"controller({_listed(nodes)}): give a number from 0 to {len(ids) - 1} or an id "
        f"({_listed(ids)})"
    )


def _active_controller(view: ClusterView, _: str, _nothing: None, _n: int) -> Value:
    active = view.active_controller_id
    return NOBODY if active is None else active


def _followers(view: ClusterView, _: str, partition: tuple[str, int], _n: int) -> tuple[int, ...]:
    leader = view.leader(*partition)
    return tuple(replica for replica in view.replicas(*partition) if replica != leader)


def _follower(view: ClusterView, name: str, partition: tuple[str, int], n: int) -> Value:
    followers = _followers(view, name, partition, n)
    return followers[n] if 0 <= n < len(followers) else NOBODY


def _rack(view: ClusterView, _: str, nodes: tuple[int, ...], _n: int) -> Value:
    racks = {view.rack(node) for node in nodes if node in view.broker_ids}
    if not racks or None in racks:
        raise ScenarioError(f"rack({_listed(nodes)}): no rack is registered for it")
    return tuple(broker for broker in view.broker_ids if view.rack(broker) in racks)


def _fully_in_sync(view: ClusterView, _: str, partition: tuple[str, int], _n: int) -> Value:
    return set(view.isr(*partition)) == set(view.replicas(*partition))


def _subset(size: Callable[[int], int]) -> Callable[[ClusterView, str, Any, int], Value]:
    def choose(view: ClusterView, name: str, nodes: tuple[int, ...], _n: int) -> Value:
        candidates, chosen = list(nodes) or list(view.broker_ids), []
        for place in range(size(len(candidates))):
            chosen.append(candidates.pop(view.choose(f"{name}/{place}", len(candidates))))
        return tuple(sorted(chosen))

    return choose


def _every(read: Callable[[ClusterView, int], bool]) -> Callable[..., Value]:
    def hold(view: ClusterView, _: str, nodes: tuple[int, ...], _n: int) -> Value:
        # Of nobody nothing is true: otherwise fenced(leader(orders-0)) would hold without a leader.
        existing = [node for node in nodes if node != NOBODY]
        return bool(existing) and all(read(view, node) for node in existing)

    return hold


def _of_partition(read: Callable[..., Value]) -> Callable[..., Value]:
    return lambda view, _, partition, _n: read(view, *partition)


_SOME = Takes.NODES_OR_BROKERS
_ALL = (
    Function("broker(3)", "the broker with this id", Takes.NODE, Type.NODES, _broker),
    Function(
        "controller(0)",
        "the first controller; or a controller by its id: `controller(101)`",
        Takes.NODE,
        Type.NODES,
        _controller,
    ),
    Function(
        "active_controller()",
        "the controller that leads the quorum; nobody while there is none",
        Takes.NOTHING,
        Type.NODES,
        _active_controller,
    ),
    Function(
        "client(app-1)",
        "the client with this `client.id`, connected or not; other characters need quotes",
        Takes.CLIENT_ID,
        Type.NODES,
        lambda view, _, client_id, _n: view.clients.node(client_id),
    ),
    Function(
        "app(orders-1)",
        "the app with this name, running or not",
        Takes.APP,
        Type.NODES,
        lambda view, _, name, _n: view.app(name),
    ),
    Function(
        "leader(orders-0)",
        "the partition's leader; nobody while there is none",
        Takes.PARTITION,
        Type.NODES,
        _of_partition(lambda view, *partition: view.leader(*partition)),
    ),
    Function(
        "follower(orders-0, n=0)",
        "the n-th replica that does not lead, in the order of the replicas",
        Takes.PARTITION,
        Type.NODES,
        _follower,
        numbered=True,
    ),
    Function(
        "followers(orders-0)",
        "all replicas but the leader",
        Takes.PARTITION,
        Type.NODES,
        _followers,
    ),
    Function(
        "replicas(orders-0)",
        "all replicas, the preferred leader first",
        Takes.PARTITION,
        Type.NODES,
        _of_partition(lambda view, *partition: view.replicas(*partition)),
    ),
    Function(
        "isr(orders-0)",
        "the in-sync replicas",
        Takes.PARTITION,
        Type.NODES,
        _of_partition(lambda view, *partition: view.isr(*partition)),
    ),
    Function(
        "rack(broker(3))",
        "all brokers in the rack of this one, or in the racks of these; ids also: `rack(3)`",
        Takes.NODES,
        Type.NODES,
        _rack,
    ),
    Function(
        "one(brokers)",
        "one of them, drawn from the seed",
        _SOME,
        Type.NODES,
        _subset(lambda n: min(n, 1)),
    ),
    Function(
        "minority(brokers)",
        "less than half of them, drawn from the seed",
        _SOME,
        Type.NODES,
        _subset(lambda n: (n - 1) // 2),
    ),
    Function(
        "minority_third(brokers)",
        "less than a third of them, drawn from the seed",
        _SOME,
        Type.NODES,
        _subset(lambda n: (n - 1) // 3),
    ),
    Function(
        "majority(brokers)",
        "more than half of them, drawn from the seed",
        _SOME,
        Type.NODES,
        _subset(lambda n: n // 2 + 1),
    ),
    Function(
        "fenced(brokers)",
        "all of them are fenced",
        Takes.NODES,
        Type.TRUTH,
        _every(lambda view, node: view.fenced(node)),
    ),
    Function(
        "unfenced(brokers)",
        "none of them is fenced",
        Takes.NODES,
        Type.TRUTH,
        _every(lambda view, node: not view.fenced(node)),
    ),
    Function(
        "in_controlled_shutdown(broker(1))",
        "all of them are in controlled shutdown, by their registrations (KIP-841)",
        Takes.NODES,
        Type.TRUTH,
        _every(lambda view, node: view.in_controlled_shutdown(node)),
    ),
    Function(
        "running(broker(1))",
        "all their processes run, of apps too; a paused one runs; a client has a connection",
        Takes.NODES,
        Type.TRUTH,
        _every(lambda view, node: view.running(node)),
    ),
    Function(
        "fully_in_sync(orders-0)",
        "every replica is in the ISR",
        Takes.PARTITION,
        Type.TRUTH,
        _fully_in_sync,
    ),
    Function(
        "recovering(orders-0)",
        "the leader was elected uncleanly and has not recovered yet",
        Takes.PARTITION,
        Type.TRUTH,
        _of_partition(lambda view, *partition: view.recovering(*partition)),
    ),
    Function(
        "reassigning(orders-0)",
        "the partition is on the way to other replicas",
        Takes.PARTITION,
        Type.TRUTH,
        _of_partition(lambda view, *partition: view.reassigning(*partition)),
    ),
    Function(
        "leader_epoch(orders-0)",
        "a number: how often the leader has changed",
        Takes.PARTITION,
        Type.NUMBER,
        _of_partition(lambda view, *partition: view.leader_epoch(*partition)),
    ),
    Function(
        "partition_epoch(orders-0)",
        "a number: how often the partition's state has changed",
        Takes.PARTITION,
        Type.NUMBER,
        _of_partition(lambda view, *partition: view.partition_epoch(*partition)),
    ),
    Function(
        "high_watermark(orders-0)",
        "a number: the leader's high watermark, -1 where there is none",
        Takes.PARTITION,
        Type.NUMBER,
        _of_partition(lambda view, *partition: view.high_watermark(*partition)),
    ),
)

FUNCTIONS: Mapping[str, Function] = {function.name: function for function in _ALL}

TEXTS: Mapping[str, str] = {
    **NAMED_SETS,
    **{function.form: function.text for function in _ALL},
}
"""The meaning of each named set and function, by its form."""
