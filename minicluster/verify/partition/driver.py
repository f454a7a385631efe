"""The driver of a partition's folds: which one gets an event, in which order, until when.

A partition is forgotten some time after its last replica is deleted; while a cluster runs, that is
all that bounds its folds. They know the truth of their partition, and nothing of another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from typing import Any

from minicluster.trace import own_value
from minicluster.verify.histories.commits import commits_of_partitions
from minicluster.verify.histories.replica_logs import logs_at_end
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import History, Row, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition import isr, logs, replicas, served, truth
from minicluster.verify.partition.event import PartitionEvent, Place, Response
from minicluster.verify.partition.isr import IsrOfPartition
from minicluster.verify.partition.logs import AtEnd, LogsOfPartition
from minicluster.verify.partition.replicas import ReplicasOfPartition
from minicluster.verify.partition.served import ServedOfPartition
from minicluster.verify.partition.setting import Setting, SettingOfRun
from minicluster.verify.partition.topic_names import SERVED, topic_names
from minicluster.verify.partition.truth import ALWAYS_LOST, CLEANED, NO_EPOCH, Loss, PartitionTruth
from minicluster.verify.rules.rule import Rule, Said, rules_in

MODULES = (truth, isr, replicas, served, logs)
OF_TRUTH, OF_ISR, OF_REPLICAS, OF_SERVED, OF_LOGS = map(rules_in, MODULES)

GONE_MAX = 1_000
"""Partitions without a replica that are kept while a cluster runs: a broker may bring one back, and
responses with their records may be on their way."""


Losses = dict[Place, Loss]


class Partition:
    """One partition; each method says what its rules say, with the rules that are asked there."""

    def __init__(self, setting: Setting) -> None:
        self.topic = ""
        self.has_replica: set[int] = set()  # of the brokers
        self.truth = PartitionTruth(setting)
        self.isr = IsrOfPartition(setting)
        self.replicas = ReplicasOfPartition(setting, self.truth)
        self.served = ServedOfPartition()
        self.logs = LogsOfPartition() if setting.is_over else None  # all marks of all replicas

    def on_event(self, event: PartitionEvent) -> Iterator[tuple[Said, tuple[Rule, ...]]]:
        """An event of a replica; the truth comes first, which others read."""
        yield self.truth.on_event(event), OF_TRUTH
        yield self.isr.on_event(event), OF_ISR
        yield self.replicas.on_event(event), OF_REPLICAS
        yield self.served.on_event(event), OF_SERVED
        if self.logs is not None:
            yield self.logs.on_event(event), OF_LOGS

    def on_commit(self, state: CommittedPartition) -> Iterator[tuple[Said, tuple[Rule, ...]]]:
        """A record about the partition is committed."""
        yield self.truth.on_commit(state), OF_TRUTH
        yield self.isr.on_commit(state), OF_ISR

    def at_end(self) -> Iterator[tuple[Said, tuple[Rule, ...]]]:
        """There are no more events."""
        yield self.isr.at_end(), OF_ISR
        yield self.replicas.at_end(), OF_REPLICAS


class Partitions:
    """All partitions of a cluster, or of a run.

    Shapes:  gone_max: how many without a replica are kept; None: all, as of a run that has ended.
    """

    def __init__(self, judge: Judge, setting: Setting, *, gone_max: int | None = None) -> None:
        self._judge, self._setting, self._gone_max = judge, setting, gone_max
        self._partitions: dict[Place, Partition] = {}
        self._gone: dict[Place, None] = {}  # those without a replica, in order

    def on_event(self, row: Row) -> None:
        """An event of a replica, a row of ``partition_event``."""
        event = PartitionEvent(row)
        place = event.place
        partition = self._partition(place)
        partition.topic = event.topic
        self._hear(partition.on_event(event))
        if event.kind != "delete":
            partition.has_replica.add(event.broker)
            self._gone.pop(place, None)
        else:
            partition.has_replica.discard(event.broker)
            self._note_gone(place, partition)

    def on_commit(self, state: CommittedPartition) -> None:
        """A record about a partition is committed."""
        place = state.topic_id, state.partition
        if state.step.leaves_a_state:
            self._hear(self._partition(place).on_commit(state))
        elif place in self._partitions:
            # Its topic is deleted, perhaps before anybody had a replica.
            self._note_gone(place, self._partitions[place])

    def on_response(self, row: Row, topic_id: str | None) -> None:
        """A response to a consumer, a row of ``client_record``."""
        partition = None if topic_id is None else self._partitions.get((topic_id, row["part"]))
        if partition is not None:
            said = partition.served.on_response(Response(row, partition.topic))
            self._hear(iter([(said, OF_SERVED)]))

    def on_records(self, place: Place, known: AtEnd, offsets: Iterable[list[Row]]) -> None:
        """The records of all logs of a partition, rows of ``replica_log`` by offset."""
        logs = self._partition(place).logs
        if logs is not None:
            self._hear(iter([(logs.on_records(known, offsets), OF_LOGS)]))

    def at_end(self) -> None:
        """The run has ended."""
        for partition in self._partitions.values():
            self._hear(partition.at_end())

    @property
    def losses(self) -> Losses:
        """What each partition has lost, if it has."""
        return {
            place: partition.truth.loss
            for place, partition in self._partitions.items()
            if partition.truth.loss is not None
        }

    def _partition(self, place: Place) -> Partition:
        partition = self._partitions.get(place)
        if partition is None:
            partition = self._partitions[place] = Partition(self._setting)
        return partition

    def _note_gone(self, place: Place, partition: Partition) -> None:
        if partition.has_replica:
            return
        self._gone[place] = None
        if self._gone_max is not None and len(self._gone) > self._gone_max:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            self._hear(self._partitions.pop(oldest).at_end())

    def _hear(self, several: Iterator[tuple[Said, tuple[Rule, ...]]]) -> None:
        for said, rules in several:
            try:
                self._judge.hear(said)
            except Exception as error:  # evidence that no run writes: these rules are unknown
                self._judge.fold_crashed(rules, error)


def judge_partitions(run: TracedRun, judge: Judge) -> None:
    """Judge the partitions of a run that has ended."""
    partitions = _folded(run, judge)
    run.provide(losses, _losses(run, partitions))
    partitions.at_end()
    if judge.asks(OF_LOGS):
        _take_logs(run, partitions)


def losses(run: TracedRun) -> Losses:
    """Context: by topic id and partition, what a run has lost, or what nobody can know of it."""
    return _losses(run, _folded(run, Judge("", ())))


def _losses(run: TracedRun, partitions: Partitions) -> Losses:
    nobody_knows = {place: Loss(CLEANED, 0, 0, NO_EPOCH, [ALWAYS_LOST]) for place in run.cleaned}
    return partitions.losses | nobody_knows


def _folded(run: TracedRun, judge: Judge) -> Partitions:
    partitions = Partitions(judge, SettingOfRun(run))
    names = run.context(topic_names)
    for _, rank, what in _in_order(run):
        if rank == _RESPONSE:
            partitions.on_response(what, names.id_in(what))
        elif rank == _EVENT:
            partitions.on_event(what)
        else:
            partitions.on_commit(what)
    return partitions


def _take_logs(run: TracedRun, partitions: Partitions) -> None:
    """Read the logs as they lie on disk."""
    lost = run.context(losses)
    processes: dict[Place, dict[int, str | None]] = defaultdict(dict)
    numbered: dict[tuple[str, int], set[str | None]] = defaultdict(set)
    for log in run.context(logs_at_end):
        processes[log.topic_id, log.partition][log.broker] = log.incarnation
    for row in run.rows("history"):
        own = own_value(row["topic"], row["part"], row["op_id"])
        # A value that a test has chosen may be that of several records.
        if row["f"] == "send" and row["idempotent"] and row["value"] == own:
            numbered[row["topic"], row["part"]].add(own)
    by_place = groupby(
        run.by_record("replica_log"), lambda rows: (rows[0]["topic_id"], rows[0]["part"])
    )
    for place, offsets in by_place:
        states = run.timeline.partitions.get(place)
        first = next(offsets)
        known = AtEnd(
            loss=lost.get(place),
            state=states[-1] if states else None,
            processes=processes[place],
            numbered=numbered[first[0]["topic"], place[1]],
        )
        partitions.on_records(place, known, chain([first], offsets))


_RESPONSE, _EVENT, _COMMIT = range(3)


def _in_order(run: TracedRun) -> Iterator[tuple[int, int, Any]]:
    """Responses, events of replicas, commits of partitions: by their events, and in this order."""
    responses = (
        (row["seq"], _RESPONSE, row) for row in run.rows("client_record") if row["f"] in SERVED
    )
    events = ((row["seq"], _EVENT, row) for row in run.rows("partition_event"))
    commits = ((seq, _COMMIT, state) for seq, state in commits_of_partitions(run))
    return merge(responses, events, commits, key=itemgetter(0, 1))


HISTORY = History(
    yields=(),
    reads=("client_record", "history", "partition_event", "publish", "raft_event", "replica_log"),
    fold=judge_partitions,
    rules=(*OF_TRUTH, *OF_ISR, *OF_REPLICAS, *OF_SERVED, *OF_LOGS),
)
