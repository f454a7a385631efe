"""The driver of a partition's folds: which one gets an event, in which order, until when.

A partition is forgotten some time after its last replica is deleted; while a cluster runs, that is
all that bounds its folds. They know the truth of their partition, and nothing of another one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import groupby
from math import inf
from operator import itemgetter
from typing import Any, Protocol

from minicluster.trace import own_value
from minicluster.verify.exchange.controller import a_rejected_alter_partition_writes_nothing
from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.histories.commits import commits_of_partitions
from minicluster.verify.histories.replica_logs import ended_logs, logs_at_end
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import History, Row, TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.partition import applied, clients, isr, logs, replicas, served, truth
from minicluster.verify.partition.applied import AppliedOfPartition
from minicluster.verify.partition.clients import ClientsOfPartition, LastLeader
from minicluster.verify.partition.event import (
    SERVED,
    PartitionEvent,
    Place,
    Response,
    fetches_in,
)
from minicluster.verify.partition.isr import IsrOfPartition
from minicluster.verify.partition.logs import NOBODY, AtEnd, LogsOfPartition, ProducerBatch
from minicluster.verify.partition.replicas import ReplicasOfPartition
from minicluster.verify.partition.served import (
    ServedOfPartition,
    fetches_with_another_leader_epoch_are_rejected,
)
from minicluster.verify.partition.setting import Setting, SettingOfRun
from minicluster.verify.partition.truth import CLEANED, NO_EPOCH, Loss, PartitionTruth
from minicluster.verify.rules.rule import Rule, Said, rules_in

MODULES = (truth, isr, replicas, served, applied, logs, clients)
OF_TRUTH, OF_ISR, OF_REPLICAS, OF_SERVED, OF_APPLIED, OF_LOGS, OF_CLIENTS = map(rules_in, MODULES)
OF_ISR += (a_rejected_alter_partition_writes_nothing,)

GONE_MAX = 1_000
"""Partitions without a replica that are kept while a cluster runs: a broker may bring one back, and
responses with their records may be on their way."""


Losses = dict[Place, Loss]


class Fold(Protocol):
    """The knowledge of one subject in a partition."""

    def on_event(self, event: PartitionEvent, /) -> Said:
        """An event of a replica."""


class PartitionFolds:
    """One partition.

    Shapes:  folds: in the order in which they take an event, each with the rules that it asks; the
             truth comes first, which others read.
    """

    def __init__(self, setting: Setting, place: Place) -> None:
        self.topic = ""
        self.has_replica: set[int] = set()  # of the brokers
        self.truth = PartitionTruth(setting)
        self.isr = IsrOfPartition(setting)
        self.replicas = ReplicasOfPartition(setting, self.truth)
        self.served = ServedOfPartition()
        # Of a run that has ended: all of its states, all marks of all replicas, all that clients
        # know.
        self.applied = AppliedOfPartition(setting, place) if setting.is_over else None
        self.logs = LogsOfPartition() if setting.is_over else None
        self.clients = ClientsOfPartition() if setting.is_over else None
        self.folds: list[tuple[Fold, tuple[Rule, ...]]] = [
            (self.truth, OF_TRUTH),
            (self.isr, OF_ISR),
            (self.replicas, OF_REPLICAS),
            (self.served, OF_SERVED),
        ]
        if self.applied is not None and self.logs is not None and self.clients is not None:
            self.folds += [
                (self.applied, OF_APPLIED),
                (self.logs, OF_LOGS),
                (self.clients, OF_CLIENTS),
            ]


class Partitions:
    """All partitions of a cluster, or of a run.

    Shapes:  by_place: the partitions, by topic id and number. gone_max: how many without a replica
             are kept; None: all, as of a run that has ended.
    """

    def __init__(self, judge: Judge, setting: Setting, *, gone_max: int | None = None) -> None:
        self.by_place: dict[Place, PartitionFolds] = {}
        self._judge, self._setting, self._gone_max = judge, setting, gone_max
        self._gone: dict[Place, None] = {}  # those without a replica, in order
        self._ids: dict[tuple[str, int], str] = {}  # of the topic that acknowledged last, by name
        self._numbered: dict[tuple[str, int], set[str | None]] = defaultdict(set)

    def on_event(self, row: Row) -> None:
        """An event of a replica, a row of ``partition_event``."""
        event = PartitionEvent(row)
        place = event.place
        partition = self._partition(place)
        partition.topic = event.topic
        for fold, rules in partition.folds:
            try:
                self._judge.hear(fold.on_event(event))
            except Exception as error:
                self._judge.fold_crashed(rules, error)
        if event.kind == "ack":
            self._ids[event.topic, event.part] = event.topic_id
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
            partition = self._partition(place)
            self._hear(OF_TRUTH, partition.truth.on_commit, state)
            self._hear(OF_ISR, partition.isr.on_commit, state)
            if partition.applied is not None:
                self._hear(OF_APPLIED, partition.applied.on_commit, state)
        elif place in self.by_place:
            # Its topic is deleted, perhaps before anybody had a replica.
            self._note_gone(place, self.by_place[place])

    def on_response(self, row: Row) -> None:
        """A response to a client about a partition, a row of ``client_record``."""
        partition = self.by_place.get((row["topic_id"], row["part"]))
        if partition is None:
            return
        if row["f"] in SERVED:
            response = Response(row, partition.topic)
            self._hear(OF_SERVED, partition.served.on_response, response)
        if partition.clients is not None:
            self._hear(OF_CLIENTS, partition.clients.on_response, row, partition.topic)

    def on_own_client(self, row: Row) -> None:
        """The cluster's own client has done something, a row of ``history``.

        It names the topic: the partition's last acknowledgement has the id of the topic that had
        the name.
        """
        if row["f"] != "send":
            return
        place = row["topic"], row["part"]
        # A value that a test has chosen may be that of several records.
        if row["idempotent"] and row["value"] == own_value(*place, row["op_id"]):
            self._numbered[place].add(row["value"])
        topic_id = self._ids.get(place)
        partition = None if topic_id is None else self.by_place.get((topic_id, row["part"]))
        if partition is not None and partition.clients is not None:
            self._hear(OF_CLIENTS, partition.clients.on_own_client, row)

    def on_fetch(self, row: Row) -> None:
        """A broker handles a Fetch, a row of ``rpc``."""
        for topic_id, fetch in fetches_in(Exchange(row)):
            partition = self.by_place.get((topic_id, fetch.part))
            if partition is not None:
                take = partition.served.on_fetch
                self._hear(OF_SERVED, take, fetch, request=fetch.request)

    def on_kept(self, rows: Iterable[Row]) -> None:
        """The replicas that brokers had in the end, each by its first row of ``replica_log``.

        A process that shows no event of any replica has not caught up since it came back: what
        lies on its disk may have been taken from it meanwhile, and counts as no stray yet (E37).
        """
        folds = [one.applied for one in self.by_place.values() if one.applied is not None]
        shown = {process for fold in folds for process in fold.processes}
        for row in rows:
            if row["incarnation"] is not None and (row["broker"], row["incarnation"]) in shown:
                kept = PartitionEvent({**row, "kind": "kept"})
                fold = self._partition(kept.place).applied
                if fold is not None:
                    self._hear(OF_APPLIED, fold.on_kept, kept)

    def at_end(self) -> None:
        """The run has ended."""
        for partition in self.by_place.values():
            self._end(partition)

    def on_logs(self, place: Place, known: AtEnd, offsets: Iterable[list[Row]]) -> None:
        """The records of all logs of a partition, rows of ``replica_log`` by offset."""
        partition = self._partition(place)
        known.numbered = self._numbered[partition.topic, place[1]]
        logs, clients = partition.logs, partition.clients
        if logs is None or clients is None:
            return
        logs.on_logs(known)
        clients.on_logs(known)
        for rows in offsets:
            self._hear(OF_LOGS, logs.on_offset, rows)
            self._hear(OF_CLIENTS, clients.on_offset, rows)
        self._hear(OF_LOGS, logs.at_end)
        self._hear(OF_CLIENTS, clients.at_end)

    @property
    def clients(self) -> Mapping[Place, ClientsOfPartition]:
        """What clients know of each partition of a run that has ended."""
        folds = ((place, partition.clients) for place, partition in self.by_place.items())
        return {place: clients for place, clients in folds if clients is not None}

    @property
    def losses(self) -> Losses:
        """What each partition has lost, if it has."""
        return {
            place: partition.truth.loss
            for place, partition in self.by_place.items()
            if partition.truth.loss is not None
        }

    def _partition(self, place: Place) -> PartitionFolds:
        partition = self.by_place.get(place)
        if partition is None:
            partition = self.by_place[place] = PartitionFolds(self._setting, place)
        return partition

    def _note_gone(self, place: Place, partition: PartitionFolds) -> None:
        if partition.has_replica:
            return
        self._gone[place] = None
        if self._gone_max is not None and len(self._gone) > self._gone_max:
            oldest = next(iter(self._gone))
            del self._gone[oldest]
            self._end(self.by_place.pop(oldest))

    def _end(self, partition: PartitionFolds) -> None:
        """There are no more events of a partition."""
        self._hear(OF_ISR, partition.isr.at_end)
        self._hear(OF_REPLICAS, partition.replicas.at_end)

    def _hear(
        self, rules: tuple[Rule, ...], take: Callable[..., Said], *what: Any, request: int = -1
    ) -> None:
        """Let a fold take something, and hear what the rules say that it asks."""
        try:
            self._judge.hear(take(*what), request=request)
        except Exception as error:  # evidence that no run writes: these rules are unknown
            self._judge.fold_crashed(rules, error)


def judge_partitions(run: TracedRun, judge: Judge) -> None:
    """Judge the partitions of a run that has ended."""
    run.provide(ended_partitions, _folded(run, judge))


def ended_partitions(run: TracedRun) -> Partitions:
    """Context: all partitions of a run that has ended."""
    return _folded(run, Judge("", ()))


def last_leaders(run: TracedRun) -> dict[Place, LastLeader]:
    """Context: the last leader of each partition."""
    folds = run.context(ended_partitions).clients
    return {place: known.leader for place, known in folds.items() if known.leader is not None}


def losses(run: TracedRun) -> Losses:
    """Context: by topic id and partition, what a run has lost, or what nobody can know of it."""
    return _losses(run, run.context(ended_partitions))


def _losses(run: TracedRun, partitions: Partitions) -> Losses:
    nobody_knows = {place: Loss(CLEANED, 0, 0, NO_EPOCH) for place in run.cleaned}
    return partitions.losses | nobody_knows


def _folded(run: TracedRun, judge: Judge) -> Partitions:
    partitions = Partitions(judge, SettingOfRun(run))
    take: Mapping[int, Callable[[Any], None]] = {
        _RESPONSE: partitions.on_response,
        _EVENT: partitions.on_event,
        _FETCH: partitions.on_fetch,
        _COMMIT: partitions.on_commit,
        _OWN_CLIENT: partitions.on_own_client,
    }
    of_fetches = judge.asks([fetches_with_another_leader_epoch_are_rejected])
    for _, kind, what in _in_order(run, of_fetches=of_fetches):
        take[kind](what)
    partitions.at_end()
    partitions.on_kept(run.context(ended_logs))
    _take_logs(run, partitions)
    return partitions


_RESPONSE, _EVENT, _FETCH, _COMMIT, _OWN_CLIENT = range(5)


def _in_order(run: TracedRun, *, of_fetches: bool) -> Iterator[tuple[float, int, Any]]:
    """The parts of partitions by their events; one event goes to them in this order."""
    responses = ((row["seq"], _RESPONSE, row) for row in run.rows("client_record"))
    events = ((row["seq"], _EVENT, row) for row in run.rows("partition_event"))
    fetches = (
        (row["handle_seq"], _FETCH, row)
        for row in (run.rows("rpc", by="handle_seq") if of_fetches else ())
        if row["api"] == "Fetch" and row["resp_seq"] is not None and row["handle_seq"] is not None
    )
    commits = ((seq, _COMMIT, state) for seq, state in commits_of_partitions(run))
    own = (
        (inf if row["complete_seq"] is None else row["complete_seq"], _OWN_CLIENT, row)
        for row in run.rows("history", by="complete_seq")
    )
    return merge(responses, events, fetches, commits, own, key=itemgetter(0, 1))


def _take_logs(run: TracedRun, partitions: Partitions) -> None:
    """Read the logs as they lie on disk; partitions of which no log has a record come last."""
    lost = _losses(run, partitions)
    processes: dict[Place, dict[int, str | None]] = defaultdict(dict)
    for log in run.context(logs_at_end):
        processes[log.topic_id, log.partition][log.broker] = log.incarnation
    batches: dict[Place, dict[int, list[ProducerBatch]]] = defaultdict(lambda: defaultdict(list))
    for row in run.rows("log_batch", by="base_offset"):
        if row["last_offset"] is not None:
            whose = row["producer_id"] if row["marker"] is None else NOBODY
            batch = ProducerBatch(row["base_offset"], row["last_offset"], whose)
            batches[row["topic_id"], row["part"]][row["broker"]].append(batch)

    def known(place: Place) -> AtEnd:
        states = run.timeline.partitions.get(place)
        state = states[-1] if states else None
        return AtEnd(lost.get(place), state, processes[place], batches[place])

    without_records = dict.fromkeys(partitions.by_place)
    by_place = groupby(
        run.by_record("replica_log"), lambda rows: (rows[0]["topic_id"], rows[0]["part"])
    )
    for place, offsets in by_place:
        partitions.on_logs(place, known(place), offsets)
        without_records.pop(place, None)
    for place in without_records:
        partitions.on_logs(place, known(place), ())


HISTORY = History(
    yields=(),
    reads=(
        "client_record",
        "history",
        "log_batch",
        "partition_event",
        "publish",
        "raft_event",
        "replica_log",
        "rpc",
    ),
    fold=judge_partitions,
    rules=(*OF_TRUTH, *OF_ISR, *OF_REPLICAS, *OF_SERVED, *OF_APPLIED, *OF_LOGS, *OF_CLIENTS),
)
