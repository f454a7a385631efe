"""One test under the disturbances of many seeds: what is found, shrunk, named, and what is not."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys

import pytest

from minicluster import MiniCluster
from minicluster.actors.play.exploring import Failure, Play, Played, first_difference
from minicluster.errors import UserError
from minicluster.scenario.nemesis.apps import (
    KINDS,
    LASTING_MAX_MS,
    Disturbance,
    disturbances,
    kinds_of,
    simpler,
)
from minicluster.scenario.nemesis.draws import World
from minicluster.scenario.reading import steps_of
from tests.cli.in_process import Done, command
from tests.house.sources import ROOT

pytest_plugins = "pytester"

WORLD = World(
    brokers=3, controllers=1, log_dirs=1, victim=1, dynamic=False,
    apps=("one", "two"), partitions=("orders-0",),
)  # fmt: skip

ORDERS = """
    import asyncio

    import aiokafka
    import pytest

    from tests.programs.storing import Database, store

    @pytest.mark.mini_cluster(controllers=1, config={"offsets.topic.num.partitions": 1})
    @pytest.mark.mini_cluster_explore(disturbances="kill", calm="9s")
    async def test_broken(mini_cluster):
        mini_cluster.create_topic("orders", partitions=2, min_isr=2)
        database = Database()
        mini_cluster.app("orders-1", lambda: store(database))
        everything = {b"%d" % n for n in range(40)}
        servers = mini_cluster.bootstrap_servers
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers) as producer:
            for value in sorted(everything):
                await producer.send_and_wait("orders", value, key=value)
                await asyncio.sleep(0.1)
        await mini_cluster.until(lambda: database.rows == everything, within="15s")
"""


def explore(*words: str) -> Done:
    """The command, in the folder of the test; its children find the packages of this checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        return command("explore", *words)


def test_disturbances_of_apps_are_steps_of_scenarios_and_end_by_themselves() -> None:
    seen = set()
    for seed in range(1, 201):
        for each in disturbances(seed, WORLD, KINDS, 1_000, 20_000):
            seen.add(each.kind)
            steps_of([step for _, step in each.steps], each.kind)
            assert 1_000 <= each.at_ms < 21_000
            assert each.at_ms <= each.ends_ms <= each.at_ms + LASTING_MAX_MS
            assert Disturbance.of_dict(each.to_dict()) == each
            assert all(form != each for form in simpler(each))
    assert seen == {kind.name for kind in KINDS}


def test_without_apps_brokers_alone_are_disturbed() -> None:
    world = World(brokers=3, controllers=1, log_dirs=1, victim=1, dynamic=False)
    drawn = [each for seed in range(50) for each in disturbances(seed, world, KINDS, 0, 9_000)]
    assert {each.kind for each in drawn} == {"bounce broker", "pause broker", "cut broker"}


def test_a_word_names_the_kinds_that_begin_with_it() -> None:
    assert [kind.name for kind in kinds_of("pause kill")] == [
        "kill app",
        "pause app",
        "pause broker",
    ]
    with pytest.raises(UserError, match="unknown word 'kil'; did you mean kill"):
        kinds_of("kil")


def test_a_call_comes_later_while_the_test_continues(mini_cluster: MiniCluster) -> None:
    began_ms = mini_cluster.now_ms
    mini_cluster.call_later("2s", mini_cluster.bounce, mini_cluster.brokers[0], down="1s")
    mini_cluster.run_for("1s")
    assert mini_cluster.brokers[0].is_running
    mini_cluster.wait_until(lambda: not mini_cluster.brokers[0].is_running)
    assert mini_cluster.now_ms - began_ms == 2_000
    with pytest.raises(UserError, match="call_later: 'heal' is not a function"):
        mini_cluster.call_later("1s", "heal")  # type: ignore[arg-type]


def test_a_race_is_found_shrunk_to_one_kill_and_printed_as_a_test(
    pytester: pytest.Pytester,
) -> None:
    path = pytester.makepyfile(test_orders=ORDERS)
    explored = explore("test_orders.py::test_broken", "--seeds", "1-2")
    assert explored.returncode == 1, explored.stdout + explored.stderr
    assert "WaitTimeout at test_orders.py:" in explored.stdout
    assert re.search(r"shrunk from \d to 1 in \d+ replays", explored.stdout)
    [pasted] = re.findall(r"as a test to paste:\n\n(.*?\n)\nrepeat", explored.stdout, re.DOTALL)
    assert pasted.count("call_later") == 1

    lines = [line.removeprefix("    ") for line in pasted.splitlines()]
    path.write_text(path.read_text() + "\n\n" + "\n".join(lines) + "\n")
    again = pytester.runpytest_subprocess("-q", "-k", "_seed_", "-n", "0")
    again.assert_outcomes(failed=1)
    again.stdout.fnmatch_lines(["*WaitTimeout: timed out after 15s*"])


@pytest.mark.parametrize(
    ("test", "why"),
    [
        ("nosuch.py", "file or directory not found: nosuch.py"),
        ("test_orders.py::test_nosuch", "not found: .*::test_nosuch"),
        ("test_imports.py", "ModuleNotFoundError: No module named 'nosuch'"),
        ("test_syntax.py", "SyntaxError: expected ':'"),
        ("test_raises.py", "EOFError: Early end"),
    ],
)
def test_a_test_that_pytest_cannot_load_is_one_line(
    pytester: pytest.Pytester, test: str, why: str
) -> None:
    imports, syntax = "import nosuch\ndef test_it(mini_cluster): ...", "def test_it()"
    pytester.makepyfile(test_orders=ORDERS, test_imports=imports, test_syntax=syntax)
    pytester.makepyfile(test_raises="raise EOFError('Early end')")
    explored = explore(test, "--seeds", "1-2")
    assert explored.returncode == 64, explored.stdout + explored.stderr
    line = f"minicluster: {test}: {why} [(]python -m pytest {test} shows more[)]\n"
    assert re.fullmatch(line, explored.stderr), explored.stderr


def test_a_seed_that_ends_its_process_has_failed_and_the_others_are_played(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_exits="""
        import os

        def test_it(mini_cluster):
            with open("plays", "a") as plays:
                plays.write("x")
            if os.stat("plays").st_size == 3:  # without disturbances, seed 1, seed 2
                os._exit(5)
        """
    )
    explored = explore("test_exits.py::test_it", "--seeds", "1-3")
    assert explored.returncode == 1, explored.stdout + explored.stderr
    lines = explored.stdout.splitlines()
    assert "seed 2: pytest ended early at exit code 5" in lines
    assert lines[-2:] == [
        "3 seeds, 1 failed",
        "     1 pytest ended early at exit code 5, first at seed 2",
    ]
    assert (pytester.path / "plays").read_text() == "xxxx"


def test_a_play_ends_with_the_command_that_asked_for_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_endless="""
        import threading

        def test_it(mini_cluster):
            with open("begun", "w") as begun:
                begun.write("a play")
                begun.flush()
                threading.Event().wait()
        """
    )
    os.mkfifo(pytester.path / "begun")
    words = [sys.executable, "-m", "minicluster", "explore", "test_endless.py::test_it"]
    command = subprocess.Popen(
        words, cwd=pytester.path, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    with open(pytester.path / "begun") as begun:
        assert begun.read(6) == "a play"
        command.terminate()
        [readable], _, _ = select.select([begun], [], [], 60)
        assert readable.read() == ""  # who had it open for writing has ended
    assert command.wait() == -signal.SIGTERM


def test_under_pytest_a_seed_that_fails_is_shrunk_and_a_test_that_survives_passes(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_orders="""
        import pytest

        BOUNCES = pytest.mark.mini_cluster_explore(seeds=3, disturbances="bounce", calm="1s")

        def unfenced(cluster):
            return not any(broker.is_fenced for broker in cluster.brokers)

        @BOUNCES
        def test_broken(mini_cluster):
            for _ in range(50):
                mini_cluster.run_for("100ms")
                assert all(broker.is_running for broker in mini_cluster.brokers)

        @BOUNCES
        def test_repaired(mini_cluster):
            mini_cluster.run_for("5s")
            mini_cluster.wait_until(lambda: unfenced(mini_cluster), within="60s")
        """
    )
    result = pytester.runpytest_subprocess("-q", "-n", "0")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        [
            "*disturbances since the test began (shrunk from * to 1 in *",
            "*as a test to paste:",
            "*def test_broken_seed_*(mini_cluster):",
            "*repeat: *minicluster explore test_orders.py::test_broken --seeds *",
        ]
    )


def test_each_seed_has_fixtures_of_its_own_and_those_of_a_module_stay(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest

        made = []

        @pytest.fixture(scope="module")
        def shared():
            made.append("shared")
            yield
            made.append("shared ends")

        @pytest.fixture
        def own(shared):
            made.append("own")

        @pytest.mark.mini_cluster_explore(seeds=3, disturbances="bounce", calm="1s")
        def test_a_sync_body(mini_cluster, own):
            mini_cluster.run_for("2s")

        def test_what_was_made(shared):
            assert made == ["shared"] + 4 * ["own"]
        """
    )
    pytester.runpytest_subprocess("-q", "-n", "0").assert_outcomes(passed=2)


def test_a_test_that_fails_undisturbed_is_not_explored(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_orders="""
        import pytest

        @pytest.mark.mini_cluster_explore(seeds=3)
        def test_it(mini_cluster):
            assert mini_cluster.brokers == 3

        def test_without_a_cluster():
            pass

        """
    )
    result = pytester.runpytest_subprocess("-q", "-n", "0", "-k", "test_it")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the test did not pass without disturbances*"])

    explored = explore("test_orders.py::test_it")
    assert explored.returncode == 1
    assert "without disturbances it fails already: AssertionError" in explored.stdout

    for words, problem in (
        (["test_orders.py"], "is 2 tests; name one"),
        (["test_orders.py::test_without_a_cluster"], "does not use the fixture mini_cluster"),
        (["test_orders.py::test_it", "--seeds", "9-"], "has no end"),
    ):
        explored = explore(*words)
        assert explored.returncode == 64, explored.stderr
        assert problem in explored.stderr


def test_a_seed_that_does_not_repeat_is_told_with_its_first_difference(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        test_orders="""
        import itertools
        import aiokafka

        plays = itertools.count()  # of this process: a second one begins from the start

        async def test_it(mini_cluster):
            number = next(plays)
            mini_cluster.create_topic("orders")
            servers = mini_cluster.bootstrap_servers
            async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers) as producer:
                for n in range(5 + number):
                    await producer.send_and_wait("orders", b"%d" % n)
            assert number < 2
        """
    )
    explored = explore("test_orders.py::test_it", "--seeds", "1-3")
    assert explored.returncode == 1, explored.stdout + explored.stderr
    assert "it does not repeat: a second play of this seed differs first in" in explored.stdout
    assert "test to" in explored.stdout or "no more requests" in explored.stdout


def test_the_first_request_that_differs_is_named() -> None:
    failure = Failure(kind="AssertionError", place="test_orders.py:3", text="")
    one, other = (
        Played(play=Play(seed=1), failure=failure, requests=("1s  a to 1: Fetch", last))
        for last in ("2s  a to 1: Fetch", "2s  a to 2: Fetch")
    )
    assert first_difference(one, other) == "2s  a to 1: Fetch\n2s  a to 2: Fetch"
    assert "no request" in first_difference(one, one)
