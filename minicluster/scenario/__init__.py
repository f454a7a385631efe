"""Scenarios as data: actions, selectors, conditions. Playing them is the actors' part.

The public names are loaded on first use: a cluster without a scenario loads no reader of files.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicluster.scenario.errors import ScenarioError as ScenarioError
    from minicluster.scenario.reading import load_scenario as load_scenario
    from minicluster.scenario.reading import parse_scenario as parse_scenario
    from minicluster.scenario.scenario import Scenario as Scenario
    from minicluster.scenario.scenario import Step as Step
    from minicluster.scenario.selectors import holds as holds
    from minicluster.scenario.selectors import select as select
    from minicluster.scenario.view import ClusterView as ClusterView
    from minicluster.scenario.vocabulary import ACTIONS as ACTIONS

_HOMES = {
    "ACTIONS": "minicluster.scenario.vocabulary",
    "ClusterView": "minicluster.scenario.view",
    "Scenario": "minicluster.scenario.scenario",
    "ScenarioError": "minicluster.scenario.errors",
    "Step": "minicluster.scenario.scenario",
    "holds": "minicluster.scenario.selectors",
    "load_scenario": "minicluster.scenario.reading",
    "parse_scenario": "minicluster.scenario.reading",
    "select": "minicluster.scenario.selectors",
}

__all__ = [
    "ACTIONS",
    "ClusterView",
    "Scenario",
    "ScenarioError",
    "Step",
    "holds",
    "load_scenario",
    "parse_scenario",
    "select",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
