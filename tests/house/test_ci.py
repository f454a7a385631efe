"""CI runs everything: what is quick with every change, what is slow in a job of its own."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))


def commands_of_a_job() -> dict[str, list[str]]:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    return {
        name: [step["run"] for step in job["steps"] if "run" in step]
        for name, job in workflow["jobs"].items()
    }


def test_what_is_slow_has_a_job_of_its_own() -> None:
    assert commands_of_a_job() == {
        "check": [".ci/run"],
        "slow": [
            "make slow",
            "sudo apt-get update && sudo apt-get install --yes valgrind",
            "make instructions",
        ],
    }


def test_the_quick_suite_and_the_slow_one_are_the_whole_suite() -> None:
    recipes = re.findall(r"pytest .*-m (\"not slow\"|slow)$", (ROOT / "Makefile").read_text(), re.M)
    assert recipes == ['"not slow"', "slow"]
    assert re.search(r"^make .*\btest\b", (ROOT / ".ci/run").read_text(), re.M)


def _names(requirements: list[str]) -> set[str]:
    """The packages of requirement lines, by their names in one spelling."""
    found = (re.match(r"[A-Za-z0-9._-]+", line) for line in requirements)
    return {match[0].lower().replace("_", "-") for match in found if match}


def test_every_dependency_has_a_tested_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    listed = [one for extra in extras.values() for one in extra]
    wanted = _names([*project["dependencies"], *listed]) - {"minicluster"}
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line for line in lines if not line.startswith("#")]
    assert all(re.fullmatch(r"\S+==\S+", line) for line in pinned)
    assert wanted - _names(pinned) == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_named_by_digest(path: Path) -> None:
    used = re.findall(r"uses: (\S+)", path.read_text())
    assert used and all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used)


def test_a_release_is_tried_on_every_python_that_it_names() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    named = re.findall(r":: (3\.\d+)$", "\n".join(project["classifiers"]), re.M)
    assert workflow["jobs"]["try"]["strategy"]["matrix"]["python"] == named
    assert (
        workflow["jobs"]["publish"]["needs"] == "try"
        and workflow["jobs"]["try"]["needs"] == "build"
    )
