"""Each partition as spans of one state, and each broker as spans of active, fenced and so on."""

from __future__ import annotations

from dataclasses import field, replace
from uuid import UUID

from minicluster.protocol import records as r
from minicluster.protocol.schema import Message
from minicluster.values import dataclass
from minicluster.verify.evidence.run import Run

MIN_ISR = "min.insync.replicas"
_OF_TOPIC, _OF_BROKERS = 2, 4  # types of a ConfigRecord's resource


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionSpan:
    """One state of a partition; it lasts until the next span begins."""

    start: int
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    leader_epoch: int
    partition_epoch: int
    recovering: bool
    elr: tuple[int, ...] = ()
    min_isr: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSpan:
    """One state of a broker: ``active``, ``fenced``, ``shutting down`` or ``unregistered``."""

    start: int
    state: str
    epoch: int


@dataclass(slots=True, kw_only=True)
class PartitionLine:
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


@dataclass(slots=True, kw_only=True)
class Timeline:
    """All partitions and brokers of one run."""

    first: int
    end: int
    partitions: list[PartitionLine]
    brokers: dict[int, list[BrokerSpan]]


def timeline(run: Run) -> Timeline:
    """Fold a run's committed log, or its log of ZooKeeper, into spans."""
    if run.on_zookeeper:
        return _of_znodes(run)
    config = {} if run.header is None else run.header.config
    reader = _Reader(int(config.get(MIN_ISR, 1)))
    first = run.committed[0].base_offset if run.committed else 0
    end = run.committed[-1].next_offset if run.committed else 1
    if run.start is not None:
        first = run.start.end_offset
        end = max(end, first + 1)
        for versioned in run.start.records:
            reader.take(versioned.record, first)
    for operation in run.history.operations if run.foldable else ():
        for entry in operation.entries:
            if entry.offset >= first:
                reader.take(entry.record, entry.offset)
    lines = sorted(reader.lines, key=lambda line: (line.topic, line.partition, line.spans[0].start))
    return Timeline(first=first, end=end, partitions=lines, brokers=reader.brokers)


def _of_znodes(run: Run) -> Timeline:
    reader, live = _Reader(), dict[tuple[str, int], PartitionLine]()
    for row in run.znode_rows("znode_states"):
        key = (row["topic"], row["part"])
        if row["kind"] == "Delete":
            live.pop(key).end = row["offset"]
            continue
        if key not in live:
            live[key] = PartitionLine(topic=row["topic"], partition=row["part"])
            reader.lines.append(live[key])
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
        reader.brokers.setdefault(row["broker"], []).append(span_of)
    lines = sorted(reader.lines, key=lambda line: (line.topic, line.partition, line.spans[0].start))
    extent = run.extent
    return Timeline(
        first=extent.first_offset, end=extent.end_offset, partitions=lines, brokers=reader.brokers
    )


class _Reader:
    def __init__(self, static_min_isr: int = 1) -> None:
        self._min_isr: dict[str, int] = {"": static_min_isr}  # by topic, "" the default
        self._static_min_isr = static_min_isr
        self.lines: list[PartitionLine] = []
        self.brokers: dict[int, list[BrokerSpan]] = {}
        self._names: dict[UUID, str] = {}
        self._live: dict[tuple[UUID, int], PartitionLine] = {}
        self._states: dict[int, tuple[bool, bool, int]] = {}  # fenced, shutting down, epoch

    def take(self, record: Message, offset: int) -> None:
        match record:
            case r.TopicRecord():
                self._names[record.topic_id] = record.name
            case r.PartitionRecord():
                self._partition(record, offset)
            case r.PartitionChangeRecord():
                self._change(record, offset)
            case r.ClearElrRecord():
                self._clear_elr(record, offset)
            case r.ConfigRecord() if record.name == MIN_ISR:
                self._configure(record, offset)
            case r.RemoveTopicRecord():
                for key in [key for key in self._live if key[0] == record.topic_id]:
                    self._live.pop(key).end = offset
            case r.RegisterBrokerRecord():
                state = (record.fenced, record.in_controlled_shutdown, record.broker_epoch)
                self._broker(record.broker_id, state, offset)
            case r.UnregisterBrokerRecord():
                self._states.pop(record.broker_id, None)
                spans = self.brokers.setdefault(record.broker_id, [])
                spans.append(BrokerSpan(start=offset, state="unregistered", epoch=-1))
            case r.FenceBrokerRecord():
                self._flags(record.id, offset, fenced=True)
            case r.UnfenceBrokerRecord():
                self._flags(record.id, offset, fenced=False)
            case r.BrokerRegistrationChangeRecord():
                self._flags(
                    record.broker_id,
                    offset,
                    fenced=_flag(record.fenced),
                    shutdown=_flag(record.in_controlled_shutdown),
                )
            case _:
                pass

    def _partition(self, record: r.PartitionRecord, offset: int) -> None:
        line = PartitionLine(
            topic=self._names.get(record.topic_id, "?"), partition=record.partition_id
        )
        line.spans.append(
            PartitionSpan(
                start=offset,
                leader=record.leader,
                isr=record.isr,
                replicas=record.replicas,
                leader_epoch=record.leader_epoch,
                partition_epoch=record.partition_epoch,
                recovering=record.leader_recovery_state == 1,
                elr=record.eligible_leader_replicas or (),
                min_isr=self._min_isr_of(line.topic),
            )
        )
        self._live[record.topic_id, record.partition_id] = line
        self.lines.append(line)

    def _change(self, record: r.PartitionChangeRecord, offset: int) -> None:
        line = self._live.get((record.topic_id, record.partition_id))
        if line is None:
            return
        last = line.spans[-1]
        named = record.leader != -2
        recovery = record.leader_recovery_state
        elr = record.eligible_leader_replicas
        line.spans.append(
            PartitionSpan(
                start=offset,
                leader=record.leader if named else last.leader,
                isr=last.isr if record.isr is None else record.isr,
                replicas=last.replicas if record.replicas is None else record.replicas,
                leader_epoch=last.leader_epoch + named,
                partition_epoch=last.partition_epoch + 1,
                recovering=last.recovering if recovery == -1 else recovery == 1,
                elr=last.elr if elr is None else elr,
                min_isr=last.min_isr,
            )
        )

    def _configure(self, record: r.ConfigRecord, offset: int) -> None:
        """Take a topic's min.insync.replicas, or the default of the cluster's brokers."""
        if record.resource_type == _OF_TOPIC:
            topic = record.resource_name
        elif record.resource_type == _OF_BROKERS and not record.resource_name:
            topic = ""
        else:
            return
        if record.value is not None:
            self._min_isr[topic] = int(record.value)
        elif topic:
            self._min_isr.pop(topic, None)
        else:
            self._min_isr[""] = self._static_min_isr
        for line in self._live.values():
            last, min_isr = line.spans[-1], self._min_isr_of(line.topic)
            if last.min_isr != min_isr and topic in ("", line.topic):
                line.spans.append(replace(last, start=offset, min_isr=min_isr))

    def _min_isr_of(self, topic: str) -> int:
        return self._min_isr.get(topic, self._min_isr[""])

    def _clear_elr(self, record: r.ClearElrRecord, offset: int) -> None:
        for line in self._live.values():
            if line.spans[-1].elr and record.topic_name in ("", line.topic):
                last = line.spans[-1]
                epoch = last.partition_epoch + 1
                line.spans.append(replace(last, start=offset, elr=(), partition_epoch=epoch))

    def _flags(
        self, broker: int, offset: int, *, fenced: bool | None, shutdown: bool | None = None
    ) -> None:
        was_fenced, was_shutdown, epoch = self._states.get(broker, (True, False, -1))
        state = (
            was_fenced if fenced is None else fenced,
            was_shutdown if shutdown is None else shutdown,
            epoch,
        )
        self._broker(broker, state, offset)

    def _broker(self, broker: int, flags: tuple[bool, bool, int], offset: int) -> None:
        self._states[broker] = flags
        fenced, shutdown, epoch = flags
        state = "fenced" if fenced else "shutting down" if shutdown else "active"
        spans = self.brokers.setdefault(broker, [])
        if not spans or (spans[-1].state, spans[-1].epoch) != (state, epoch):
            spans.append(BrokerSpan(start=offset, state=state, epoch=epoch))


def _flag(value: int) -> bool | None:
    return None if value == 0 else value > 0
