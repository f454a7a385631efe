"""Each partition as spans of one state, and each broker as spans of active, fenced and so on."""

from __future__ import annotations

from typing import TypeVar

from msgspec import Struct, field

from minicluster.protocol.records import ConfigRecord
from minicluster.values import Value, replace
from minicluster.verify.evidence.run import Run
from minicluster.verify.histories.cluster import TOPIC_RESOURCE
from minicluster.verify.histories.min_isr import MinIsr
from minicluster.verify.histories.partitions import PARTITION, RECOVERING, REMOVE_TOPIC
from minicluster.verify.histories.timeline import (
    CommittedBroker,
    CommittedPartition,
    CommittedStates,
    CommittedTopic,
)
from minicluster.verify.judging import Judge
from minicluster.verify.log_fold import HeldLogs, LogFold, fold_logs
from minicluster.verify.promises import promises_of


class PartitionSpan(Value, kw_only=True):
    """One state of a partition.

    Shapes:  end: where the next begins, the partition was removed, or the log ends.
    """

    start: int
    end: int = -1
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    recovering: bool
    elr: tuple[int, ...] = ()
    min_isr: int = 1


class BrokerSpan(Value, kw_only=True):
    """One state of a broker: ``active``, ``fenced``, ``shutting down`` or ``unregistered``."""

    start: int
    end: int = -1
    state: str
    epoch: int


Span = TypeVar("Span", PartitionSpan, BrokerSpan)


class PartitionLine(Struct, kw_only=True):
    """A partition from its creation to its end."""

    topic: str
    partition: int
    end: int | None = None  # where its topic was removed
    spans: list[PartitionSpan] = field(default_factory=list)

    @property
    def name(self) -> str:
        """``topic-partition``."""
        return f"{self.topic}-{self.partition}"

    @property
    def brokers(self) -> tuple[int, ...]:
        """Every broker that ever had a replica."""
        return tuple(sorted({b for span in self.spans for b in span.replicas}))


class Timeline(Struct, kw_only=True):
    """All partitions and brokers of one run."""

    first: int
    end: int
    partitions: list[PartitionLine]
    brokers: dict[int, list[BrokerSpan]]


def timeline(run: Run) -> Timeline:
    """A run's committed log, or its log of ZooKeeper, as spans."""
    if run.on_zookeeper:
        return _of_znodes(run)
    first = run.committed[0].base_offset if run.committed else 0
    end = run.committed[-1].next_offset if run.committed else 1
    if run.start is not None:
        first = run.start.end_offset
        end = max(end, first + 1)
    spans = _Spans(first, MinIsr({} if run.header is None else run.header.config))
    fold = LogFold(Judge(run.name, ()), promises_of(run.rules), timeline=spans)
    fold_logs(fold, HeldLogs(run))
    return _complete(first, end, spans.lines, spans.brokers)


def _complete(
    first: int, end: int, lines: list[PartitionLine], brokers: dict[int, list[BrokerSpan]]
) -> Timeline:
    """All lines in order, their spans with their ends."""
    lines.sort(key=lambda line: (line.topic, line.partition, line.spans[0].start))
    for line in lines:
        line.spans = _with_ends(line.spans, end if line.end is None else line.end)
    with_ends = {broker: _with_ends(spans, end) for broker, spans in brokers.items()}
    return Timeline(first=first, end=end, partitions=lines, brokers=with_ends)


def _with_ends(spans: list[Span], last: int) -> list[Span]:
    ends = [*(span.start for span in spans[1:]), last]
    return [replace(span, end=end) for span, end in zip(spans, ends, strict=True)]


def _of_znodes(run: Run) -> Timeline:
    live: dict[tuple[str, int], PartitionLine] = {}
    every: list[PartitionLine] = []
    brokers: dict[int, list[BrokerSpan]] = {}
    for row in run.znode_rows("znode_states"):
        key = (row["topic"], row["part"])
        if row["kind"] == "Delete":
            live.pop(key).end = row["offset"]
            continue
        if key not in live:
            live[key] = PartitionLine(topic=row["topic"], partition=row["part"])
            every.append(live[key])
        span = PartitionSpan(
            start=row["offset"],
            leader=row["leader"],
            isr=tuple(row["isr"]),
            replicas=tuple(row["replicas"] or row["isr"]),
            leader_epoch=row["leader_epoch"],
            partition_epoch=row["version"] or 0,
            recovering=row["rec"] == 1,
        )
        live[key].spans.append(span)
    for row in run.znode_rows("znode_brokers"):
        state = "active" if row["kind"] == "Register" else "unregistered"
        span_of = BrokerSpan(start=row["offset"], state=state, epoch=row["epoch"] or -1)
        brokers.setdefault(row["broker"], []).append(span_of)
    return _complete(run.extent.first_offset, run.extent.end_offset, every, brokers)


class _Spans(CommittedStates):
    """Makes spans of the committed states of a log that begins at an offset."""

    def __init__(self, first: int, min_isr: MinIsr) -> None:
        super().__init__()
        self.lines: list[PartitionLine] = []
        self.brokers: dict[int, list[BrokerSpan]] = {}
        self._first = first
        self._min_isr = min_isr
        self._live: dict[tuple[str, int], PartitionLine] = {}

    def take_partition(self, state: CommittedPartition) -> None:
        """A record has changed a partition, or ended it with its topic."""
        key, after = (state.topic_id, state.partition), state.after
        line = self._live.get(key)
        if state.step.kind == REMOVE_TOPIC:
            if line is not None:
                self._live.pop(key).end = state.offset
            return
        if state.step.kind == PARTITION:
            line = PartitionLine(topic=state.topic or "?", partition=state.partition)
            self._live[key] = line
            self.lines.append(line)
        if line is None:
            return
        line.spans.append(
            PartitionSpan(
                start=max(state.offset, self._first),
                leader=after.leader,
                isr=after.isr,
                replicas=after.replicas,
                leader_epoch=state.leader_epoch,
                partition_epoch=state.partition_epoch,
                recovering=after.recovery == RECOVERING,
                elr=after.elr,
                min_isr=self._min_isr.of(line.topic, after.leader, len(after.replicas)),
            )
        )

    def take_broker(self, broker: CommittedBroker) -> None:
        """A record has changed a broker."""
        state, epoch = "unregistered", -1
        if broker.registered:
            state, epoch = "active", broker.epoch
            if not broker.active:
                state = "fenced" if broker.fenced else "shutting down"
        spans = self.brokers.setdefault(broker.broker, [])
        if not spans or (spans[-1].state, spans[-1].epoch) != (state, epoch):
            start = max(broker.offset, self._first)
            spans.append(BrokerSpan(start=start, state=state, epoch=epoch))

    def take_topic(self, topic: CommittedTopic) -> None:
        """A topic's config goes with it."""
        if topic.kind == REMOVE_TOPIC:
            self._min_isr.on_topic_removed(topic.name)

    def on_config(self, record: ConfigRecord) -> None:
        """Where min.insync.replicas changes for a partition, a span begins."""
        if not self._min_isr.on_config(record):
            return
        for line in self._live.values():
            if record.resource_type == TOPIC_RESOURCE and record.resource_name != line.topic:
                continue
            last = line.spans[-1]
            min_isr = self._min_isr.of(line.topic, last.leader, len(last.replicas))
            if last.min_isr != min_isr:
                start = max(self.offset, self._first)
                line.spans.append(replace(last, start=start, min_isr=min_isr))
