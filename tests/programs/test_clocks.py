"""Time and chance as a program sees them, and as everybody else does."""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from random import choice
from time import time as imported_time
from typing import Any

import pytest

from minicluster import MiniCluster

Main = Callable[[], Awaitable[Any]]


@pytest.fixture
def small(mini_cluster_factory: Callable[..., MiniCluster]) -> Callable[..., MiniCluster]:
    return lambda seed=7: mini_cluster_factory(brokers=1, controllers=1, seed=seed)


def ends(cluster: MiniCluster, main: Main, name: str = "app") -> Any:
    """What a program returns."""
    app = cluster.app(name, main)
    cluster.wait_until(lambda: not app.is_running, within="3h")
    if app.error is not None:
        raise app.error
    return app.result


def test_ten_minutes_pass_at_once_on_every_clock(small: Callable[..., MiniCluster]) -> None:
    def look() -> tuple[float, float, float, float]:
        return time.time(), time.monotonic(), imported_time(), datetime.now(UTC).timestamp()

    async def main() -> list[tuple[float, float, float, float]]:
        first = look()
        await asyncio.sleep(600)
        return [first, look()]

    began = time.monotonic()
    cluster = small()
    before_s = cluster.now_ms / 1_000
    first, second = ends(cluster, main)
    assert time.monotonic() - began < 300  # the test's clock is real
    assert datetime.now(UTC).year > 2_025
    for at_first, later in zip(first, second, strict=True):
        assert later - at_first == pytest.approx(600, abs=0.01)
        assert at_first == pytest.approx(before_s, abs=0.1)


def test_a_coroutine_that_sleeps_blocks_its_own_loop_and_nothing_else(
    small: Callable[..., MiniCluster],
) -> None:
    async def blocked() -> float:
        asyncio.get_running_loop().call_later(1, lambda: None)
        time.sleep(5)
        return time.monotonic()

    cluster = small()
    ticks: list[float] = []

    async def other() -> None:
        while True:
            ticks.append(time.monotonic())
            await asyncio.sleep(1)

    cluster.app("other", other)
    assert ends(cluster, blocked) == pytest.approx(cluster.now_ms / 1_000, abs=0.01)
    assert len(ticks) == 5


def test_waiting_for_time_without_sleeping_ends(small: Callable[..., MiniCluster]) -> None:
    async def main() -> float:
        began = time.monotonic()
        while time.monotonic() < began + 0.05:
            pass
        while time.monotonic() < began + 0.1:
            await asyncio.sleep(0)
        return time.monotonic() - began

    assert ends(small(), main) == pytest.approx(0.1, abs=0.01)


def test_chance_is_that_of_the_seed_and_the_program(small: Callable[..., MiniCluster]) -> None:
    async def main() -> tuple[Any, ...]:
        several = [random.random(), random.randrange(10**9), choice(range(10**9))]
        generator = random.Random()
        return (
            *several,
            generator.random(),
            os.urandom(8),
            secrets.token_hex(8),
            str(uuid.uuid4()),
            str(uuid.uuid1()),
        )

    first = ends(small(), main)
    assert ends(small(), main) == first
    assert not set(ends(small(), main, "other")) & set(first)
    assert not set(ends(small(seed=8), main)) & set(first)
    assert uuid.UUID(first[-1]).version == 1


def test_a_program_that_seeds_its_chance_has_the_sequence_of_that_seed(
    small: Callable[..., MiniCluster],
) -> None:
    async def main() -> list[float]:
        random.seed(5)
        return [random.random(), random.uniform(0, 1), random.choice([1, 2, 3])]

    expected = random.Random(5)
    assert ends(small(), main) == [
        expected.random(),
        expected.uniform(0, 1),
        expected.choice([1, 2, 3]),
    ]


def test_log_lines_are_kept_with_the_clusters_time(
    small: Callable[..., MiniCluster], caplog: pytest.LogCaptureFixture
) -> None:
    from minicluster.actors.cluster.mini_cluster import inside

    async def main() -> None:
        await asyncio.sleep(10)
        logging.getLogger("shop").warning("order %d is late", 7)

    cluster = small()
    before_ms = cluster.now_ms
    ends(cluster, main)
    [line] = inside(cluster).programs.lines
    assert line.at_ms == pytest.approx(before_ms + 10_000, abs=2)
    assert (line.program, line.level, line.text) == ("app", "WARNING", "order 7 is late")
    [record] = [record for record in caplog.records if record.name == "shop"]
    assert record.created == pytest.approx(line.at_ms / 1_000, abs=0.01)


def test_threads_of_a_program_sleep_beside_each_other(small: Callable[..., MiniCluster]) -> None:
    def work(seconds: float) -> float:
        time.sleep(seconds)
        return time.monotonic()

    async def main() -> tuple[list[float], float]:
        began = time.monotonic()
        ended = await asyncio.gather(asyncio.to_thread(work, 5), asyncio.to_thread(work, 3))
        return [at - began for at in ended], time.monotonic() - began

    each, together = ends(small(), main)
    assert each == pytest.approx([5, 3], abs=0.02)
    assert together == pytest.approx(5, abs=0.02)


def test_a_plain_function_is_a_program_too(small: Callable[..., MiniCluster]) -> None:
    def main() -> float:
        time.sleep(60)
        return time.monotonic()

    cluster = small()
    before_s = cluster.now_ms / 1_000
    assert ends(cluster, main) == pytest.approx(before_s + 60, abs=0.02)
