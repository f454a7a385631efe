"""Seeds of the nemesis that are played within a second or two: drawn for it, not looked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from minicluster.scenario import Scenario
from minicluster.scenario.nemesis import generate
from minicluster.scenario.nemesis.draws import NO, NOTHING, YES, Needs
from minicluster.scenario.scenario import to_yaml
from minicluster.values import replace

SHORT_MS = 22_000
SHORTEST = 0.0  # the fraction of what is drawn between two bounds
_SHORT = {"short timeouts": YES, "chaos": SHORTEST, "clients": NO, "calm": NO, "quiet": NO}


def methods(scenario: Scenario) -> set[str]:
    """The actions of a scenario."""
    return {step.action.method for step in scenario.steps if step.action is not None}


def written(seed: int) -> str:
    """The scenario of a seed as a file has it."""
    return to_yaml(generate(seed).to_dict()).strip()


def short(
    seed: int, variation: Sequence[int] = (), needs: Needs = NOTHING, **shape: float
) -> Scenario:
    """A seed with short timeouts and ten seconds of disturbances, without groups.

    Shapes:  shape: fractions of other draws, such as dynamic=YES.
    """
    return generate(seed, variation, replace(needs, fixed={**_SHORT, **needs.fixed, **shape}))


def short_seed() -> int:
    """For a command, which takes no shape: a seed that happens to be short."""
    return first_seed(_is_short, generate, hint=1_782)


def _is_short(scenario: Scenario) -> bool:
    ends_ms = max(step.at_ms or 0 for step in scenario.steps)
    quick = "broker.session.timeout.ms" in scenario.config
    ends_at_rest = scenario.steps[-1].at_ms is not None
    return quick and ends_at_rest and ends_ms <= SHORT_MS and "consume" not in methods(scenario)


def first_seed(
    wanted: Callable[[Scenario], bool], draw: Callable[[int], Scenario], hint: int = 0
) -> int:
    """The first seed from the hint on that draws a scenario as it is wanted.

    The hint is where it was found last; once draws change, a test takes longer, and goes on.
    """
    return next(seed for seed in count(hint) if wanted(draw(seed)))
