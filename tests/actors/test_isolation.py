"""No node reads another node's state: the only way between nodes is a message.

A simulated cluster lies in one process, so any function could look into any node's memory, through
a cut network as well. Two checks keep it from doing so. In every step of an actor, whoever touches
an attribute of an object that belongs to another node is caught in the act. And no object that can
change belongs to two nodes at once; those few that all nodes share are named here, with the reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct

from minicluster import MiniCluster
from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.exchange import Exchange
from minicluster.actors.links import Link, Packet
from minicluster.actors.network import Network
from minicluster.actors.nodes.config import ClusterConfig
from minicluster.actors.nodes.coordinators import Coordinators
from minicluster.actors.nodes.quorum_shell import QuorumPlan
from minicluster.actors.recording.metadata_sink import Inlet
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.runtime.runtime import Runtime
from minicluster.actors.runtime.turns import SimulatedInbox, Turns
from minicluster.faults import Faults
from minicluster.metadata.shared_folds import SharedFolds

SCALARS = str, bytes, bytearray, memoryview, int, float, type(None), Enum, UUID, type
VALUES = "minicluster.protocol", "minicluster.metadata.image", "minicluster.log.batch"
"""Where the classes are of what never changes: messages, images, batches, which messages bring."""
OF_ALL = {
    Runtime: "the machine below, with the clock that jumps",
    SimulatedInbox: "the runtime's: the place of an actor in it",
    Network: "carries the messages",
    Packet: "a message on its way",
    Link: "the network's, of a packet",
    Exchange: "the network's account of one request and its response",
    Recorder: "only takes",
    Inlet: "only takes, for the judge",
    SharedFolds: "what a fold of a record gives, by the record and what it was folded onto",
    Cluster: "starts and ends processes",
    Faults: "which faults are planted",
    ClusterConfig: "what all nodes were started with",
    QuorumPlan: "the same, of a quorum",
}
"""What all nodes have, and why it tells none of them of another."""
CONTAINERS = (dict, list, set, deque, tuple, frozenset)


def _parts(thing: Any) -> Iterator[Any]:
    """What an object holds."""
    if isinstance(thing, dict):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, CONTAINERS):
        yield from thing
    else:
        yield from getattr(thing, "__dict__", {}).values()
        for kind in type(thing).__mro__:
            for name in kind.__dict__.get("__slots__", ()):
                private = name.startswith("__") and not name.endswith("__")
                held = f"_{kind.__name__.lstrip('_')}{name}" if private else name
                if hasattr(thing, held):
                    yield getattr(thing, held)


def _modules(thing: Any) -> list[str]:
    """Where the classes of an object come from; that of an actor is made at run time."""
    return [kind.__module__ for kind in type(thing).__mro__]


def _is_of_minicluster(thing: Any) -> bool:
    return any(name.startswith("minicluster") for name in _modules(thing))


def _is_value(thing: Any) -> bool:
    if isinstance(thing, SCALARS) or any(name.startswith(VALUES) for name in _modules(thing)):
        return True
    return not isinstance(thing, CONTAINERS) and not _is_of_minicluster(thing)


def _is_frozen(thing: Any) -> bool:
    """Nothing of the object itself can change; what it holds may."""
    if isinstance(thing, Struct):
        return thing.__struct_config__.frozen
    parameters = getattr(type(thing), "__dataclass_params__", None)
    of_the_house = parameters and parameters.unsafe_hash  # frozen for mypy: minicluster.values
    return isinstance(thing, tuple | frozenset) or bool(
        parameters and (parameters.frozen or of_the_house)
    )


def objects_of(actors: Iterable[Any]) -> dict[int, Any]:
    """The objects that actors hold, by their identity; not what is a value, or of all nodes."""
    found: dict[int, Any] = {}
    started_with: set[int] = set()
    waiting = list(actors)
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, ClusterConfig | QuorumPlan):
            started_with.update(map(id, _parts(thing)))
        if id(thing) in found or _is_value(thing) or isinstance(thing, tuple(OF_ALL)):
            continue
        found[id(thing)] = thing
        waiting += _parts(thing)
    return {identity: thing for identity, thing in found.items() if identity not in started_with}


class Watch:
    """The objects of each node, and who has touched one of another node.

    Shapes:  touched: (node of the step, node of the object, its class and attribute).
    """

    def __init__(self, cluster: MiniCluster) -> None:
        self.cluster = inside(cluster)
        self.owners: dict[int, int] = {}
        self.objects: list[Any] = []  # kept, so that no identity is given twice
        self.of_two: set[str] = set()
        self.touched: set[tuple[int, int, str]] = set()
        self.running: int | None = None
        self._guarded: dict[type, Any] = {}

    def look(self) -> None:
        """Find what belongs to whom now."""
        nodes: dict[int, dict[int, Any]] = {}
        for process in self.cluster.processes.values():
            actors = [self.cluster.rt.actor(name) for name in process.actors]
            nodes[process.node_id] = objects_of(actors)
        holders: dict[int, list[int]] = {}
        for node_id, objects in nodes.items():
            for identity in objects:
                holders.setdefault(identity, []).append(node_id)
        self.owners = {identity: found[0] for identity, found in holders.items() if len(found) == 1}
        self.objects = [thing for objects in nodes.values() for thing in objects.values()]
        for thing in self.objects:
            if _is_frozen(thing):
                continue
            if len(holders[id(thing)]) > 1:
                self.of_two.add(_named(thing))
            elif _is_of_minicluster(thing):
                self._guard(type(thing))

    def _guard(self, kind: type) -> None:
        if kind in self._guarded:
            return
        self._guarded[kind] = kind.__dict__.get("__getattribute__")
        get: Callable[[Any, str], Any] = kind.__getattribute__

        def guarded(thing: Any, name: str) -> Any:
            running = self.running
            if running is not None:
                owner = self.owners.get(id(thing), running)
                if owner != running:
                    self.touched.add((running, owner, f"{kind.__name__}.{name}"))
            return get(thing, name)

        kind.__getattribute__ = guarded  # type: ignore[method-assign, assignment]

    def end(self) -> None:
        """Leave the classes as they were."""
        for kind, before in self._guarded.items():
            if before is None:
                del kind.__getattribute__
            else:
                kind.__getattribute__ = before  # type: ignore[method-assign]


def _named(thing: Any) -> str:
    if isinstance(thing, CONTAINERS):
        return f"{type(thing).__name__} of {sorted({type(part).__name__ for part in thing})}"
    return type(thing).__name__


@contextmanager
def watching(cluster: MiniCluster) -> Iterator[Watch]:
    """Watch every step of the nodes' actors."""
    watch = Watch(cluster)
    step = Turns._step

    def watched(turns: Turns, inbox: SimulatedInbox) -> None:
        watch.running = getattr(inbox.owner, "node_id", None)
        try:
            step(turns, inbox)
        finally:
            watch.running = None

    Turns._step = watched  # type: ignore[method-assign]
    try:
        watch.look()
        yield watch
    finally:
        Turns._step = step  # type: ignore[method-assign]
        watch.end()


def play(cluster: MiniCluster) -> Watch:
    """A while with a group, a transaction, a move, a cut and a restart."""
    with watching(cluster) as watch:

        def run(seconds: int) -> None:
            for _ in range(2 * seconds):
                watch.look()  # coordinators and fetchers are made on the way
                cluster.run_for("500ms")

        orders = cluster.create_topic("orders", partitions=2, replicas=3, min_isr=2)
        cluster.produce("orders", count=20)
        cluster.transaction("orders", count=3)
        run(2)
        cluster.consume("orders", group="g", members=2)
        run(2)
        coordinator = cluster.topic("__consumer_offsets")[0].leader
        cluster.cut(coordinator, cluster.controllers)
        run(2)
        cluster.heal()
        leader = orders[0].leader
        cluster.kill(leader)
        run(2)
        cluster.restart(leader)
        run(2)
    return watch


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(brokers=3, controllers=3, seed=1) as cluster:
        yield cluster


def test_no_step_touches_another_node(cluster: MiniCluster) -> None:
    watch = play(cluster)
    assert {*watch.owners.values()} == {1, 2, 3, 101, 102, 103}
    assert not watch.touched, sorted(watch.touched)
    assert not watch.of_two, sorted(watch.of_two)


def test_a_look_at_another_brokers_image_is_noticed(
    cluster: MiniCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as "the newest image of any broker", which coordinators once went by."""
    serve = Coordinators.on_request

    def with_a_look(coordinators: Coordinators, packet: Packet, now_ms: int) -> Any:
        for process in inside(cluster).processes.values():
            broker: Any = process.broker
            assert broker is None or broker.apis.state.image is not None
        return serve(coordinators, packet, now_ms)

    monkeypatch.setattr(Coordinators, "on_request", with_a_look)
    with watching(cluster) as watch:
        cluster.create_topic("orders")
        cluster.consume("orders", group="g")
        cluster.run_for("2s")
    seen = {what for _, _, what in watch.touched}
    assert seen == {"Broker.apis", "KafkaApis.state", "ApiState.image"}


def test_an_object_of_two_nodes_is_noticed(cluster: MiniCluster) -> None:
    one, other = (inside(cluster).processes[node_id].replicas for node_id in (1, 2))
    assert one is not None and other is not None
    one.gossip = other.gossip = {"leader": 1}  # type: ignore[attr-defined]
    with watching(cluster) as watch:
        assert watch.of_two == {"dict of ['str']"}
