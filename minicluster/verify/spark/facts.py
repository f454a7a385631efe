"""The committed log as tables: one row for what one record does to one key.

A record that touches several partitions (a removed topic, cleared ELR) becomes one row for each.
Each row carries what it must be read under: the metadata.version and the ELR mode at its offset,
the effective min.insync.replicas of its topic, and the end of its operation. Those are functions of
the offset, so they are worked out here, once, in one pass; everything a rule judges is left to SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import pyarrow as pa

from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.metadata.image.configs import MIN_ISR
from minicluster.protocol import records as r
from minicluster.protocol.schema import Message
from minicluster.protocol.uuids import format_uuid
from minicluster.verify.evidence.operations import Entry, Operation
from minicluster.verify.evidence.run import Run
from minicluster.verify.online.share import Share
from minicluster.verify.rules.model import WITHOUT_RECORD
from minicluster.verify.rules.promises import Promises, promises_of
from minicluster.verify.spark.schemas import SCHEMAS

_TOPIC_RESOURCE = 2
_BROKER_RESOURCE = 4


class Facts:
    """Collects rows, run by run, and gives them as Arrow tables."""

    def __init__(self) -> None:
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in SCHEMAS}

    def add(self, run: Run) -> None:
        """Take in one run: every node's batches, and its committed log if it can be folded."""
        self._add_batches(run)
        for table, row in run.znodes:
            self._rows[table].append(row)
        if not run.foldable:
            return
        reader = FactReader(run.name, promises_of(run.rules), self._rows, is_run=run.is_run)
        skip_to = 0
        if run.start is not None:
            skip_to = run.start.end_offset
            reader.preload(run.start.records, skip_to)
        for operation in run.history.operations:
            if operation.end >= skip_to:
                reader.take(operation, skip_to)
        for offset, kind in run.history.markers:
            if offset >= skip_to:
                self._rows["transactions"].append((run.name, offset, kind, None))

    def _add_batches(self, run: Run) -> None:
        for node in run.nodes:
            for pos, batch in enumerate(node.batches):
                row = batch_row(run.name, node.node, pos, batch, begins_well=node.begins_well)
                self._rows["batches"].append(row)

    def tables(self) -> dict[str, pa.Table]:
        """Every table, even an empty one."""
        return {
            name: pa.Table.from_arrays(arrow_columns(name, self._rows[name]), schema=schema)
            for name, schema in SCHEMAS.items()
        }


def arrow_columns(table: str, rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
    """The rows of a table as its columns."""
    schema = SCHEMAS[table]
    columns = zip(*rows, strict=True) if rows else [()] * len(schema)
    return [pa.array(column, type=kind.type) for column, kind in zip(columns, schema, strict=True)]


def batch_row(
    run: str, node: int, pos: int, batch: RecordBatch, *, begins_well: bool
) -> tuple[Any, ...]:
    """The row of one batch of a controller's log, at its place in it."""
    controls = control_records(batch)
    first = controls[0].message if controls else None
    return (
        run,
        node,
        pos,
        batch.base_offset,
        batch.base_offset,
        batch.last_offset,
        batch.leader_epoch,
        first.leader_id if isinstance(first, r.LeaderChangeMessage) else None,
        begins_well,
        None,
        batch.crc,
    )


class FactReader:
    """One pass over one committed log.

    Shapes:  rows: the lists to which rows are added, by table. share: of the partitions that have
             rows, None for all.
    """

    def __init__(
        self,
        run: str,
        promises: Promises,
        rows: dict[str, list[tuple[Any, ...]]],
        *,
        is_run: bool,
        share: Share | None = None,
    ) -> None:
        self._leaves_from = promises.new_incarnation_leaves_from
        self._run = run
        self._share = share
        self._about_run = is_run, promises.failures_in_log, self._leaves_from
        self._partitions = rows["partitions"]
        self._brokers = rows["brokers"]
        self._topics = rows["topics"]
        self._mv: int | None = None  # none: the log has no FeatureLevelRecord yet
        self._elr = False
        self._names: dict[UUID, str] = {}  # of every topic, also the deleted ones
        self._ids: dict[str, UUID] = {}  # of live topics
        self._parts: dict[UUID, dict[int, int]] = {}  # partition -> number of replicas
        self._eligible: dict[tuple[UUID, int], tuple[bool, bool]] = {}  # has ELR, has last known
        self._min_isr: dict[str, int] = {}
        self._incarnations: dict[int, str | None] = {}  # broker -> its last one
        self._staying: dict[int, bool] = {}
        self._text: dict[UUID, str] = {}
        self._takes = {
            r.PartitionRecord: self._partition,
            r.PartitionChangeRecord: self._change,
            r.TopicRecord: self._topic,
            r.RemoveTopicRecord: self._remove_topic,
            r.ClearElrRecord: self._clear_elr,
            r.RegisterBrokerRecord: self._register,
            r.UnregisterBrokerRecord: self._unregister,
            r.FenceBrokerRecord: self._fence,
            r.UnfenceBrokerRecord: self._unfence,
            r.BrokerRegistrationChangeRecord: self._registration_change,
            r.FeatureLevelRecord: self._feature,
            r.ConfigRecord: self._config,
        }
        self._entry = Entry(0, r.NoOpRecord(), 0, 0, 0)
        self._where: tuple[int, int, int, bool] = (0, 0, 0, False)

    def preload(self, records: tuple[r.VersionedRecord, ...], end_offset: int) -> None:
        """Begin from a snapshot: its records are at the offset right below its end."""
        # Settings first: in a snapshot the configs come last, but they hold for all of it.
        for versioned in records:
            if isinstance(versioned.record, r.FeatureLevelRecord | r.ConfigRecord):
                self._takes[type(versioned.record)](versioned.record)
        for index, versioned in enumerate(records):
            at = end_offset - 1
            self._where = (at, end_offset - len(records) + index, at, False)
            self._entry = Entry(at, versioned.record, versioned.version, at, at)
            take = self._takes.get(type(versioned.record))
            if take is not None:
                take(versioned.record)

    def take(self, operation: Operation, skip_to: int) -> None:
        """Take one operation; records that a snapshot already holds are left out."""
        for entry in operation.entries:
            if entry.offset < skip_to:
                continue
            take = self._takes.get(type(entry.record))
            if take is not None:
                self._where = (entry.offset, entry.offset, operation.end, True)
                self._entry = entry
                take(entry.record)

    # --- settings ---------------------------------------------------------------------------

    @property
    def _level(self) -> int:
        return WITHOUT_RECORD if self._mv is None else self._mv

    def _feature(self, record: Message) -> None:
        assert isinstance(record, r.FeatureLevelRecord)
        if record.name == "metadata.version":
            self._mv = record.feature_level
        elif record.name == "eligible.leader.replicas.version":
            self._elr = record.feature_level > 0

    def _config(self, record: Message) -> None:
        assert isinstance(record, r.ConfigRecord)
        if record.resource_type == _TOPIC_RESOURCE and record.value is not None:
            self._topics.append((*self._place("Config"), record.resource_name, None, None))
        if record.name != MIN_ISR:
            return
        if record.resource_type == _TOPIC_RESOURCE:
            key = "topic:" + record.resource_name
        elif record.resource_type == _BROKER_RESOURCE and record.resource_name == "":
            key = "cluster"
        else:
            return
        if record.value is None:
            self._min_isr.pop(key, None)
        elif record.value.strip().isdecimal():
            self._min_isr[key] = int(record.value)

    def _effective_min_isr(self, topic_id: UUID) -> int | None:
        configured = self._min_isr.get("topic:" + self._names.get(topic_id, ""))
        if configured is None:
            configured = self._min_isr.get("cluster")
        replicas = self._parts.get(topic_id, {}).get(0)
        return None if configured is None or replicas is None else min(configured, replicas)

    def _place(self, kind: str) -> tuple[Any, ...]:
        """The first columns of every row."""
        offset, pos, op, judged = self._where
        return self._run, offset, pos, op, kind, judged, self._level

    # --- topics and partitions --------------------------------------------------------------

    def _topic_row(self, kind: str, topic_id: UUID, part: int | None = None) -> None:
        name = self._names.get(topic_id)
        self._topics.append((*self._place(kind), name, self._id(topic_id), part))

    def _partition_row(self, kind: str, topic_id: UUID, part: int, *fields: Any) -> None:
        if self._share is not None and not self._share.owns(topic_id, part):
            return
        self._partitions.append(
            (
                *self._place(kind),
                self._elr,
                self._effective_min_isr(topic_id),
                self._names.get(topic_id),
                self._id(topic_id),
                part,
                *(fields or (None,) * 11),
                *self._about_run,
            )
        )

    def _topic(self, record: Message) -> None:
        assert isinstance(record, r.TopicRecord)
        self._names[record.topic_id] = record.name
        self._ids[record.name] = record.topic_id
        self._parts.setdefault(record.topic_id, {})
        self._topic_row("Topic", record.topic_id)

    def _remove_topic(self, record: Message) -> None:
        assert isinstance(record, r.RemoveTopicRecord)
        self._topic_row("RemoveTopic", record.topic_id)
        for part in sorted(self._parts.pop(record.topic_id, {})):
            self._partition_row("RemoveTopic", record.topic_id, part)
        name = self._names.get(record.topic_id, "")
        if self._ids.get(name) == record.topic_id:
            del self._ids[name]
            self._min_isr.pop("topic:" + name, None)

    def _partition(self, record: Message) -> None:
        assert isinstance(record, r.PartitionRecord)
        self._parts.setdefault(record.topic_id, {})[record.partition_id] = len(record.replicas)
        self._note_elr(record)
        self._topic_row("Partition", record.topic_id, record.partition_id)
        self._partition_row(
            "Partition",
            record.topic_id,
            record.partition_id,
            record.isr,
            record.leader,
            record.replicas,
            record.adding_replicas,
            record.removing_replicas,
            record.eligible_leader_replicas or (),
            record.last_known_elr or (),
            record.leader_recovery_state,
            [self._id(directory) for directory in record.directories],
            record.leader_epoch,
            record.partition_epoch,
        )

    def _change(self, record: Message) -> None:
        assert isinstance(record, r.PartitionChangeRecord)
        if record.replicas is not None:
            parts = self._parts.get(record.topic_id, {})
            if record.partition_id in parts:
                parts[record.partition_id] = len(record.replicas)
        self._note_elr(record)
        self._partition_row(
            "Change",
            record.topic_id,
            record.partition_id,
            record.isr,
            None if record.leader == -2 else record.leader,
            record.replicas,
            record.adding_replicas,
            record.removing_replicas,
            record.eligible_leader_replicas,
            record.last_known_elr,
            None if record.leader_recovery_state == -1 else record.leader_recovery_state,
            None if record.directories is None else [self._id(d) for d in record.directories],
            None,
            None,
        )

    def _note_elr(self, record: r.PartitionRecord | r.PartitionChangeRecord) -> None:
        key = (record.topic_id, record.partition_id)
        elr, last = self._eligible.get(key, (False, False))
        if record.eligible_leader_replicas is not None:
            elr = bool(record.eligible_leader_replicas)
        if record.last_known_elr is not None:
            last = bool(record.last_known_elr)
        self._eligible[key] = (elr, last)

    def _clear_elr(self, record: Message) -> None:
        assert isinstance(record, r.ClearElrRecord)
        for topic_id in self._cleared(record.topic_name):
            for part in sorted(self._parts.get(topic_id, {})):
                if any(self._eligible.pop((topic_id, part), ())):
                    cleared = (None,) * 5 + ((), ()) + (None,) * 4
                    self._partition_row("ClearElr", topic_id, part, *cleared)

    def _cleared(self, name: str) -> Iterator[UUID]:
        if name:
            if name in self._ids:
                yield self._ids[name]
        else:
            yield from sorted(self._parts, key=self._id)

    # --- brokers ----------------------------------------------------------------------------

    def _broker_row(self, kind: str, broker: int, epoch: int, *fields: Any) -> None:
        self._brokers.append(
            (
                *self._place(kind),
                self._entry.unseen_from if self._mv is None else self._entry.clean_from,
                broker,
                epoch,
                *(fields or (None,) * 4),
                self._may_stay(kind, broker, *(fields or (None,) * 4)),
                self._leaves_from,
            )
        )

    def _may_stay(
        self, kind: str, broker: int, incarnation: str | None, fenced: bool | None, *_: Any
    ) -> bool:
        """The release leaves a new incarnation in the ISRs of its predecessor, and it did."""
        if kind == "Register":
            before = self._incarnations.get(broker)
            self._incarnations[broker] = incarnation
            is_new = self._where[3] and before not in (None, incarnation)
            self._staying[broker] = is_new and self._level < self._leaves_from
        elif kind == "Unregister" or fenced is not None:
            self._staying[broker] = False
        return self._staying.get(broker, False)

    def _register(self, record: Message) -> None:
        assert isinstance(record, r.RegisterBrokerRecord)
        self._broker_row(
            "Register",
            record.broker_id,
            record.broker_epoch,
            self._id(record.incarnation_id),
            record.fenced,
            record.in_controlled_shutdown,
            [self._id(directory) for directory in record.log_dirs],
        )

    def _unregister(self, record: Message) -> None:
        assert isinstance(record, r.UnregisterBrokerRecord)
        self._broker_row("Unregister", record.broker_id, record.broker_epoch)

    def _fence(self, record: Message) -> None:
        assert isinstance(record, r.FenceBrokerRecord)
        self._broker_row("Fence", record.id, record.epoch, None, True, None, None)

    def _unfence(self, record: Message) -> None:
        assert isinstance(record, r.UnfenceBrokerRecord)
        self._broker_row("Unfence", record.id, record.epoch, None, False, None, None)

    def _registration_change(self, record: Message) -> None:
        assert isinstance(record, r.BrokerRegistrationChangeRecord)
        self._broker_row(
            "Change",
            record.broker_id,
            record.broker_epoch,
            None,
            None if record.fenced == 0 else record.fenced > 0,
            None if record.in_controlled_shutdown == 0 else record.in_controlled_shutdown > 0,
            [self._id(directory) for directory in record.log_dirs] or None,
        )

    def _id(self, value: UUID) -> str:
        text = self._text.get(value)
        if text is None:
            text = self._text[value] = format_uuid(value)
        return text
