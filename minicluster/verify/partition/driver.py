"""The driver of a partition's folds: which one gets an event, in which order, until when.

A partition is forgotten some time after its last replica is deleted; while a cluster runs, that is
all that bounds its folds. They know nothing of each other, nor of other partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from operator import itemgetter
from typing import Any

from minicluster.verify.histories.electable import commits_of_partitions
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import History, Row, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition import isr
from minicluster.verify.partition.event import PartitionEvent, Place
from minicluster.verify.partition.isr import IsrOfPartition
from minicluster.verify.partition.setting import Setting, SettingOfRun
from minicluster.verify.rules.rule import Rule, Said, rules_in

FOLDS = ((IsrOfPartition, rules_in(isr)),)
GONE_MAX = 1_000
"""Partitions without a replica that are kept while a cluster runs: a broker may bring one back."""


class Partition:
    """The folds of one partition, each with its rules, and which brokers have a replica."""

    def __init__(self, setting: Setting) -> None:
        self.folds = [(fold(setting), rules) for fold, rules in FOLDS]
        self.replicas: set[int] = set()


class Partitions:
    """The folds of all partitions.

    Shapes:  gone_max: how many without a replica are kept; None: all, as of a run that has ended.
    """

    def __init__(self, judge: Judge, setting: Setting, *, gone_max: int | None = None) -> None:
        self._judge, self._setting, self._gone_max = judge, setting, gone_max
        self._partitions: dict[Place, Partition] = {}
        self._gone: dict[Place, None] = {}  # those without a replica, in order

    def on_event(self, row: Row) -> None:
        """An event of a replica."""
        event = PartitionEvent(row)
        partition = self._partition(event.place)
        for fold, rules in partition.folds:
            self._hear(fold.on_event(event), rules)
        if event.kind != "delete":
            partition.replicas.add(event.broker)
            self._gone.pop(event.place, None)
            return
        partition.replicas.discard(event.broker)
        if not partition.replicas:
            self._on_gone(event.place)

    def on_commit(self, state: CommittedPartition) -> None:
        """A record about a partition is committed."""
        for fold, rules in self._partition((state.topic_id, state.partition)).folds:
            self._hear(fold.on_commit(state), rules)

    def at_end(self) -> None:
        """The run has ended."""
        for partition in self._partitions.values():
            self._end(partition)

    def _partition(self, place: Place) -> Partition:
        partition = self._partitions.get(place)
        if partition is None:
            partition = self._partitions[place] = Partition(self._setting)
        return partition

    def _on_gone(self, place: Place) -> None:
        self._gone[place] = None
        if self._gone_max is not None and len(self._gone) > self._gone_max:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            self._end(self._partitions.pop(oldest))

    def _end(self, partition: Partition) -> None:
        for fold, rules in partition.folds:
            self._hear(fold.at_end(), rules)

    def _hear(self, said: Said, rules: tuple[Rule, ...]) -> None:
        try:
            self._judge.hear(said)
        except (
            Exception
        ) as error:  # evidence that no run writes: the rules of this fold are unknown
            self._judge.fold_crashed(rules, error)


def judge_partitions(run: TracedRun, judge: Judge) -> None:
    """Judge the partitions of a run that has ended."""
    partitions = Partitions(judge, SettingOfRun(run))
    for what in _in_order(run):
        if isinstance(what, CommittedPartition):
            partitions.on_commit(what)
        else:
            partitions.on_event(what)
    partitions.at_end()


def _in_order(run: TracedRun) -> Iterator[CommittedPartition | Row]:
    """Events of replicas and commits of partitions; a replica's comes before a commit by it."""
    events = ((row["seq"], -1, row) for row in run.rows("partition_event"))
    both: Iterator[Any] = merge(events, run.context(commits_of_partitions), key=itemgetter(0, 1))
    for _, _, what in both:
        yield what


HISTORY = History(
    yields=(),
    reads=("partition_event", "publish", "raft_event"),
    fold=judge_partitions,
    rules=tuple(rule for _, rules in FOLDS for rule in rules),
)
