"""CI runs everything: what is quick with every change, what is slow in a job of its own."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def commands_of_a_job() -> dict[str, list[str]]:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    return {
        name: [step["run"] for step in job["steps"] if "run" in step]
        for name, job in workflow["jobs"].items()
    }


def test_what_is_slow_has_a_job_of_its_own() -> None:
    assert commands_of_a_job() == {"check": [".ci/run"], "slow": ["make slow"]}


def test_the_quick_suite_and_the_slow_one_are_the_whole_suite() -> None:
    recipes = re.findall(r"pytest .*-m (\"not slow\"|slow) ", (ROOT / "Makefile").read_text())
    assert recipes == ['"not slow"', "slow"]
    assert re.search(r"^make .*\btest\b", (ROOT / ".ci/run").read_text(), re.M)
