"""``python -m tests.programs.aiokafka_own CHECKOUT [WORD…]``: play aiokafka's integration tests.

CHECKOUT is a folder with aiokafka's repository, at the release that is installed; its tests are no
part of this project. Each test is a program in a simulated cluster of its own. With words only the
tests that have one of them in their names are played. ``tests.yaml`` lists those that hold, and why
others do not; ``--write`` writes it again.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import types
import unittest
from collections import Counter
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import yaml

from minicluster import MiniCluster
from minicluster.errors import WaitTimeout

LISTED = Path(__file__).with_name("tests.yaml")
PACKAGE = "aiokafka_tests"
KAFKA = "2.8.1"  # the newest release that aiokafka's own CI plays them with
CONFIG = {"num.partitions": 2, "auto.create.topics.enable": True}
WITHIN = "10m"


class LaterLoop:
    """The loop that a test thinks it runs: what it hands over is awaited by the program."""

    def __init__(self) -> None:
        self.awaited: list[Awaitable[Any]] = []

    def run_until_complete(self, awaitable: Awaitable[Any]) -> None:
        """Take it for later: it is the last thing that a test does."""
        self.awaited.append(awaitable)

    async def run(self) -> None:
        """Await what was handed over, in its order."""
        while self.awaited:
            await self.awaited.pop(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio.get_running_loop(), name)


def cases(checkout: Path, words: list[str]) -> Iterator[tuple[str, type[unittest.TestCase], str]]:
    """The tests of classes that want a broker: (name, class, method)."""
    package = types.ModuleType(PACKAGE)
    package.__path__ = [str(checkout / "tests")]
    sys.modules[PACKAGE] = package
    base = importlib.import_module(f"{PACKAGE}._testutil").KafkaIntegrationTestCase
    for path in sorted((checkout / "tests").glob("test_*.py")):
        module = importlib.import_module(f"{PACKAGE}.{path.stem}")
        for kind in list(vars(module).values()):
            if not (isinstance(kind, type) and issubclass(kind, base)):
                continue
            if kind.__module__ != module.__name__:
                continue
            for method in unittest.defaultTestLoader.getTestCaseNames(kind):
                name = f"{path.stem}.{kind.__name__}.{method}"
                if not words or any(word in name for word in words):
                    yield name, kind, method


def play(kind: type[unittest.TestCase], method: str) -> str:
    """Play one test; "holds", or why it does not."""
    with MiniCluster(broker_ids=[0], controller_ids=[100], seed=1, config=CONFIG) as cluster:
        cluster.run_for("1m")  # some tests look back by seconds on the clock of their loop
        app = cluster.app("test", lambda: run(kind(method), cluster))
        try:
            cluster.wait_until(lambda: not app.is_running, within=WITHIN)
        except WaitTimeout:
            return f"it does not end within {WITHIN}"
        error = app.error
    if error is None:
        return "holds"
    text = " ".join(str(error).split())
    if isinstance(error, unittest.SkipTest):
        return f"it skips itself: {text}"
    return f"{type(error).__name__}: {text}"[:160]


async def run(case: Any, cluster: MiniCluster) -> None:
    """A test from its setup to its end."""
    case.hosts = cluster.bootstrap_servers.split(",")
    case.kafka_host, port = case.hosts[0].split(":")
    case.kafka_port = int(port)
    case.kafka_version = KAFKA
    loop = case.loop = LaterLoop()
    case.setUp()
    try:
        getattr(case, case._testMethodName)()
        await loop.run()
    finally:
        case.tearDown()
        await loop.run()


def main(arguments: list[str]) -> int:
    """Play what is asked for; 0 where it is as listed."""
    written = "--write" in arguments
    checkout, *words = [each for each in arguments if each != "--write"]
    listed: dict[str, Any] = yaml.safe_load(LISTED.read_text())
    holds, others = set(listed["holds"]), dict(listed["others"])
    differ, played = 0, Counter[bool]()
    for name, kind, method in cases(Path(checkout), words):
        given = play(kind, method)
        is_as_listed = (name in holds) == (given == "holds")
        print(f"{name}: {given}{'' if is_as_listed else '  (listed otherwise)'}", flush=True)
        differ += not is_as_listed
        played[given == "holds"] += 1
        holds.discard(name)
        if given == "holds":
            holds.add(name)
            others.pop(name, None)
        else:
            others.setdefault(name, given)
    print(f"{played.total()} tests: {played[True]} hold, {differ} not as listed")
    if written:
        plain = {"holds": sorted(holds), "others": dict(sorted(others.items()))}
        LISTED.write_text(yaml.safe_dump(plain, width=10_000, sort_keys=False))
    return int(differ > 0 and not written)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
