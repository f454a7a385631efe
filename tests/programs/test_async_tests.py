"""An async test's body is a program: it awaits in virtual time, with clients of its own."""

from __future__ import annotations

import asyncio
import time
from functools import partial

import aiokafka
import pytest

from minicluster import MiniCluster
from tests.programs.service import member, source

pytest_plugins = "pytester"


async def test_a_body_uses_clients_of_its_own_and_awaits_in_virtual_time(
    mini_cluster: MiniCluster,
) -> None:
    mini_cluster.create_topic("orders", min_isr=2)
    began, began_ms = time.monotonic(), mini_cluster.now_ms
    seen: list[tuple[str, bytes]] = []
    app = mini_cluster.app("one", partial(member, "one", seen))
    async with aiokafka.AIOKafkaProducer(
        bootstrap_servers=mini_cluster.bootstrap_servers
    ) as producer:
        await producer.send_and_wait("orders", b"7")
        await mini_cluster.until(lambda: seen == [("one", b"7")])
    app.kill()
    await asyncio.sleep(60)
    assert time.monotonic() - began >= 60
    assert (mini_cluster.now_ms - began_ms) / 1_000 == pytest.approx(
        time.monotonic() - began, abs=0.01
    )


async def test_a_body_may_wait_in_the_words_of_other_tests(mini_cluster: MiniCluster) -> None:
    mini_cluster.create_topic("orders", min_isr=2)
    app = mini_cluster.app("source", source)
    mini_cluster.wait_until(lambda: not app.is_running)
    mini_cluster.run_for("5s")
    assert app.error is None
    assert mini_cluster.topic("orders").exists


def test_a_failing_body_is_shown_as_any_other(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import pytest

        async def test_it(mini_cluster):
            await asyncio.sleep(5)
            orders = 7
            assert orders == 8

        async def test_that_is_skipped(mini_cluster):
            pytest.skip("not today")

        @pytest.mark.parametrize("n", [1, 2])
        async def test_that_holds(mini_cluster, n):
            await asyncio.sleep(n)
        """
    )
    result = pytester.runpytest_subprocess("-q")
    result.assert_outcomes(failed=1, passed=2, skipped=1)
    result.stdout.fnmatch_lines(["*assert 7 == 8*", "*app test: failed at *s: AssertionError*"])
