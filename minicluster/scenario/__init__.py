"""Scenarios as data: actions, selectors, conditions. Playing them is the actors' part."""

from minicluster.scenario.errors import ScenarioError
from minicluster.scenario.reading import load_scenario, parse_scenario
from minicluster.scenario.scenario import Scenario, Step
from minicluster.scenario.selectors import holds, select
from minicluster.scenario.view import ClusterView
from minicluster.scenario.vocabulary import ACTIONS

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
