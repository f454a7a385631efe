"""Programs with threads: what they wait for takes virtual time, and one of them runs at a time."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock as imported_lock
from time import monotonic, sleep
from typing import Any

import pytest

from minicluster import MiniCluster


@pytest.fixture
def cluster(mini_cluster_factory: Callable[..., MiniCluster]) -> MiniCluster:
    return mini_cluster_factory(brokers=1, controllers=1, seed=7)


def result_of(cluster: MiniCluster, main: Any) -> Any:
    app = cluster.app("app", main)
    cluster.wait_until(lambda: not app.is_running, within="3h")
    if app.error is not None:
        raise app.error
    return app.result


def test_producers_and_consumers_of_a_queue(cluster: MiniCluster) -> None:
    def main() -> list[tuple[float, int]]:
        orders: queue.Queue[int] = queue.Queue(maxsize=2)
        taken: list[tuple[float, int]] = []

        def produce() -> None:
            for number in range(6):
                orders.put(number)

        def consume() -> None:
            while len(taken) < 6:
                time.sleep(10)
                taken.append((time.monotonic(), orders.get()))

        threads = [threading.Thread(target=work) for work in (produce, consume)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not any(thread.is_alive() for thread in threads)
        return taken

    taken = result_of(cluster, main)
    assert [number for _, number in taken] == [*range(6)]
    assert taken[-1][0] - taken[0][0] == pytest.approx(50, abs=0.1)


def test_names_that_a_module_has_imported_are_virtual_too(cluster: MiniCluster) -> None:
    """``queue`` has a clock of its own as well: ``from time import monotonic as time``."""

    def main() -> tuple[float, float]:
        began = time.monotonic()
        sleep(30)
        slept = monotonic() - began
        with pytest.raises(queue.Empty):
            queue.Queue().get(timeout=5)
        with imported_lock():
            condition = threading.Condition()
        with condition:
            assert not condition.wait_for(lambda: False, timeout=7)
        return slept, time.monotonic() - began

    began = monotonic()
    assert result_of(cluster, main) == pytest.approx((30, 42), abs=0.1)
    assert monotonic() - began < 30


def test_events_conditions_and_their_timeouts(cluster: MiniCluster) -> None:
    def main() -> dict[str, Any]:
        said: dict[str, Any] = {}
        event, condition = threading.Event(), threading.Condition()
        began = time.monotonic()
        said["nobody sets it"] = event.wait(5)
        said["waited"] = time.monotonic() - began

        def later() -> None:
            time.sleep(3)
            event.set()
            with condition:
                condition.notify_all()
            said["name"] = threading.current_thread().name

        thread = threading.Thread(target=later, name="later")
        thread.start()
        with condition:
            said["notified"] = condition.wait(60)
        said["is set"] = event.wait()
        thread.join()
        lock = threading.RLock()
        with lock, lock:
            said["lock"] = True
        return said

    said = result_of(cluster, main)
    assert said.pop("waited") == pytest.approx(5, abs=0.01)
    assert said == {
        "nobody sets it": False,
        "notified": True,
        "is set": True,
        "name": "later",
        "lock": True,
    }


def test_a_pool_of_threads(cluster: MiniCluster) -> None:
    def work(number: int) -> tuple[int, float]:
        time.sleep(10)
        return number, time.monotonic()

    async def main() -> list[tuple[int, float]]:
        with ThreadPoolExecutor(2) as pool:
            return [future.result() for future in [pool.submit(work, n) for n in range(4)]]

    ended = result_of(cluster, main)
    assert [number for number, _ in ended] == [*range(4)]
    assert ended[3][1] - ended[0][1] == pytest.approx(10, abs=0.1)


def test_an_event_loop_in_a_thread_is_another_simulated_loop(cluster: MiniCluster) -> None:
    """asyncio.run in a plain program, and a loop that runs for ever in a thread beside."""

    async def inner() -> float:
        await asyncio.sleep(100)
        return time.monotonic()

    def main() -> tuple[float, float]:
        began = time.monotonic()
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever, daemon=True)
        thread.start()
        beside = asyncio.run_coroutine_threadsafe(inner(), loop)
        here = asyncio.run(inner())
        there = beside.result(timeout=60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        return here - began, there - began

    assert result_of(cluster, main) == pytest.approx((100, 100), abs=0.05)


def test_a_killed_program_has_no_thread_that_goes_on(cluster: MiniCluster) -> None:
    ticks: list[float] = []

    def main() -> None:
        while True:
            ticks.append(time.monotonic())
            time.sleep(1)

    app = cluster.app("app", main)
    cluster.run_for("5s")
    app.pause(lasting="10s")
    cluster.run_for("9s")
    assert len(ticks) == pytest.approx(5, abs=1)
    cluster.run_for("5s")
    app.kill()
    before = len(ticks)
    cluster.run_for("5s")
    assert len(ticks) == before > 7
