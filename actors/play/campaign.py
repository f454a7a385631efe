"""Campaigns over many seeds of the nemesis, and the shortest script that still breaks a promise.

Each seed is generated, played with the live checks on and brought to rest by its ``liveness`` step.
Then every rule judges its run, in this process, as ``verify`` would. A planted fault that acted and
that no rule has noticed is a survivor: the campaign proves nothing about the checks.
A seed that fails is shrunk, and leaves a run folder that ``minicluster replay`` plays again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from minicluster.actors.cluster.run_folder import stale_indexes, write_run
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.play.observations import observations_of
from minicluster.actors.play.player import (
    idle_faults,
    place_of,
    play_once,
    verdict_of_play,
)
from minicluster.actors.runtime import garbage
from minicluster.durations import format_duration
from minicluster.errors import Crash, MiniclusterError, UserError, counted
from minicluster.own_folders import temporary_folder
from minicluster.rules import Rules
from minicluster.scenario import Scenario, Step
from minicluster.scenario.actions.arguments import Milliseconds
from minicluster.scenario.coverage import Observation
from minicluster.scenario.nemesis import generate, seed_text
from minicluster.scenario.shrink import Shrunk, shrink
from minicluster.values import Value, replace
from minicluster.verify import verify
from minicluster.verify.evidence.scenario_failure import Kind, ScenarioFailure
from minicluster.verify.model import Verdict, gravest

SHRINK_REPLAYS = 150
SHRUNK_NAME = "nemesis-shrunk"
Draw = Callable[[int, Sequence[int]], Scenario]  # of a seed and a variation
_KINDS: tuple[tuple[Verdict, Kind], ...] = (
    (Verdict.INVALID, "violated"),
    (Verdict.UNKNOWN, "unseen"),
)
STALE = "E41"  # an index of a controller is not that of its state


class Outcome(Value, kw_only=True):
    """The outcome of one seed.

    Shapes:  idle_faults: planted faults that never acted; unseen_faults: those of which nobody
             knows whether they did, bugs of Kafka's own; survivors: those that acted, where nothing
             was noticed; variation: of the seed (``Draws``); observations: what the run went
             through (``scenario.coverage``); events: in its trace; trace_hash: empty where nobody
             compares it; crash: of this program, which ended the seed.
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
    unseen_faults: tuple[str, ...] = ()
    survivors: tuple[str, ...] = ()
    is_judged_later: bool = False  # its failure is what rules say of the whole run
    path: Path | None = None
    variation: tuple[int, ...] = ()
    observations: frozenset[Observation] = frozenset()
    crash: Crash | None = None

    @property
    def name(self) -> str:
        """The seed as ``--seeds`` takes it: 7, or 7.2 for a variation."""
        return seed_text(self.seed, self.variation)

    @property
    def not_noticed(self) -> tuple[str, ...]:
        """The planted faults that leave a run without a broken promise unknown."""
        return (*self.survivors, *self.idle_faults, *self.unseen_faults)

    @property
    def verdict(self) -> Verdict:
        """Invalid where a promise was broken, unknown where that did not become clear."""
        if self.crash is not None:
            return Verdict.UNKNOWN
        return verdict_of_play(self.failure, self.not_noticed)


class Tally(Struct):
    """The outcomes of a campaign so far, and its verdict: that of its worst seed."""

    seeds: int = 0
    failed: int = 0
    unknown: int = 0
    survived: int = 0
    crashed: int = 0
    first: Outcome | None = None  # that broke a promise
    verdict: Verdict = Verdict.VALID

    def count(self, outcome: Outcome) -> None:
        """Count the outcome of one more seed."""
        self.seeds += 1
        self.failed += outcome.failure is not None
        self.survived += bool(outcome.survivors)
        self.crashed += outcome.crash is not None
        known_why = outcome.survivors or outcome.crash is not None
        self.unknown += outcome.verdict is Verdict.UNKNOWN and not known_why
        self.verdict = gravest([self.verdict, outcome.verdict])
        if self.first is None and outcome.verdict is Verdict.INVALID:
            self.first = outcome

    def lines(self) -> list[str]:
        """The campaign in one line, and in another the first seed that broke a promise."""
        survived = f", {self.survived} with a survivor" if self.survived else ""
        unknown = f", {self.unknown} unknown" if self.unknown else ""
        crashed = f", {counted(self.crashed, 'internal error')}" if self.crashed else ""
        seeds = counted(self.seeds, "seed")
        lines = [f"{seeds}, {self.failed} failed{survived}{unknown}{crashed}"]
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
    """Play and judge the scenario of one seed; its run folder stays if there is a place for it.

    A fault of this program ends its seed alone: the others still show what they have to.
    """
    scenario = replace(draw(seed, variation), faults=tuple(faults))
    try:
        outcome = outcome_of(scenario, runs=runs, with_observations=True, with_hash=False)
    except (MiniclusterError, OSError):
        raise
    except Exception as error:
        outcome = Outcome(
            seed=seed,
            scenario=scenario,
            failure=None,
            trace_hash="",
            events=0,
            cluster_ms=0,
            steps_done=0,
            idle_faults=(),
            crash=Crash(error),
        )
    garbage.collect()
    return replace(outcome, variation=variation)


def outcome_of(
    scenario: Scenario,
    *,
    runs: Path | None = None,
    with_observations: bool = False,
    with_hash: bool = True,
    rules: Sequence[str] | None = None,
) -> Outcome:
    """Play a scenario, and judge its run by all rules where none has ended it.

    The hash of the trace takes a sixth of the time of a short run; a run folder has it always.

    Shapes:  rules: ids of those that judge the run once it has ended; None: all.
    """
    done = 0

    def count(steps: int, _text: str, _now_ms: int) -> None:
        nonlocal done
        done = steps

    place = None if runs is None else place_of(scenario, runs)
    with_hash = with_hash or place is not None
    cluster, failure = play_once(scenario, count, at_end=broken_at_end, hashed=with_hash)
    path = None if place is None else write_run(cluster, place, failure=failure)
    is_judged_later = False
    if failure is None or failure.is_unknown:
        judged = _judged(cluster, path, rules)
        is_judged_later = judged is not None and (failure is None or not judged.is_unknown)
        failure = judged if is_judged_later else failure
    idle = idle_faults(cluster)
    acted = [fault for fault in cluster.faults.ever_on if fault not in idle]
    return Outcome(
        seed=scenario.seed,
        scenario=scenario,
        failure=failure,
        trace_hash=cluster.trace_hash if with_hash else "",
        events=cluster.recorder.sequence,
        cluster_ms=cluster.now_ms,
        steps_done=done,
        idle_faults=idle,
        unseen_faults=tuple(fault for fault in scenario.faults if fault in Rules.zoo()),
        survivors=() if failure is not None else tuple(acted),
        is_judged_later=is_judged_later,
        path=path,
        observations=observations_of(cluster) if with_observations else frozenset(),
    )


def broken_at_end(cluster: RunningCluster) -> ScenarioFailure | None:
    """A promise that the state of a cluster at the end of its run breaks."""
    if stale := stale_indexes(cluster):
        nodes = ", ".join(map(str, stale))
        text = f"the indexes of {nodes} differ from those of the state"
        return ScenarioFailure("violated", text, STALE)
    return None


def _judged(
    cluster: RunningCluster, path: Path | None, rules: Sequence[str] | None
) -> ScenarioFailure | None:
    """The first promise that a run breaks which has ended.

    Shapes:  path: of its folder, None: there is none yet.
    """
    if rules is not None and not rules:
        return None
    with temporary_folder("campaign") as folder:
        if path is None:
            # Not in the folder itself, which is locked while it is there.
            path = write_run(cluster, folder.path / "runs" / "run", brokers=False)
        report = verify(path, engine="process", rules=rules)
    for verdict, kind in _KINDS:
        for result in report.rules:
            if result.verdict is verdict:
                return ScenarioFailure(kind, result.first, result.id)
    return None


def culprits(outcome: Outcome) -> tuple[str, ...]:
    """Those of several planted faults that break the same promise in the same scenario alone."""
    failure, planted = outcome.failure, outcome.scenario.faults
    if failure is None or len(planted) < 2:
        return planted
    sufficient = []
    for fault in planted:
        scenario = replace(outcome.scenario, faults=(fault,))
        alone = outcome_of(scenario, with_hash=False, rules=_sought(outcome)).failure
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
    sought = _sought(outcome)
    replays, fewest = 0, len(outcome.scenario.steps)

    def still_fails(steps: Sequence[Step]) -> int | None:
        nonlocal replays, fewest
        replays += 1
        on_replay(replays, fewest)
        if not steps:
            return None
        try:
            scenario = _of_steps(outcome.scenario, steps)
            replayed = outcome_of(scenario, with_hash=False, rules=sought)
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


def _sought(outcome: Outcome) -> tuple[str, ...]:
    """The rules that judge a run which is to break the same promise; none if it ends a run."""
    rule = None if outcome.failure is None else outcome.failure.rule
    return (rule,) if outcome.is_judged_later and rule is not None else ()


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
    path = outcome_of(scenario, runs=runs, rules=()).path
    assert path is not None
    return path


def outcome_line(outcome: Outcome) -> str:
    """An outcome in one line."""
    if outcome.crash is not None:
        return f"seed {outcome.name}: {outcome.crash.line}"
    ran = format_duration(outcome.cluster_ms // 1_000 * 1_000)
    if outcome.survivors:
        survivors = ", ".join(outcome.survivors)
        return f"seed {outcome.name}: a survivor: {survivors} acted in {ran}, and no rule noticed"
    if outcome.failure is None and outcome.idle_faults:
        idle = ", ".join(outcome.idle_faults)
        return f"seed {outcome.name}: unknown, for {idle} was on but never acted in {ran}"
    if outcome.failure is None and outcome.unseen_faults:
        bugs = ", ".join(outcome.unseen_faults)
        return f"seed {outcome.name}: unknown, for nothing shows whether {bugs} acted in {ran}"
    if outcome.failure is None:
        return f"seed {outcome.name}: kept its promises over {ran}"
    first = outcome.failure.text.splitlines()[0]
    return f"seed {outcome.name}: {outcome.failure.kind} {outcome.failure.rule or ''} {first}"
