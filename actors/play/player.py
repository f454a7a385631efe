"""Playing a scenario: one step after the other on a cluster, then its run folder.

One step is performed by ``performer.py``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from minicluster.actors.cluster.judged_at_end import findings_about_clients
from minicluster.actors.cluster.run_folder import write_run
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.play.performer import Performer, StepFailed, created_by
from minicluster.actors.play.results import clients_result
from minicluster.actors.play.second_play import SecondPlay
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.actors.recording.run_place import (
    check_place,
    check_writable,
    escaped_name,
    holds_another,
)
from minicluster.actors.runtime.runtime import ActorCrashed
from minicluster.errors import NeverFired, WaitTimeout
from minicluster.scenario import Scenario, Step
from minicluster.scenario.actions.arguments import Milliseconds
from minicluster.values import Value, replace
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.model import LOST, Verdict, headline

OnStep = Callable[[int, str, int], None]
AtEnd = Callable[[RunningCluster], ScenarioFailure | None]


class Played(Value):
    """A run that has ended: its folder, its trace hash, and what went wrong, if anything.

    Shapes:  idle_faults: planted faults that never acted; beside: the folder that holds the run of
             another scenario of the same name, which stays.
    """

    path: Path
    trace_hash: str
    failure: ScenarioFailure | None = None
    idle_faults: tuple[str, ...] = ()
    beside: Path | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict of the play alone: unknown where a planted fault never acted."""
        return verdict_of_play(self.failure, self.idle_faults)


class PlayStopped(KeyboardInterrupt):
    """Ctrl-C came while a scenario was played; the message has the moment and the step.

    It stays what it was for those who stop at any Ctrl-C.
    """


def verdict_of_play(failure: ScenarioFailure | None, idle_faults: Sequence[str]) -> Verdict:
    """The verdict of a play alone, before anyone judges its evidence."""
    if failure is not None:
        return failure.verdict
    return Verdict.UNKNOWN if idle_faults else Verdict.VALID


def idle_faults(cluster: RunningCluster) -> tuple[str, ...]:
    """The planted faults of a cluster that never acted."""
    hits = cluster.recorder.fault_hits
    return tuple(fault for fault in cluster.faults.ever_on if not hits.get(fault))


def play(
    scenario: Scenario,
    *,
    runs: Path,
    seed: int | None = None,
    on_step: OnStep | None = None,
    twice: bool = False,
    repeat: str | None = None,
    at_end: AtEnd = lambda _: None,
) -> Played:
    """Play a scenario from its start to its end and leave its run folder.

    Shapes:  on_step(steps done, what comes now, cluster time in ms), for progress displays;
             twice: play it in another process as well, for the second trace hash, which rule X1
             compares (only a simulated run to which no client came promises the same); repeat: that
             hash, where it is there already; at_end: as in ``play_once``.
    Errors:  ScenarioError naming the step, for what the cluster rejects as it is written.
    """
    if seed is not None:
        scenario = replace(scenario, seed=seed)
    place = place_of(scenario, runs)
    check_writable(runs)
    with ExitStack() as ends:
        second = None
        if twice and scenario.runtime == "simulated" and not scenario.listeners:
            second = ends.enter_context(SecondPlay(scenario))
        cluster, failure = play_once(scenario, on_step, at_end=at_end)
        if second is not None and cluster.is_repeatable:
            if on_step is not None:
                on_step(len(scenario.steps), "ended; the second play goes on", cluster.now_ms)
            repeat = second.trace_hash()
    path = write_run(cluster, place, repeat=repeat, failure=failure)
    usual = runs / run_name(scenario)
    beside = None if place == usual else usual
    return Played(path, cluster.trace_hash, failure, idle_faults(cluster), beside)


def place_of(scenario: Scenario, runs: Path) -> Path:
    """The place for the run folder of a scenario: one that no other scenario's run has.

    Errors:  those of ``check_place``.
    """
    usual = place = runs / run_name(scenario)
    for number in itertools.count(2):
        check_place(place)
        if not holds_another(place, scenario.to_dict()):
            return place
        place = usual.with_name(f"{usual.name}-{number}")
    raise AssertionError  # never: numbers do not end


def play_once(
    scenario: Scenario,
    on_step: OnStep | None = None,
    *,
    at_end: AtEnd = lambda _: None,
    hashed: bool = True,
) -> tuple[RunningCluster, ScenarioFailure | None]:
    """Play a scenario and leave no folder: the cluster, stopped, and what went wrong.

    Shapes:  at_end looks at the cluster once all steps are done; hashed: its trace has a hash.
    Errors:  ScenarioError naming the step, for what the cluster rejects as it is written;
             PlayStopped for a Ctrl-C.
    """
    cluster = cluster_of(scenario)
    cluster.recorder.tables.hashed = hashed
    player = _Player(scenario, cluster, on_step or (lambda done, text, now_ms: None))
    failure = None
    try:
        player.start()
        player.play()
        cluster.check_clients()
        failure = at_end(cluster)
    except StepFailed as failed:
        failure = failed.failure
    except ActorCrashed as crash:
        failure = ScenarioFailure("crash", str(crash))
    except InvariantViolated as violation:
        failure = _violated(cluster, violation)
    except KeyboardInterrupt:
        raise PlayStopped(f"at {cluster.now_ms / 1000:.1f}s, {player.doing}") from None
    finally:
        cluster.rt.close()
    return cluster, failure or _never_fired(cluster) or unseen(cluster)


def _never_fired(cluster: RunningCluster) -> ScenarioFailure | None:
    """The failure of a run in which an answer had to act and has met no request."""
    try:
        cluster.check_fired()
    except NeverFired as error:
        return ScenarioFailure("expect", str(error))
    return None


def _violated(cluster: RunningCluster, violation: InvariantViolated) -> ScenarioFailure:
    """A promise that was broken; of acknowledged records that are lost, how many they are.

    A live check ends the run at the first leader that lacks some of them.
    """
    rule, text = violation.findings[0].rule, str(violation)
    if rule == LOST:
        lost = headline(findings_about_clients(cluster))
        text = text if lost is None else f"{lost}: {text}"
    return ScenarioFailure("violated", text, rule)


def unseen(cluster: RunningCluster) -> ScenarioFailure | None:
    """The failures of a run's recorder and live checks, which make it unknown."""
    problems = cluster.recorder.problems
    if not problems:
        return None
    return ScenarioFailure("unseen", "; ".join(problem.why for problem in problems))


def cluster_of(scenario: Scenario, **more: Any) -> RunningCluster:
    """The cluster that a scenario's header describes, not started yet.

    Shapes:  more: arguments of ``RunningCluster``, before the header's.
    """
    shape: dict[str, Any] = {
        "brokers": scenario.brokers,
        "controllers": scenario.controllers,
        "seed": scenario.seed,
        "metadata_version": scenario.metadata_version,
        "mode": scenario.mode,
        "inter_broker_protocol": scenario.inter_broker_protocol,
        "rules": scenario.rules,
        "faults": scenario.faults,
        "runtime": "threaded" if scenario.runtime == "threaded" else "simulated",
        "listeners": scenario.listeners,
        "pace": scenario.pace,
        "config": scenario.config,
        "scenario": scenario.to_dict(),
        "exercises": scenario.exercises,
        "run_id": run_name(scenario),
    }
    return RunningCluster(**(shape | more))


def run_name(scenario: Scenario) -> str:
    """The name of a run's folder: story, seed and planted faults.

    Errors:  UserError for a name that is too long for a folder.
    """
    story = escaped_name(scenario.name)
    return "-".join([story, str(scenario.seed), *scenario.faults])


class _Player:
    def __init__(self, scenario: Scenario, cluster: RunningCluster, on_step: OnStep) -> None:
        self.scenario = scenario
        self.cluster = cluster
        self.on_step = on_step
        self.performer = Performer(cluster, created=created_by(scenario.steps))
        self.began_ms = 0
        self.doing = "before its first step"

    def start(self) -> None:
        self.on_step(0, "starting the cluster", 0)
        try:
            self.cluster.start()
        except WaitTimeout as late:
            raise StepFailed(ScenarioFailure("until", str(late))) from None
        self.began_ms = self.cluster.now_ms

    def play(self) -> None:
        for done, step in enumerate(self.scenario.steps):
            self._wait_for_its_time(step)
            self.doing = f"in step {step.number} ({step.text})"
            self.on_step(done, step.text, self.cluster.now_ms)
            performance = self.performer.perform(step)
            try:
                waited = next(performance)
                while True:
                    has_held = self.cluster.run_until(waited.condition, waited.within_ms)
                    waited = performance.send(has_held)
            except StopIteration as ended:
                result = clients_result(ended.value.result)
            if result is not None:
                self.on_step(done, f"  {result}", self.cluster.now_ms)
            self.doing = f"after step {step.number}"
        self.on_step(len(self.scenario.steps), "ended", self.cluster.now_ms)

    def _wait_for_its_time(self, step: Step) -> None:
        wait_ms = step.after_ms
        if step.at_ms is not None:
            wait_ms = max(0, self.began_ms + step.at_ms - self.cluster.now_ms)
        if wait_ms:
            self.cluster.run_for(Milliseconds(wait_ms))
