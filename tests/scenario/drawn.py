"""Seeds of the nemesis by what they draw, so that a test names its intent and not a number."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, islice

from minicluster.scenario import Scenario
from minicluster.scenario.nemesis import generate

SHORT_MS = 22_000


def methods(scenario: Scenario) -> set[str]:
    """The actions of a scenario."""
    return {step.action.method for step in scenario.steps if step.action is not None}


def is_short(scenario: Scenario) -> bool:
    """It is played within a second or two: short timeouts, no groups, nothing after liveness."""
    ends_ms = max(step.at_ms or 0 for step in scenario.steps)
    quick = "broker.session.timeout.ms" in scenario.config
    ends_at_rest = scenario.steps[-1].at_ms is not None
    return quick and ends_at_rest and ends_ms <= SHORT_MS and "consume" not in methods(scenario)


def seeds_of(wanted: Callable[[Scenario], bool], number: int = 1, first: int = 0) -> list[int]:
    """The first seeds that draw a scenario as it is wanted."""
    return list(islice((seed for seed in count(first) if wanted(generate(seed))), number))
