"""Members of a group as programs of the simulation: killed, paused, asked to end, started again."""

from __future__ import annotations

import gc
import weakref
from functools import partial

import aiokafka
import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import UserError, WaitTimeout
from tests.programs.service import SERVERS, member, polite, source

Seen = list[tuple[str, bytes]]


@pytest.fixture
def seen() -> Seen:
    return []


@pytest.fixture
def cluster(mini_cluster: MiniCluster) -> MiniCluster:
    mini_cluster.create_topic("orders", partitions=4, min_isr=2)
    return mini_cluster


def start_two(cluster: MiniCluster, seen: Seen, run: object = member) -> None:
    for name in ("one", "two"):
        cluster.app(name, partial(run, name, seen, session_timeout_ms=45_000))
    cluster.run_for("10s")


def test_what_a_killed_member_read_is_taken_over_after_its_session(
    cluster: MiniCluster, seen: Seen
) -> None:
    start_two(cluster, seen)
    cluster.app("source", source)
    cluster.wait_until(lambda: len(seen) == 40)
    assert {name for name, _ in seen} == {"one", "two"}

    one, two, written = cluster.apps
    two.kill()
    killed_ms = cluster.now_ms
    written.restart()
    everything = {b"%d" % number for number in range(40)}
    cluster.wait_until(lambda: {value for _, value in seen[40:]} == everything, within="60s")

    assert 43_000 < cluster.now_ms - killed_ms < 50_000
    assert one.is_running and not two.is_running
    assert written.error is None and not written.is_running


def test_a_member_that_leaves_when_it_is_asked_to_is_replaced_at_once(
    cluster: MiniCluster, seen: Seen
) -> None:
    start_two(cluster, seen, polite)
    _, two = cluster.apps
    two.terminate()
    cluster.wait_until(lambda: not two.is_running)
    assert two.result == "left"
    asked_ms = cluster.now_ms
    cluster.app("source", source)
    cluster.wait_until(lambda: len(seen) == 40, within="60s")
    assert cluster.now_ms - asked_ms < 10_000
    assert {name for name, _ in seen} == {"one"}


def test_a_paused_member_loses_its_partitions_and_comes_back(
    cluster: MiniCluster, seen: Seen
) -> None:
    for name in ("one", "two"):
        cluster.app(name, partial(member, name, seen, session_timeout_ms=10_000))
    cluster.run_for("10s")
    two = cluster.apps[1]
    two.pause(lasting="40s")
    cluster.run_for("15s")
    cluster.app("source", source)
    cluster.run_for("20s")
    assert {name for name, _ in seen} == {"one"} and len(seen) == 40

    cluster.run_for("20s")
    assert two.is_running
    cluster.apps[2].restart()
    cluster.wait_until(lambda: {name for name, _ in seen[40:]} == {"one", "two"}, within="30s")


def test_a_program_that_fails_shows_its_error_where_it_is_waited_for(
    cluster: MiniCluster, seen: Seen
) -> None:
    async def broken() -> None:
        raise ValueError("no such order")

    app = cluster.app("broken", broken)
    with pytest.raises(
        WaitTimeout, match=r"app broken: failed at [\d.]+s: ValueError: no such ord"
    ):
        cluster.wait_until(lambda: seen, within="1s")
    assert isinstance(app.error, ValueError)
    app.restart()
    cluster.run_for("1s")
    assert not app.is_running and isinstance(app.error, ValueError)


def test_a_name_is_given_once_and_a_program_is_looked_for_by_its_module(
    cluster: MiniCluster, seen: Seen
) -> None:
    app = cluster.app("source", "tests.programs.service:forty")
    cluster.wait_until(lambda: not app.is_running)
    assert app.error is None
    for name, run, problem in (
        ("source", source, "there is an app source already"),
        ("other", "tests.programs.service:forties", "has no forties"),
        ("other", "tests.programs.nothing:main", "cannot import tests.programs.nothing"),
        ("other", "main", "module:function"),
    ):
        with pytest.raises(UserError, match=problem):
            cluster.app(name, run)


def test_programs_are_nodes_of_the_vocabulary(cluster: MiniCluster, seen: Seen) -> None:
    start_two(cluster, seen)
    cluster.app("source", source)
    cluster.wait_until(lambda: len(seen) == 40)
    cluster.kill("app(one)")
    assert not cluster.apps[0].is_running
    cluster.restart("app(one)")
    cluster.cut("apps", "brokers", both=True)
    before = len(seen)
    source_app = cluster.apps[2]
    source_app.restart()
    cluster.run_for("10s")
    assert len(seen) == before
    cluster.heal()
    cluster.wait_until(lambda: len(seen) >= before + 40, within="120s")
    with pytest.raises(UserError, match="there is no app three"):
        cluster.kill("app(three)")


@pytest.mark.mini_cluster(runtime="threaded")
def test_a_program_needs_a_simulated_cluster(mini_cluster: MiniCluster) -> None:
    with pytest.raises(UserError, match="simulated cluster without listeners"):
        mini_cluster.app("source", source)


def test_a_killed_program_keeps_its_coroutines_and_not_its_cluster() -> None:
    """A coroutine that is freed runs its ``finally``; so they stay, with what they hold alone."""
    cleaned: list[str] = []

    async def main() -> None:
        consumer = aiokafka.AIOKafkaConsumer("orders", bootstrap_servers=SERVERS)
        await consumer.start()
        try:
            await consumer.getone()
        finally:
            cleaned.append("up")

    cluster = MiniCluster(seed=7).start()
    cluster.create_topic("orders")
    app = cluster.app("app", main)
    cluster.run_for("5s")
    app.kill()
    network = weakref.ref(inside(cluster).network)
    cluster.stop()
    del cluster, app
    gc.collect()
    assert network() is None and not cleaned
