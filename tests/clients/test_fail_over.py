"""Every broker and every controller dies in turn, while all clients write and read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from tests.clients.adapters import ADAPTERS, ClientUnderTest

pytestmark = pytest.mark.clients

QUICK = {
    "broker.heartbeat.interval.ms": "200ms",
    "broker.session.timeout.ms": "1500ms",
    "replica.lag.time.max.ms": "2s",
}


class Traffic:
    """Values that one client has written and values that it has read."""

    def __init__(self, client: ClientUnderTest, topic: str) -> None:
        self.client = client
        self.topic = topic
        self.written: list[str] = []
        self.seen: list[str] = []
        self.stop_writing, self.stop_reading = threading.Event(), threading.Event()
        self.ends: list[Future[None]] = []

    def start(self, pool: ThreadPoolExecutor) -> None:
        client = self.client
        self.ends = [
            pool.submit(client.write, self.topic, self.written, self.stop_writing),
            pool.submit(client.follow, self.topic, self.seen, self.stop_reading),
        ]

    def check(self) -> None:
        """Raise what ended the client."""
        for end in self.ends:
            if end.done() and end.exception() is not None:
                raise AssertionError(f"{self.topic}: {end.exception()!r}") from end.exception()


@contextmanager
def traffic(cluster: MiniCluster) -> Iterator[dict[str, Traffic]]:
    """All clients write and read, each in a topic of its own, until the end of the block."""
    running = {}
    for name, adapter in ADAPTERS.items():
        cluster.create_topic(name, min_isr=2)
        running[name] = Traffic(adapter(cluster.bootstrap_servers), name)
    with ThreadPoolExecutor(2 * len(running)) as pool:
        try:
            for each in running.values():
                each.start(pool)
            progress(cluster, running)
            yield running
            for each in running.values():
                each.stop_writing.set()
                each.ends[0].result(60)
            all_read = lambda: all(t.seen[-1:] == t.written[-1:] for t in running.values())  # noqa: E731
            cluster.wait_until(all_read, within="60s")
        finally:
            for each in running.values():
                each.stop_writing.set()
                each.stop_reading.set()


def progress(cluster: MiniCluster, running: dict[str, Traffic]) -> None:
    """Wait until every client has written and read something new."""
    before = {n: (len(t.written), len(t.seen)) for n, t in running.items()}

    def all_moved() -> bool:
        for name, each in running.items():
            each.check()
            written, seen = before[name]
            # Two more writes: the first of them may have begun before.
            if len(each.written) < written + 2 or len(each.seen) <= seen:
                return False
        return True

    cluster.wait_until(all_moved, within="60s")


@pytest.fixture(scope="module", params=[None, 1], ids=["threaded", "paced"])
def played(request: pytest.FixtureRequest) -> Iterator[dict[str, Traffic]]:
    """The story: each node dies once and returns, and every client gets on in between."""
    with MiniCluster(seed=3, listeners=True, config=QUICK, pace=request.param) as cluster:
        with traffic(cluster) as running:
            for node in (*cluster.brokers, *cluster.controllers):
                cluster.kill(node)
                progress(cluster, running)
                cluster.restart(node)
                cluster.wait_until(inside(cluster).all_unfenced, within="60s")
                for name in running:
                    cluster.wait_until(cluster.topic(name).fully_in_sync, within="60s")
        yield running


@pytest.mark.parametrize("name", ADAPTERS)
def test_each_acknowledged_record_is_there_once_and_in_order(
    name: str, played: dict[str, Traffic]
) -> None:
    each = played[name]
    assert len(each.written) >= 12
    assert each.seen == each.written
