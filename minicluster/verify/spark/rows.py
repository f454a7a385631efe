"""Metadata records as rows: one wide schema, typed columns, Arrow batches.

A column that a record's type does not have is null; so is a field that a record leaves out because
it changes nothing (a leader of -2, a recovery state of -1). ``data`` holds the record as Kafka's
JSON form; a record of an internal topic has its key in ``key``, and a tombstone has no data. In a
checkpoint, offsets are positions in the file and ``snapshot_end`` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import pyarrow as pa

from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.protocol import records as r
from minicluster.protocol.coordinator_records.described import RecordTypes, described_records
from minicluster.protocol.json_form import to_json_text
from minicluster.protocol.records import decode_record
from minicluster.protocol.schema import Message
from minicluster.protocol.uuids import format_uuid

CHUNK_ROWS = 16_384

Column = tuple[str, str, str]  # name, type, meaning
COLUMNS: tuple[Column, ...] = (
    ("file", "string", "name of the file: a segment or a checkpoint"),
    ("snapshot_end", "bigint", "offset at which the checkpoint ends, exclusive"),
    ("offset", "bigint", "offset in the log; in a snapshot the place in the file"),
    ("epoch", "int", "leader epoch of the batch"),
    ("batch_base", "bigint", "first offset of the batch"),
    ("timestamp", "bigint", "when the record was written"),
    ("control", "boolean", "a control record, of the log itself: LeaderChange, KRaftVoters, …"),
    ("type", "string", "type of the record, such as PartitionChange"),
    ("version", "int", "version in which the record is written"),
    ("broker_id", "int", "broker that the record is about"),
    ("broker_epoch", "bigint", "epoch of its registration"),
    ("incarnation_id", "string", "id of the process of the broker or controller that registers"),
    ("rack", "string", "rack of the broker"),
    ("fenced", "boolean", "the broker is fenced; null in a change: it stays as it was"),
    ("in_controlled_shutdown", "boolean", "the broker shuts down; null in a change: as it was"),
    (
        "log_dirs",
        "array<string>",
        "ids of the broker's log directories; null in a change: as they were",
    ),
    ("cordoned_log_dirs", "array<string>", "ids of its directories that get no new replicas"),
    ("topic_id", "string", "id of the topic"),
    ("topic", "string", "name of the topic, where the record has it"),
    ("partition_id", "int", "number of the partition"),
    (
        "replicas",
        "array<int>",
        "all replicas, in order of preference; null in a change: as they were",
    ),
    ("isr", "array<int>", "in-sync replicas; null in a change: as they were"),
    ("leader", "int", "broker that leads, -1: none; null in a change: as it was"),
    ("leader_recovery_state", "int", "0 RECOVERED, 1 RECOVERING; null in a change: as it was"),
    ("leader_epoch", "int", "leader epoch; a change that names a leader raises it by one"),
    ("partition_epoch", "int", "partition epoch; each change raises it by one"),
    (
        "adding_replicas",
        "array<int>",
        "replicas that a reassignment adds; null in a change: as they were",
    ),
    ("removing_replicas", "array<int>", "replicas that it removes; null in a change: as they were"),
    ("elr", "array<int>", "eligible leader replicas; null in a change: as they were"),
    ("last_known_elr", "array<int>", "last known leader; null in a change: as it was"),
    (
        "directories",
        "array<string>",
        "log directory of each replica; null in a change: as they were",
    ),
    (
        "resource_type",
        "int",
        "of a config: 2 topic, 4 broker, 8 broker logger, 16 client metrics, 32 group",
    ),
    (
        "resource_name",
        "string",
        "of a config: name of the topic, id of the broker, empty for all brokers",
    ),
    ("config_name", "string", "name of the config"),
    ("config_value", "string", "its value; null: it is removed"),
    ("feature_name", "string", "name of the feature, such as metadata.version"),
    ("feature_level", "int", "level from here on; 0: it is off"),
    ("controller_id", "int", "controller that registers"),
    ("quorum_leader", "int", "controller that leads the quorum from here on"),
    ("voters", "array<int>", "controllers that vote"),
    ("kraft_version", "int", "kraft.version from here on"),
    ("producer_id", "bigint", "first producer id that is still to be given out"),
    ("name", "string", "name of a user, an entity or a transaction of the log"),
    ("data", "string", "the whole record as JSON"),
    ("key", "string", "key of a record of an internal topic, as JSON"),
)
SQL_SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind, _ in COLUMNS)

_ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
}
ARROW_TYPES = {name: _ARROW[kind] for name, kind, _ in COLUMNS}

_Take = Callable[[Any], Any]


def _texts(values: Sequence[UUID]) -> list[str]:
    return [format_uuid(value) for value in values]


def _flag(value: int) -> bool | None:
    """A registration change's -1, 0, 1: no, as before, yes."""
    return None if value == 0 else value > 0


def _unless(sentinel: int) -> _Take:
    return lambda value: None if value == sentinel else value


def _voters(voters: Iterable[Any]) -> list[int]:
    return [voter.voter_id for voter in voters]


_BROKER = {"broker_id": ("broker_id", None), "broker_epoch": ("broker_epoch", None)}
_PARTITION: dict[str, tuple[str, _Take | None]] = {
    "topic_id": ("topic_id", format_uuid),
    "partition_id": ("partition_id", None),
    "replicas": ("replicas", None),
    "isr": ("isr", None),
    "adding_replicas": ("adding_replicas", None),
    "removing_replicas": ("removing_replicas", None),
    "elr": ("eligible_leader_replicas", None),
    "last_known_elr": ("last_known_elr", None),
    "directories": ("directories", _texts),
}

# Per record class: column -> (attribute, conversion).
_FIELDS: dict[type, dict[str, tuple[str, _Take | None]]] = {
    r.RegisterBrokerRecord: {
        **_BROKER,
        "incarnation_id": ("incarnation_id", format_uuid),
        "rack": ("rack", None),
        "fenced": ("fenced", None),
        "in_controlled_shutdown": ("in_controlled_shutdown", None),
        "log_dirs": ("log_dirs", _texts),
        "cordoned_log_dirs": ("cordoned_log_dirs", _texts),
    },
    r.UnregisterBrokerRecord: dict(_BROKER),
    r.FenceBrokerRecord: {"broker_id": ("id", None), "broker_epoch": ("epoch", None)},
    r.UnfenceBrokerRecord: {"broker_id": ("id", None), "broker_epoch": ("epoch", None)},
    r.BrokerRegistrationChangeRecord: {
        **_BROKER,
        "fenced": ("fenced", _flag),
        "in_controlled_shutdown": ("in_controlled_shutdown", _flag),
        "log_dirs": ("log_dirs", lambda dirs: _texts(dirs) or None),
        "cordoned_log_dirs": ("cordoned_log_dirs", _texts),
    },
    r.RegisterControllerRecord: {
        "controller_id": ("controller_id", None),
        "incarnation_id": ("incarnation_id", format_uuid),
    },
    r.TopicRecord: {"topic": ("name", None), "topic_id": ("topic_id", format_uuid)},
    r.RemoveTopicRecord: {"topic_id": ("topic_id", format_uuid)},
    r.PartitionRecord: {
        **_PARTITION,
        "leader": ("leader", None),
        "leader_recovery_state": ("leader_recovery_state", None),
        "leader_epoch": ("leader_epoch", None),
        "partition_epoch": ("partition_epoch", None),
    },
    r.PartitionChangeRecord: {
        **_PARTITION,
        "leader": ("leader", _unless(-2)),
        "leader_recovery_state": ("leader_recovery_state", _unless(-1)),
    },
    r.ClearElrRecord: {"topic": ("topic_name", None)},
    r.ConfigRecord: {
        "resource_type": ("resource_type", None),
        "resource_name": ("resource_name", None),
        "config_name": ("name", None),
        "config_value": ("value", None),
    },
    r.FeatureLevelRecord: {
        "feature_name": ("name", None),
        "feature_level": ("feature_level", None),
    },
    r.ProducerIdsRecord: {**_BROKER, "producer_id": ("next_producer_id", None)},
    r.BeginTransactionRecord: {"name": ("name", None)},
    r.UserScramCredentialRecord: {"name": ("name", None)},
    r.RemoveUserScramCredentialRecord: {"name": ("name", None)},
    r.LeaderChangeMessage: {
        "quorum_leader": ("leader_id", None),
        "voters": ("voters", _voters),
    },
    r.VotersRecord: {"voters": ("voters", _voters)},
    r.KRaftVersionRecord: {"kraft_version": ("kraft_version", None)},
}


class Rows:
    """Turns batches into Arrow record batches with the columns that are wanted."""

    def __init__(self, wanted: Iterable[str] = ARROW_TYPES) -> None:
        self._schema = pa.schema({name: ARROW_TYPES[name] for name in wanted})
        names = set(self._schema.names)
        self._fields = {
            cls: [(column, *field) for column, field in fields.items() if column in names]
            for cls, fields in _FIELDS.items()
        }
        self._with_data, self._with_key = "data" in names, "key" in names

    def of(
        self,
        batches: Iterable[RecordBatch],
        *,
        file: str,
        snapshot_end: int | None = None,
        keep: Callable[[int, str], bool] | None = None,
        types: RecordTypes | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of these batches, some thousands at a time.

        Shapes:  ``keep`` sees offset and type; types are those of an internal topic.
        """
        rows: list[dict[str, Any]] = []
        for batch in batches:
            of_batch = {
                "file": file,
                "snapshot_end": snapshot_end,
                "epoch": batch.leader_epoch,
                "batch_base": batch.base_offset,
                "control": batch.is_control,
            }
            rows += (
                of_batch | self._row(record)
                for record in _records(batch, types)
                if keep is None or keep(record.offset, record.type)
            )
            if len(rows) >= CHUNK_ROWS:
                yield pa.RecordBatch.from_pylist(rows, self._schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, self._schema)

    def _row(self, record: _Record) -> dict[str, Any]:
        offset, timestamp, type_, message, version, key = record
        row = {"offset": offset, "timestamp": timestamp, "type": type_, "version": version}
        for column, attribute, take in self._fields.get(type(message), ()):
            value = getattr(message, attribute)
            if value is not None:
                row[column] = value if take is None else take(value)
        if self._with_data and isinstance(message, Message):
            row["data"] = to_json_text(message, version)
        if self._with_key and key is not None:
            row["key"] = to_json_text(key, 0)
        return row


class _Record(NamedTuple):
    offset: int
    timestamp: int
    type: str
    message: Any
    version: int
    key: Message | None = None


def _records(batch: RecordBatch, types: RecordTypes | None) -> Iterator[_Record]:
    if batch.is_control:
        for record, control in zip(batch.records, control_records(batch), strict=True):
            what = control.name, control.message, control.version
            yield _Record(record.offset, record.timestamp, *what)
    elif types is not None:
        for record, of in zip(batch.records, described_records(batch.records, types), strict=True):
            what = of.name, of.value, of.version
            yield _Record(record.offset, record.timestamp, *what, of.key)
    else:
        for offset, timestamp, _, value in batch.contents():
            read = decode_record(value or b"")
            name = type(read.record).__name__.removesuffix("Record")
            yield _Record(offset, timestamp, name, read.record, read.version)
