"""A what-if: the cluster of a log, one disturbance after the other, and their effect on partitions.

Each stage performs its steps and is then watched for a while, so that sessions expire, leaders are
elected and replicas come back before the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from minicluster.actors.cluster.adoption import Adoption, read_log_end
from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.play.performer import Performer, StepFailed, created_by
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.actors.runtime import garbage
from minicluster.actors.runtime.runtime import ActorCrashed
from minicluster.errors import UserError, WaitTimeout, counted
from minicluster.scenario import Step, load_scenario
from minicluster.scenario.actions.arguments import Milliseconds
from minicluster.scenario.step_text import parse_step
from minicluster.values import Value, replace
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.what_if.availability import Availability
from minicluster.what_if.outcome import SeedOutcome, Stage, WhatIf

BEFORE = "before"
GARBAGE_OBJECTS = 100_000
SETTLED_WITHIN_MS = 120_000
ONLINE_PARTITIONS_MAX = 20_000  # beyond, the online rules take longer than the simulation
FILE_ENDS = (".yaml", ".yml", ".json")

OnStage = Callable[[int, int, str], None]
"""Seeds done, the seed that plays, the stage that begins."""


class PlannedStage(Value, kw_only=True):
    """A stage as it was written."""

    text: str
    steps: tuple[Step, ...]


def planned(scenario: Sequence[str]) -> tuple[PlannedStage, ...]:
    """The stages of a what-if: one for each step in words, and one for each scenario file.

    Errors:  UserError in one line for words that are not a step, or a file that is not a scenario.
    """
    stages: list[PlannedStage] = []
    number = 0
    for words in scenario:
        if words.endswith(FILE_ENDS):
            loaded = load_scenario(Path(words))
            text, steps = loaded.name, loaded.steps
        else:
            text, steps = words.strip(), (parse_step(words),)
        numbered = [replace(step, number=number + n) for n, step in enumerate(steps, 1)]
        number += len(numbered)
        stages.append(PlannedStage(text=text, steps=tuple(numbered)))
    return tuple(stages)


def what_if(
    log: Path,
    scenario: Sequence[str],
    *,
    seeds: Sequence[int],
    config: Mapping[str, Any],
    watch_ms: int,
    on_stage: OnStage = lambda done, seed, stage: None,
) -> WhatIf:
    """Play a scenario on the cluster of a log, once for each seed.

    Units:   watch_ms: how long each stage is watched after its last step, in the cluster's time.
    Errors:  UserError in one line: no log, a broken log, a node that the cluster does not have, …
    """
    stages = planned(scenario)
    on_stage(0, seeds[0], f"reading {log}")
    outcomes = []
    with garbage.rare(GARBAGE_OBJECTS):
        adoption = Adoption.of(read_log_end(log))
        for done, seed in enumerate(seeds):
            play = _Play(adoption, stages, seed, config, watch_ms)
            outcomes.append(play.run(partial(on_stage, done, seed)))
    return WhatIf(
        log=str(log),
        description=describe(adoption),
        steps=tuple(stage.text for stage in stages),
        seeds=tuple(outcomes),
        notes=tuple(notes_of(adoption, watch_ms)),
        config=config,
    )


def partitions_of(adoption: Adoption) -> int:
    """The number of partitions of a cluster."""
    return sum(len(topic) for topic in adoption.end.image.topics)


def describe(adoption: Adoption) -> str:
    """A cluster in a few words."""
    image = adoption.end.image
    topics = list(image.topics)
    racks = {broker.rack for broker in image.cluster.brokers.values()} - {None}
    words = [
        counted(len(adoption.broker_ids), "broker")
        + (f" in {counted(len(racks), 'rack')}" if racks else ""),
        counted(len(adoption.controller_ids), "controller"),
        f"{counted(len(topics), 'topic')} with {counted(partitions_of(adoption), 'partition')}",
        f"metadata.version {image.metadata_version}",
    ]
    return ", ".join(words)


def notes_of(adoption: Adoption, watch_ms: int) -> list[str]:
    """The conditions that a reader has to take into account."""
    down = [node for node in adoption.broker_ids if node not in adoption.starting]
    stopped = not adoption.continued()
    notes = [f"each stage is watched for {watch_ms / 1000:g}s of the cluster's time"]
    if stopped:
        notes.append("no broker is active where the log ends: all of them were started first")
    elif down:
        names = ("broker " if len(down) == 1 else "brokers ") + ", ".join(map(str, down))
        notes.append(f"fenced where the log ends, and so down: {names}")
    notes.append("partitions hold no records: catching up takes no time")
    if partitions_of(adoption) > ONLINE_PARTITIONS_MAX:
        notes.append(f"more than {ONLINE_PARTITIONS_MAX:,} partitions: no rule judges the run")
    return notes


class _Play:
    """One seed."""

    def __init__(
        self,
        adoption: Adoption,
        stages: Sequence[PlannedStage],
        seed: int,
        config: Mapping[str, Any],
        watch_ms: int,
    ) -> None:
        self.cluster = RunningCluster(
            adopted=adoption,
            seed=seed,
            config=config,
            online=partitions_of(adoption) <= ONLINE_PARTITIONS_MAX,
            run_id=f"what-if-{seed}",
        )
        self.availability = Availability(
            adoption.end.image,
            self.cluster.folds,
            self.cluster.starting,
            self.cluster.rt.now,
            int(self.cluster.config.static.get("min.insync.replicas", 1)),
        )
        self.cluster.checks = (self.availability,)
        self.cluster.on_process = self.availability.on_process
        steps = [step for stage in stages for step in stage.steps]
        self.performer = Performer(self.cluster, created=created_by(steps))
        self.stages, self.seed, self.watch_ms = stages, seed, watch_ms
        self.done: list[Stage] = []

    def run(self, on_stage: Callable[[str], None]) -> SeedOutcome:
        """Play every stage, unless one fails."""
        failure = None
        try:
            on_stage("starting the cluster")
            self._start()
            for stage in self.stages:
                on_stage(stage.text)
                self._stage(stage)
        except StepFailed as failed:
            failure = failed.failure
        except WaitTimeout as late:
            failure = ScenarioFailure("until", str(late))
        except ActorCrashed as crash:
            failure = ScenarioFailure("crash", str(crash))
        except InvariantViolated as violation:
            failure = ScenarioFailure("violated", str(violation), violation.findings[0].rule)
        finally:
            self.cluster.rt.close()
        return SeedOutcome(
            seed=self.seed,
            stages=tuple(self.done),
            failure=failure,
            trace_hash=self.cluster.trace_hash,
        )

    def _start(self) -> None:
        """Bring the cluster to rest: every replica that runs is in the ISR."""
        self.cluster.start()
        self.cluster.run_until(lambda: self.availability.is_in_order, SETTLED_WITHIN_MS)
        self.done.append(self.availability.end_stage(BEFORE))

    def _stage(self, stage: PlannedStage) -> None:
        self.availability.begin_stage()
        began_ms = self.cluster.now_ms
        for step in stage.steps:
            wait_ms = step.after_ms
            if step.at_ms is not None:
                wait_ms = max(0, began_ms + step.at_ms - self.cluster.now_ms)
            if wait_ms:
                self.cluster.run_for(Milliseconds(wait_ms))
            self._perform(step)
        self.cluster.run_for(Milliseconds(self.watch_ms))
        self.done.append(self.availability.end_stage(stage.text))

    def _perform(self, step: Step) -> None:
        outcome = self.performer.perform(step)
        try:
            waited = next(outcome)
            while True:
                waited = outcome.send(self.cluster.run_until(waited.condition, waited.within_ms))
        except StopIteration:
            return


def checked_settings(pairs: Sequence[str]) -> dict[str, str]:
    """Settings of the cluster from ``name=value`` words.

    Errors:  UserError for words without a name or a value.
    """
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise UserError(
                f"--config: {pair!r} is not name=value, such as replica.lag.time.max.ms=10s"
            )
        settings[name.strip()] = value.strip()
    return settings
