"""The examples that are tests, and the README's, run unchanged with the fixture."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
STORIES = ("controlled_shutdown", "fenced_follower", "maximal_isr", "unclean_recovery")
LONGEST_BODY = 14

Example = Callable[[Any], None]


def functions_of(source: str, where: str) -> dict[str, Example]:
    """The test functions that a text defines."""
    found: dict[str, Any] = {}
    exec(compile(source, where, "exec"), found)
    return {name: value for name, value in found.items() if name.startswith("test_")}


def readme() -> str:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    return next(block for block in blocks if "def test_" in block)


def page_about_tests() -> str:
    """The tests of the page about testing, as one file."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/testing.md").read_text(), re.S)
    assert len(blocks) == 2
    return "\n".join(blocks)


FILES = {path.stem: path for path in sorted((ROOT / "examples").glob("test_*.py"))}
EXAMPLES = {
    **{name: functions_of(path.read_text(), str(path)) for name, path in FILES.items()},
    "README.md": functions_of(readme(), str(ROOT / "README.md")),
}


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


def test_the_page_about_testing_runs_as_pasted(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(page_about_tests())
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2)
