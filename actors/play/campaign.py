"""Campaigns over many seeds of the nemesis, and the shortest script that still breaks a promise.

Each seed is generated, played with the live checks on, brought to rest by its ``liveness`` step,
and judged once more by the rules about what clients were promised.
A seed that fails is shrunk, and leaves a run folder that ``minicluster replay`` plays again.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from minicluster.actors.cluster.run_folder import stale_indexes, write_run
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.play.observations import observations_of
from minicluster.actors.play.player import (
    idle_faults,
    place_of,
    play_once,
    verdict_of_play,
)
from minicluster.durations import format_duration
from minicluster.errors import UserError, counted
from minicluster.scenario import Scenario, Step
from minicluster.scenario.actions.arguments import Milliseconds
from minicluster.scenario.coverage import Observation
from minicluster.scenario.nemesis import generate, seed_text
from minicluster.scenario.shrink import Shrunk, shrink
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.model import Verdict, gravest

SHRINK_REPLAYS = 150
SHRUNK_NAME = "nemesis-shrunk"
Draw = Callable[[int, Sequence[int]], Scenario]  # of a seed and a variation
STALE = "E41"  # an index of a controller is not that of its state


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of one seed.

    Shapes:  idle_faults: planted faults that never acted; variation: of the seed (``Draws``);
             observations: what the run went through (``scenario.coverage``); events: in its trace;
             trace_hash: empty where nobody compares it.
    Units:   cluster_ms is how long the cluster ran by its own clock.
    """

    seed: int
    scenario: Scenario
    failure: ScenarioFailure | None
    trace_hash: str
    events: int
    cluster_ms: int
    steps_done: int
    idle_faults: tuple[str, ...]
    path: Path | None = None
    variation: tuple[int, ...] = ()
    observations: frozenset[Observation] = frozenset()

    @property
    def name(self) -> str:
        """The seed as ``--seeds`` takes it: 7, or 7.2 for a variation."""
        return seed_text(self.seed, self.variation)

    @property
    def verdict(self) -> Verdict:
        """Invalid where a promise was broken, unknown where that did not become clear."""
        return verdict_of_play(self.failure, self.idle_faults)


@dataclass(slots=True)
class Tally:
    """The outcomes of a campaign so far, and its verdict: that of its worst seed."""

    seeds: int = 0
    failed: int = 0
    unknown: int = 0
    first: Outcome | None = None  # that broke a promise
    verdict: Verdict = Verdict.VALID

    def count(self, outcome: Outcome) -> None:
        """Count the outcome of one more seed."""
        self.seeds += 1
        self.failed += outcome.failure is not None
        self.unknown += outcome.verdict is Verdict.UNKNOWN
        self.verdict = gravest([self.verdict, outcome.verdict])
        if self.first is None and outcome.verdict is Verdict.INVALID:
            self.first = outcome

    def lines(self) -> list[str]:
        """The campaign in one line, and in another the first seed that broke a promise."""
        unknown = f", {self.unknown} unknown" if self.unknown else ""
        lines = [f"{counted(self.seeds, 'seed')}, {self.failed} failed{unknown}"]
        first = self.first
        if first is not None and first.failure is not None:
            broken = " and ".join(first.scenario.faults) or "a promise"
            verb = "killed" if first.scenario.faults else "broken"
            rule = first.failure.rule or first.failure.kind
            lines.append(f"{broken} {verb} first at seed {first.name} by {rule}")
        return lines


def play_seed(
    seed: int,
    faults: Sequence[str] = (),
    *,
    variation: tuple[int, ...] = (),
    runs: Path | None = None,
    draw: Draw = generate,
) -> Outcome:
    """Play the scenario of one seed; its run folder stays if there is a place for it."""
    scenario = replace(draw(seed, variation), faults=tuple(faults))
    outcome = outcome_of(scenario, runs=runs, with_observations=True, with_hash=False)
    gc.collect()  # a cluster is full of circles; otherwise those of many seeds would pile up
    return replace(outcome, variation=variation)


def outcome_of(
    scenario: Scenario,
    *,
    runs: Path | None = None,
    with_observations: bool = False,
    with_hash: bool = True,
) -> Outcome:
    """Play a scenario and check its logs at the end.

    The hash of the trace takes a sixth of the time of a short run; a run folder has it always.
    """
    done = 0

    def count(steps: int, _text: str, _now_ms: int) -> None:
        nonlocal done
        done = steps

    place = None if runs is None else place_of(scenario, runs)
    with_hash = with_hash or place is not None
    cluster, failure = play_once(scenario, count, at_end=broken_at_end, hashed=with_hash)
    return Outcome(
        seed=scenario.seed,
        scenario=scenario,
        failure=failure,
        trace_hash=cluster.trace_hash if with_hash else "",
        events=cluster.recorder.sequence,
        cluster_ms=cluster.now_ms,
        steps_done=done,
        idle_faults=idle_faults(cluster),
        path=None if place is None else write_run(cluster, place, failure=failure),
        observations=observations_of(cluster) if with_observations else frozenset(),
    )


def broken_at_end(cluster: RunningCluster) -> ScenarioFailure | None:
    """A promise that the state of a cluster at the end of its run breaks."""
    if stale := stale_indexes(cluster):
        nodes = ", ".join(map(str, stale))
        text = f"the indexes of {nodes} differ from those of the state"
        return ScenarioFailure("violated", text, STALE)
    return None


def culprits(outcome: Outcome) -> tuple[str, ...]:
    """Those of several planted faults that break the same promise in the same scenario alone."""
    failure, planted = outcome.failure, outcome.scenario.faults
    if failure is None or len(planted) < 2:
        return planted
    sufficient = []
    for fault in planted:
        alone = outcome_of(replace(outcome.scenario, faults=(fault,)), with_hash=False).failure
        if alone is not None and (alone.kind, alone.rule) == (failure.kind, failure.rule):
            sufficient.append(fault)
    return tuple(sufficient)


def shortest(
    outcome: Outcome,
    on_replay: Callable[[int, int], None] = lambda replays, fewest: None,
    in_time: Callable[[], bool] = lambda: True,
) -> Shrunk[Step]:
    """The fewest and simplest steps that still break the same promise.

    Shapes:  on_replay takes how many replays there were, and the fewest steps that fail so far;
             in_time: False ends the search with these.
    Errors:  ValueError for a seed that broke none.
    """
    assert outcome.failure is not None
    wanted = (outcome.failure.kind, outcome.failure.rule)
    replays, fewest = 0, len(outcome.scenario.steps)

    def still_fails(steps: Sequence[Step]) -> int | None:
        nonlocal replays, fewest
        replays += 1
        on_replay(replays, fewest)
        if not steps:
            return None
        try:
            replayed = outcome_of(_of_steps(outcome.scenario, steps), with_hash=False)
        except UserError:  # what remains makes no sense: a topic that nobody created
            return None
        if replayed.failure is None or (replayed.failure.kind, replayed.failure.rule) != wanted:
            return None
        fewest = min(fewest, len(steps))
        return min(len(steps), replayed.steps_done + 1)

    return shrink(
        outcome.scenario.steps, still_fails, groups=_nodes, simpler=_simpler,
        replays_max=SHRINK_REPLAYS, in_time=in_time,
    )  # fmt: skip


def _of_steps(scenario: Scenario, steps: Sequence[Step]) -> Scenario:
    """The scenario with some of its steps, numbered as a file has them: draws hang on numbers."""
    numbered = tuple(replace(step, number=n) for n, step in enumerate(steps, 1))
    return replace(scenario, name=SHRUNK_NAME, steps=numbered)


def _nodes(step: Step) -> Iterator[str]:
    """The names of the nodes and topics that a step is about."""
    arguments = {} if step.action is None else step.action.given
    for name in ("node", "broker", "src", "dst", "topic", "name"):
        value = arguments.get(name)
        if value is not None and value != "all":
            yield str(value)


def _simpler(step: Step) -> Iterator[Step]:
    """Shorter and rounder: half of each time, no lost tail."""
    action = step.action
    for name in ("lasting", "down"):
        value = getattr(action, name, None)
        if isinstance(value, Milliseconds) and value >= 2_000:
            half = Milliseconds(value // 2_000 * 1_000)
            yield replace(step, action=replace(action, **{name: half}))  # type: ignore[type-var]
    if getattr(action, "lose_tail", None) in ("torn", "unflushed"):
        yield replace(step, action=replace(action, lose_tail="none"))  # type: ignore[type-var]


def keep(outcome: Outcome, shrunk: Shrunk[Step] | None, runs: Path) -> Path:
    """Leave the run folder of a failed seed, or of its shortest form."""
    scenario = outcome.scenario
    if shrunk is not None:
        scenario = _of_steps(scenario, shrunk.steps)
    path = outcome_of(scenario, runs=runs).path
    assert path is not None
    return path


def outcome_line(outcome: Outcome) -> str:
    """An outcome in one line."""
    ran = format_duration(outcome.cluster_ms // 1_000 * 1_000)
    if outcome.failure is None and outcome.idle_faults:
        idle = ", ".join(outcome.idle_faults)
        return f"seed {outcome.name}: unknown, for {idle} was on but never acted in {ran}"
    if outcome.failure is None:
        return f"seed {outcome.name}: kept its promises over {ran}"
    first = outcome.failure.text.splitlines()[0]
    return f"seed {outcome.name}: {outcome.failure.kind} {outcome.failure.rule or ''} {first}"
