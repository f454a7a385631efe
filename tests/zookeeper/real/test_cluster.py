"""One story of a cluster, on the machine and on a real server: the same znodes after each step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.zookeeper import server as zookeeper_server
from minicluster.zookeeper.server.operations import GetChildren, GetData
from tests.zookeeper.real.kazoo_machine import KazooMachine
from tests.zookeeper.real.server import ServerProcess

pytestmark = pytest.mark.zookeeper

CONFIG = {"zookeeper.session.timeout.ms": 6_000, "replica.lag.time.max.ms": 4_000}
LEVELS = ("2.6", "2.7-IV2", "3.2", "3.9")

Znodes = dict[str, tuple[Any, ...]]


def znodes_of(tree: Any, path: str = "/") -> Iterator[tuple[str, tuple[Any, ...]]]:
    """All znodes from a path on: data, versions, zxids and the session of an ephemeral one."""
    found = tree.read(GetData(path))
    yield path, (found.data or b"", found.stat)
    for name in tree.read(GetChildren(path)).children:
        yield from znodes_of(tree, f"{path.rstrip('/')}/{name}")


class Story:
    """A cluster's life; the znodes after each of its steps are kept."""

    def __init__(self, level: str) -> None:
        self._cluster = MiniCluster(
            brokers=3, mode="zookeeper", inter_broker_protocol=level, seed=11, config=CONFIG
        )
        self.steps: list[tuple[str, Znodes]] = []
        self.log: list[dict[str, Any]] = []
        self.trace_hash = ""

    def play(self) -> None:
        with self._cluster as cluster:
            for step in (
                self.topics_are_created,
                self.a_follower_dies_and_comes_back,
                self.the_leader_dies_and_another_is_elected,
                self.the_controller_dies_and_another_goes_on,
                self.a_session_expires_and_its_broker_lives,
                self.replicas_are_reassigned,
                self.a_broker_shuts_down,
                self.a_topic_is_deleted,
            ):
                step(cluster)
                server = inside(cluster).processes[201].zookeeper
                assert server is not None
                self.steps.append((step.__name__, dict(znodes_of(server.machine.tree))))
            self.log = list(inside(cluster).zookeeper_log.lines)
            self.trace_hash = cluster.trace_hash

    def wait(self, condition: Callable[[], bool]) -> None:
        self._cluster.wait_until(condition, within="60s")

    def topics_are_created(self, cluster: MiniCluster) -> None:
        self.orders = cluster.create_topic("orders", partitions=2, replicas=3, min_isr=2)
        self.moved = cluster.create_topic("moved", assignment=[[1, 2]])
        self.wait(self.orders.fully_in_sync)

    def a_follower_dies_and_comes_back(self, cluster: MiniCluster) -> None:
        controller = cluster.active_controller
        follower = next(one for one in self.orders[0].followers if one != controller)
        cluster.kill(follower)
        assert cluster.produce("orders", count=3)[-1].ok
        self.wait(lambda: follower not in self.orders[0].isr)
        cluster.restart(follower)
        self.wait(self.orders.fully_in_sync)

    def the_leader_dies_and_another_is_elected(self, cluster: MiniCluster) -> None:
        controller = cluster.active_controller
        led = next(one for one in self.orders if one.leader != controller)
        leader = led.leader
        assert leader is not None
        cluster.kill(leader)
        self.wait(lambda: led.leader not in (None, leader))
        cluster.restart(leader)
        self.wait(self.orders.fully_in_sync)

    def the_controller_dies_and_another_goes_on(self, cluster: MiniCluster) -> None:
        first = cluster.active_controller
        assert first is not None
        cluster.kill(first)
        self.wait(lambda: cluster.active_controller not in (None, first))
        self.wait(lambda: first not in self.orders[0].isr)
        cluster.restart(first)
        self.wait(self.orders.fully_in_sync)

    def a_session_expires_and_its_broker_lives(self, cluster: MiniCluster) -> None:
        away = next(one for one in cluster.brokers if one != cluster.active_controller)
        cluster.cut(away, 201)
        self.wait(lambda: away.is_fenced)
        cluster.heal()
        self.wait(lambda: not away.is_fenced)
        self.wait(self.orders.fully_in_sync)

    def replicas_are_reassigned(self, cluster: MiniCluster) -> None:
        cluster.reassign("moved-0", [3, 1])
        self.wait(lambda: not self.moved[0].is_reassigning)

    def a_broker_shuts_down(self, cluster: MiniCluster) -> None:
        leader = self.orders[0].leader
        assert leader is not None
        cluster.controlled_shutdown(leader)
        self.wait(lambda: leader not in self.orders[0].isr)
        cluster.restart(leader)
        self.wait(self.orders.fully_in_sync)

    def a_topic_is_deleted(self, cluster: MiniCluster) -> None:
        cluster.delete_topic("orders")
        cluster.run_for("10s")


@pytest.mark.parametrize("level", LEVELS)
def test_the_znodes_of_a_story_are_those_on_a_real_server(
    level: str, server: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers, controllers and network are the same machines; only the server is another one."""
    expected = Story(level)
    expected.play()

    machines: list[KazooMachine] = []

    def machine(*, tick_ms: int) -> KazooMachine:
        machines.append(KazooMachine(server, tick_ms=tick_ms))
        return machines[-1]

    monkeypatch.setattr(zookeeper_server, "ZooKeeperMachine", machine)
    real = Story(level)
    try:
        real.play()
    finally:
        for one in machines:
            one.close()
    for (step, ours), (_, theirs) in zip(expected.steps, real.steps, strict=True):
        assert ours == theirs, step
    assert len(machines) == 1
    assert expected.log == real.log
    assert expected.trace_hash == real.trace_hash
    last = dict(expected.steps)["a_topic_is_deleted"]
    assert last["/controller_epoch"][0] >= b"2"
    assert not [path for path in last if "orders" in path]
