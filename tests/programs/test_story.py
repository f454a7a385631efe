"""What a run tells of its programs: lives, log lines, rebalances, last requests, in their order."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.fixtures.failures import MOMENTS_MAX, sections
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.reporting.story_text import story_lines
from minicluster.verify.reporting.trace_text import trace_lines
from tests.programs.service import member, source

LOGGER = logging.getLogger("shop")


async def service(name: str) -> None:
    LOGGER.warning("%s is there", name)
    await member(name, [], session_timeout_ms=10_000)


async def fails() -> None:
    raise KeyError("no such order")


TOLD = (
    "one starts",
    "group orders, generation 1: one owns orders-0, orders-1",
    "two starts",
    "group orders, generation 2: one owns orders-",
    "two was killed",
    "group orders, generation 3: one owns orders-0, orders-1",
    "broken died of KeyError: 'no such order'",
    "the last requests of one: ",
)


def play(cluster: MiniCluster) -> None:
    """A member comes to another one, and is killed."""
    cluster.create_topic("orders", partitions=2, min_isr=2)
    cluster.app("one", partial(service, "one"))
    cluster.app("source", partial(source, 10))
    cluster.run_for("5s")
    cluster.app("two", partial(service, "two"))
    cluster.run_for("10s")
    cluster.kill("app(two)")
    cluster.run_for("20s")
    cluster.app("broken", fails)
    cluster.run_for("1s")
    assert cluster.apps[-1].error is not None


def in_order(told: tuple[str, ...], text: str) -> bool:
    """Each sentence comes behind the one before."""
    at = 0
    for sentence in told:
        at = text.find(sentence, at)
        if at < 0:
            pytest.fail(f"{sentence!r} is not in its place in:\n{text}")
    return True


def test_a_saved_run_tells_what_its_programs_did(mini_cluster: MiniCluster, tmp_path: Path) -> None:
    play(mini_cluster)
    run = read_run(mini_cluster.save(tmp_path / "run"), "run")
    assert in_order(TOLD, "\n".join(line.text for line in story_lines(run)))
    logged = [line for line in trace_lines(run, every=True) if " program " in line]
    assert any("two WARNING shop: two is there" in line for line in logged)


def test_a_program_is_killed_before_it_starts_again(
    mini_cluster: MiniCluster, request: pytest.FixtureRequest
) -> None:
    """Both at one moment, as ``one.kill(); one.restart()`` plays them."""
    mini_cluster.create_topic("orders")
    one = mini_cluster.app("one", partial(service, "one"))
    mini_cluster.run_for("5s")
    one.kill()
    one.restart()
    _, text = next(sections(request.node))
    assert in_order(("kill one", "restart one", "one was killed", "one starts again"), text)


def test_a_failing_test_shows_the_last_part_of_the_story(
    mini_cluster: MiniCluster, request: pytest.FixtureRequest
) -> None:
    play(mini_cluster)
    _, text = next(sections(request.node))
    assert in_order(("the story", *TOLD[1:]), text)
    for _ in range(MOMENTS_MAX):
        mini_cluster.restart("app(two)")
        mini_cluster.run_for("0.1s")
    mini_cluster.kill("app(two)")
    _, text = next(sections(request.node))
    story = text.partition("seed ")[0].splitlines()
    assert "the last part" in story[0] and len(story) < 50
    assert not any(line.endswith("one starts") for line in story)
    assert inside(mini_cluster).programs is not None
