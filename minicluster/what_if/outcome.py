"""The outcome of a what-if: per stage and topic, over one seed or many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

from msgspec import field

from minicluster.values import Value
from minicluster.verify.evidence.scenario_failure import ScenarioFailure
from minicluster.verify.model import Verdict, gravest


class Level(IntEnum):
    """The availability of a partition; the highest level is the gravest.

    AT_RISK: the loss of one more in-sync replica rejects acks=all, or leaves no leader.
    UNDER_MIN_ISR: fewer in-sync replicas run than min.insync.replicas. NO_LEADER: no leader, or one
    whose process does not run.
    """

    FINE = 0
    AT_RISK = 1
    UNDER_MIN_ISR = 2
    NO_LEADER = 3


Triple = tuple[int, int, int]
"""Without leader, under min ISR, at risk."""
KINDS = ("without leader", "under min ISR", "at risk")
NAMES = ("no-leader", "under-min-isr", "at-risk")


class TopicOutcome(Value, kw_only=True):
    """The effect of a stage on the partitions of one topic, or of all.

    Shapes:  most: at one time; at_end: when the stage ended.
    Units:   longest_ms: of the partition that was so for the longest time, its times added up.
    """

    name: str
    partitions: int
    most: Triple
    at_end: Triple
    longest_ms: Triple

    @property
    def is_touched(self) -> bool:
        """Some partition was not fine."""
        return any(self.most)

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON has it."""
        content: dict[str, Any] = {"topic": self.name, "partitions": self.partitions}
        for place, name in enumerate(NAMES):
            content[name.replace("-", "_")] = {
                "most": self.most[place],
                "at_end": self.at_end[place],
                "longest_ms": self.longest_ms[place],
            }
        return content


class PartitionLeft(Value, kw_only=True):
    """A partition that is without leader or under min ISR when a stage ends."""

    name: str
    level: Level
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    down: tuple[int, ...]

    def __str__(self) -> str:
        leader = "none" if self.leader < 0 else str(self.leader)
        down = f", down {list(self.down)}" if self.down else ""
        return f"{self.name}: leader {leader}, ISR {list(self.isr)} of {list(self.replicas)}{down}"


class Stage(Value, kw_only=True):
    """One stage of one seed.

    Shapes:  series: the numbers of partitions from each moment on; left: the first of them.
    """

    text: str
    began_ms: int
    ended_ms: int
    all: TopicOutcome
    topics: tuple[TopicOutcome, ...]
    series: tuple[tuple[int, Triple], ...]
    left: tuple[PartitionLeft, ...]


class SeedOutcome(Value, kw_only=True):
    """The outcome of one seed; the first stage is the time before the scenario."""

    seed: int
    stages: tuple[Stage, ...]
    failure: ScenarioFailure | None = None
    trace_hash: str = ""


class WhatIf(Value, kw_only=True):
    """The outcome of all seeds.

    Shapes:  steps: the texts of the stages; started: the brokers that ran at first; model: how
             replicas were simulated.
    """

    log: str
    description: str
    steps: tuple[str, ...]
    seeds: tuple[SeedOutcome, ...]
    notes: tuple[str, ...] = ()
    repeat: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def verdict(self) -> Verdict:
        """The gravest verdict of a seed; a scenario that went as written is valid."""
        verdicts = [
            Verdict.VALID if seed.failure is None else seed.failure.verdict for seed in self.seeds
        ]
        return gravest(verdicts)

    def stages(self) -> list[StageOfAll]:
        """The stages over all seeds, that before the scenario first."""
        count = max((len(seed.stages) for seed in self.seeds), default=0)
        return [
            StageOfAll.of([seed for seed in self.seeds if len(seed.stages) > number], number)
            for number in range(count)
        ]

    def happened(self, kinds: Sequence[str]) -> bool:
        """Some partition was without leader, … in some stage of the scenario."""
        places = [NAMES.index(kind) for kind in kinds]
        return any(
            stage.all.most[place]
            for seed in self.seeds
            for stage in seed.stages[1:]
            for place in places
        )

    def to_dict(self) -> dict[str, Any]:
        """The outcome as JSON has it."""
        return {
            "log": self.log,
            "cluster": self.description,
            "verdict": str(self.verdict),
            "seeds": [seed.seed for seed in self.seeds],
            "config": dict(self.config),
            "notes": list(self.notes),
            "repeat": self.repeat,
            "failures": [
                {"seed": seed.seed, **seed.failure.to_dict()} for seed in self.seeds if seed.failure
            ],
            "stages": [stage.to_dict() for stage in self.stages()],
        }


class StageOfAll(Value, kw_only=True):
    """A stage over all seeds: of each number the worst, and the seed that is shown.

    Shapes:  worst: the stage of the gravest seed; least: the numbers of the mildest one.
    """

    text: str
    all: TopicOutcome
    least: TopicOutcome
    topics: tuple[TopicOutcome, ...]
    worst: Stage
    worst_seed: int
    seeds: int

    @classmethod
    def of(cls, seeds: Sequence[SeedOutcome], number: int) -> StageOfAll:
        """Sum up a stage."""
        stages = [seed.stages[number] for seed in seeds]
        by_name: dict[str, list[TopicOutcome]] = {}
        for stage in stages:
            for topic in stage.topics:
                by_name.setdefault(topic.name, []).append(topic)
        gravity = [(s.all.most, s.all.longest_ms, s.all.at_end) for s in stages]
        place = gravity.index(max(gravity))
        return cls(
            text=stages[0].text,
            all=_extreme([stage.all for stage in stages], max),
            least=_extreme([stage.all for stage in stages], min),
            topics=tuple(_extreme(by_name[name], max) for name in sorted(by_name)),
            worst=stages[place],
            worst_seed=seeds[place].seed,
            seeds=len(stages),
        )

    def to_dict(self) -> dict[str, Any]:
        """The stage as JSON has it."""
        return {
            "stage": self.text,
            "worst_seed": self.worst_seed,
            "worst": self.all.to_dict(),
            "mildest": self.least.to_dict(),
            "topics": [topic.to_dict() for topic in self.topics if topic.is_touched],
            "left": [str(partition) for partition in self.worst.left],
        }


def _extreme(outcomes: Sequence[TopicOutcome], choose: Any) -> TopicOutcome:
    """The extremes of each number."""

    def over(read: Any) -> Triple:
        first, second, third = (choose(read(outcome)[n] for outcome in outcomes) for n in range(3))
        return first, second, third

    return TopicOutcome(
        name=outcomes[0].name,
        partitions=choose(outcome.partitions for outcome in outcomes),
        most=over(lambda outcome: outcome.most),
        at_end=over(lambda outcome: outcome.at_end),
        longest_ms=over(lambda outcome: outcome.longest_ms),
    )
