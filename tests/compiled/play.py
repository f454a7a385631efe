"""Plays scenarios by the interpreter of either build, and prints their trace hashes as JSON.

Its input names the scenarios: files, and seeds of the two nemeses (``7``, ``zookeeper 7``); and
modules, whose files show which build this is.
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from minicluster.actors.play.campaign import outcome_of
from minicluster.scenario.nemesis import generate, generate_on_zookeeper
from minicluster.scenario.reading import parse_scenario
from minicluster.scenario.scenario import Scenario


def main(names: Sequence[str], modules: Sequence[str]) -> None:
    """Play each, and find the files from which modules come."""
    places = {name: str(importlib.import_module(name).__file__) for name in modules}
    json.dump({"modules": places, "played": {name: play(name) for name in names}}, sys.stdout)


def play(name: str) -> tuple[str | None, str | None]:
    """The hash of the trace, and the failure of a run that has one."""
    outcome = outcome_of(scenario_of(name))
    return outcome.trace_hash, None if outcome.failure is None else str(outcome.failure)


def scenario_of(name: str) -> Scenario:
    """The scenario of a name."""
    *kind, last = name.split()
    if not last.isdigit():
        return parse_scenario(Path(name).read_text(encoding="utf-8"))
    return generate_on_zookeeper(int(last)) if kind else generate(int(last))


if __name__ == "__main__":
    request = json.load(sys.stdin)
    main(request["names"], request["modules"])
