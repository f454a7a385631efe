"""The examples that are tests, and those of the pages, run unchanged with the fixture."""

from __future__ import annotations

import inspect
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.scenario import load_scenario, parse_scenario

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
STORIES = ("controlled_shutdown", "fenced_follower", "maximal_isr", "unclean_recovery")
LONGEST_BODY = 14
PASTED = {"../README.md": 3, "guide.md": 10, "programs.md": 4, "security.md": 6, "scenarios.md": 2}
"""Pages by their number of tests."""
EXPLORED = "mini_cluster_explore"
SERVICE = ROOT / "examples" / "orders_service" / "service.py"

Example = Callable[[Any], None]


def functions_of(source: str, where: str) -> dict[str, Example]:
    """The test functions that a text defines."""
    found: dict[str, Any] = {}
    exec(compile(source, where, "exec"), found)
    return {name: value for name, value in found.items() if name.startswith("test_")}


def python_blocks(page: str) -> list[str]:
    """The Python of a page, as it is printed."""
    return re.findall(r"```python\n(.*?)```", (ROOT / "docs" / page).read_text(), re.S)


def pasted_tests(page: str) -> str:
    """The tests of a page, as one file; those that are explored take longer."""
    return "\n".join(
        block for block in python_blocks(page) if "def test_" in block and EXPLORED not in block
    )


FILES = {path.stem: path for path in sorted((ROOT / "examples").glob("test_*.py"))}
EXAMPLES = {name: functions_of(path.read_text(), str(path)) for name, path in FILES.items()}


def test_each_of_the_four_stories_has_its_test() -> None:
    assert {f"test_{story}" for story in STORIES} <= set(FILES)
    assert all(tests for tests in EXAMPLES.values())


@pytest.mark.parametrize("name", FILES)
def test_an_example_is_short_and_takes_nothing_but_the_fixture(name: str) -> None:
    for example in EXAMPLES[name].values():
        assert list(inspect.signature(example).parameters) == ["mini_cluster"]
    body = [
        line
        for line in FILES[name].read_text().splitlines()
        if line.startswith("    ") and not line.strip().startswith('"""')
    ]
    assert len(body) <= LONGEST_BODY * len(EXAMPLES[name])


@pytest.mark.spark
@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=f"{name}-{test}")
        for name, tests in EXAMPLES.items()
        for test, example in tests.items()
    ],
)
def test_the_example_runs(example: Example, mini_cluster: Any) -> None:
    example(mini_cluster)


def test_the_tests_of_the_pages_run_as_pasted(pytester: pytest.Pytester) -> None:
    """In a process of their own, without a JVM of its own: Spark judges the examples above."""
    shutil.copy(SERVICE, pytester.path)  # the user's own program
    pytester.makeconftest(
        """
        from functools import partialmethod
        from minicluster import MiniCluster

        MiniCluster.verify = partialmethod(MiniCluster.verify, engine="process")
        """
    )
    for page in PASTED:
        pytester.makepyfile(**{f"test_{Path(page).stem}": pasted_tests(page)})
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", "--verbosity=1")
    result.assert_outcomes(passed=sum(PASTED.values()))
    for page, count in PASTED.items():
        assert str(result.stdout).count(f"test_{Path(page).stem}.py::") == count, page


def test_the_clusters_of_other_pages_run_as_printed(tmp_path: Path) -> None:
    """On ZooKeeper, and from a log."""
    [zookeeper] = python_blocks("zookeeper.md")
    [what_if] = (block for block in python_blocks("verifying.md") if "from_log" in block)
    pages = {"MiniCluster": MiniCluster}
    exec(compile(zookeeper, "docs/zookeeper.md", "exec"), dict(pages))
    with MiniCluster(brokers=5, controllers=1, seed=2) as cluster:
        cluster.create_topic("orders", partitions=2, replicas=3)
        log = cluster.save(tmp_path / "run") / "controller-101" / "__cluster_metadata-0"
    what_if = what_if.replace("…/__cluster_metadata-0", str(log))
    exec(compile(what_if, "docs/verifying.md", "exec"), dict(pages))


def test_the_scenario_for_clients_can_be_played() -> None:
    [text] = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/guide.md").read_text(), re.S)
    assert parse_scenario(text).steps == load_scenario(ROOT / "examples/leader_dies.yaml").steps
