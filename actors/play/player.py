"""Playing a scenario: one step after the other on a cluster, then its run folder.

The player resolves selectors when a step fires and calls the cluster's own methods, so a file and
a test have the same vocabulary. A step whose selector names nobody changes nothing and adds a note.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from minicluster.actors.cluster.actions.performing import ms
from minicluster.actors.cluster.actions.requests import NoResponse
from minicluster.actors.cluster.mini_cluster import MiniCluster
from minicluster.actors.cluster.run_folder import write_run
from minicluster.actors.cluster.scenario_view import ScenarioView
from minicluster.actors.play.liveness import converge
from minicluster.actors.recording.followers import InvariantViolated
from minicluster.actors.recording.run_place import check_place, escaped_name
from minicluster.actors.runtime.runtime import ActorCrashed
from minicluster.durations import format_duration
from minicluster.errors import UserError, WaitTimeout
from minicluster.log.directory import RUN_NAME
from minicluster.log.errors import NotALog
from minicluster.scenario import Scenario, ScenarioError, Step, holds, select
from minicluster.scenario.actions.action import Action, arguments_of
from minicluster.scenario.actions.arguments import GROUPS, NODES, Milliseconds, Selector
from minicluster.scenario.actions.nodes import Liveness, Wait
from minicluster.scenario.actions.topics import CreateTopic, Produce
from minicluster.scenario.reading import scenario_of
from minicluster.scenario.scenario import Condition

OnStep = Callable[[int, str, int], None]


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason that a scenario failed."""

    kind: Literal["expect", "until", "unanswered", "crash", "violated", "stuck"]
    text: str
    rule: str | None = None  # the promise that was broken, where one was


@dataclass(frozen=True, slots=True)
class Played:
    """A run that has ended: its folder, its trace hash, and what went wrong, if anything."""

    path: Path
    trace_hash: str
    failure: Failure | None = None


def play(
    scenario: Scenario,
    *,
    runs: Path,
    seed: int | None = None,
    on_step: OnStep | None = None,
    twice: bool = False,
    repeat: str | None = None,
) -> Played:
    """Play a scenario from its start to its end and leave its run folder.

    Shapes:  on_step(steps done, what comes now, cluster time in ms), for progress displays;
             twice: play it again for the second trace hash, which rule X1 compares (only a
             simulated run to which no client came promises the same); repeat: that hash, where it
             is there already.
    Errors:  ScenarioError naming the step, for what the cluster refuses as it is written.
    """
    if seed is not None:
        scenario = replace(scenario, seed=seed)
    check_place(runs / run_name(scenario))
    cluster, failure = play_once(scenario, on_step)
    if twice and cluster.is_repeatable:
        again, _ = play_once(scenario)
        repeat = again.trace_hash
    path = save_run(cluster, scenario, runs, repeat=repeat)
    return Played(path, cluster.trace_hash, failure)


def save_run(
    cluster: MiniCluster, scenario: Scenario, runs: Path, *, repeat: str | None = None
) -> Path:
    """Leave the run folder of a cluster that has played a scenario."""
    return write_run(cluster, runs / run_name(scenario), repeat=repeat)


def play_once(
    scenario: Scenario,
    on_step: OnStep | None = None,
    *,
    at_end: Callable[[MiniCluster], Failure | None] = lambda _: None,
) -> tuple[MiniCluster, Failure | None]:
    """Play a scenario and leave no folder: the cluster, stopped, and what went wrong.

    Shapes:  at_end looks at the cluster once all steps are done.
    Errors:  ScenarioError naming the step, for what the cluster refuses as it is written.
    """
    cluster = cluster_of(scenario)
    player = _Player(scenario, cluster, on_step or (lambda done, text, now_ms: None))
    failure = None
    try:
        player.start()
        player.play()
        failure = at_end(cluster)
    except _Failed as failed:
        failure = failed.failure
    except ActorCrashed as crash:
        failure = Failure("crash", str(crash))
    except InvariantViolated as violation:
        failure = Failure("violated", str(violation), violation.findings[0].rule)
    finally:
        cluster.rt.close()
    return cluster, failure


def cluster_of(scenario: Scenario, **more: Any) -> MiniCluster:
    """The cluster that a scenario's header describes, not started yet.

    Shapes:  more: arguments of ``MiniCluster``, before the header's.
    """
    shape: dict[str, Any] = {
        "brokers": scenario.brokers,
        "controllers": scenario.controllers,
        "seed": scenario.seed,
        "metadata_version": scenario.metadata_version,
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
    return MiniCluster(**(shape | more))


def run_name(scenario: Scenario) -> str:
    """The name of a run's folder: story, seed and planted faults.

    Errors:  UserError for a name that is too long for a folder.
    """
    story = escaped_name(scenario.name)
    return "-".join([story, str(scenario.seed), *scenario.faults])


def replay_run(run: Path, *, runs: Path) -> tuple[str, Played]:
    """Play the scenario of a run folder again.

    Shapes:  -> the trace hash of the first run, and the run that has ended now.
    Errors:  UserError if the folder holds no run that a scenario made.
    """
    header_path = run / RUN_NAME
    try:
        header = json.loads(header_path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise NotALog(f"{run}: not a run folder: it has no {RUN_NAME}") from None
    except (OSError, ValueError) as error:
        raise NotALog(f"{header_path}: cannot be read: {error}") from None
    if not isinstance(header, dict) or not header.get("scenario"):
        raise UserError(f"{run}: no scenario made this run; only a scenario can be played again")
    scenario = scenario_of(header["scenario"], where=str(header_path))
    first = str(header.get("trace_hash"))
    return first, play(scenario, runs=runs / "replay", repeat=first)


class _Failed(Exception):
    def __init__(self, failure: Failure) -> None:
        self.failure = failure


class _Player:
    def __init__(self, scenario: Scenario, cluster: MiniCluster, on_step: OnStep) -> None:
        self.scenario = scenario
        self.cluster = cluster
        self.on_step = on_step
        self.view = ScenarioView(cluster)
        self.began_ms = 0

    def start(self) -> None:
        self.on_step(0, "starting the cluster", 0)
        try:
            self.cluster.start()
        except WaitTimeout as late:
            raise _Failed(Failure("until", str(late))) from None
        self.began_ms = self.cluster.now_ms

    def play(self) -> None:
        for done, step in enumerate(self.scenario.steps):
            self._wait_for_its_time(step)
            self.on_step(done, step.text, self.cluster.now_ms)
            self.cluster.step = step.number
            try:
                self._step(step)
            except NoResponse as error:
                raise _Failed(Failure("unanswered", f"step {step.number}: {error}")) from None
            except UserError as error:
                raise ScenarioError(f"step {step.number} ({step.text}): {error}") from None
        self.on_step(len(self.scenario.steps), "ended", self.cluster.now_ms)

    def _wait_for_its_time(self, step: Step) -> None:
        wait_ms = step.after_ms
        if step.at_ms is not None:
            wait_ms = max(0, self.began_ms + step.at_ms - self.cluster.now_ms)
        if wait_ms:
            self.cluster.run_for(Milliseconds(wait_ms))

    def _step(self, step: Step) -> None:
        if step.until is not None:
            self._until(step, step.until, step.within_ms)
        elif step.expect is not None:
            if not holds(step.expect.expression, self.view):
                text = f"step {step.number}: expected {step.expect}, but\n  "
                state = "\n  ".join(self.cluster.state())
                raise _Failed(Failure("expect", text + state))
        else:
            assert step.action is not None
            self._act(step, step.action)

    def _until(self, step: Step, condition: Condition, within_ms: int) -> None:
        held = self.cluster.run_until(lambda: holds(condition.expression, self.view), within_ms)
        if not held:
            text = f"step {step.number}: {condition} did not come within "
            state = "\n  ".join(self.cluster.state())
            raise _Failed(Failure("until", f"{text}{format_duration(within_ms)}\n  {state}"))

    # --- actions ----------------------------------------------------------------------------

    def _act(self, step: Step, action: Action) -> None:
        if isinstance(action, Liveness):
            self._converge(step, ms(action.bound))
            return
        if isinstance(action, Wait):
            return
        if isinstance(action, Produce):
            self._check_topic(step.number, action)
        resolved: dict[str, Any] = {}
        for name, argument in arguments_of(type(action)).items():
            value = getattr(action, name)
            if value is not None and argument.kind is NODES:
                resolved[name] = self._nodes(value)
                if not resolved[name]:
                    text = f"{argument.kind.written(value)} names nobody now"
                    self.cluster.note(action.method, [], "note", text)
                    return
            elif argument.kind is GROUPS:
                resolved[name] = tuple(self._nodes(group) for group in value)
        action = replace(action, **resolved)  # type: ignore[type-var]
        method = getattr(MiniCluster, action.method)
        try:
            method.perform(self.cluster, action)
        except UserError as error:
            if not step.may_fail:
                raise
            self.cluster.note(action.method, [], "note", str(error))

    def _check_topic(self, number: int, produce: Produce) -> None:
        """Refuse a name that no topic ever had; a wait for a deleted topic times out."""
        topic, partition = str(produce.topic), produce.partition
        found = self.cluster.image.topics.named(topic)
        if found is None:
            before = (step.action for step in self.scenario.steps if step.number < number)
            if topic not in [made.name for made in before if isinstance(made, CreateTopic)]:
                raise ScenarioError(f"there is no topic {topic}")
        elif partition not in found.partitions:
            count = len(found.partitions)
            raise ScenarioError(f"there is no partition {topic}-{partition}; {topic} has {count}")

    def _nodes(self, nodes: tuple[int | Selector, ...]) -> tuple[int, ...]:
        found: dict[int, None] = {}
        for node in nodes:
            selector = str(node) if isinstance(node, int) else node.expression
            found |= dict.fromkeys(select(selector, self.view))
        return tuple(found)

    def _converge(self, step: Step, bound_ms: int) -> None:
        """Undo every fault, start every node, and wait until G1-G7 hold."""
        cluster = self.cluster
        cluster.pause_load()
        cluster.heal()
        cluster.mend_disks()
        cluster.repair_all_dirs()
        for node in cluster.node_ids:
            if not cluster.is_running(node):
                cluster.restart(node)
            elif cluster.processes[node].paused:
                cluster.resume(node)
        cluster.publish_delay(cluster.broker_ids, "0s")
        broken = converge(cluster, bound_ms)
        if broken is not None:
            state = "\n  ".join(cluster.state())
            text = f"step {step.number}: {broken}\n  {state}"
            raise _Failed(Failure("stuck", text, broken.promise.id))
