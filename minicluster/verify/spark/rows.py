"""Metadata records as rows: one wide schema, typed columns, Arrow batches.

A column that a record's type does not have is null; so is a field that a record leaves out because
it changes nothing (a leader of -2, a recovery state of -1). ``data`` holds the record as Kafka's
JSON form; a record of an internal topic has its key in ``key``, and a tombstone has no data. In a
checkpoint, offsets are positions in the file and ``snapshot_end`` is set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
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

# Column, SQL type, in the order of the schema.
COLUMNS: tuple[tuple[str, str], ...] = (
    ("file", "string"),
    ("snapshot_end", "bigint"),
    ("offset", "bigint"),
    ("epoch", "int"),
    ("batch_base", "bigint"),
    ("timestamp", "bigint"),
    ("control", "boolean"),
    ("type", "string"),
    ("version", "int"),
    ("broker_id", "int"),
    ("broker_epoch", "bigint"),
    ("incarnation_id", "string"),
    ("rack", "string"),
    ("fenced", "boolean"),
    ("in_controlled_shutdown", "boolean"),
    ("log_dirs", "array<string>"),
    ("cordoned_log_dirs", "array<string>"),
    ("topic_id", "string"),
    ("topic", "string"),
    ("partition_id", "int"),
    ("replicas", "array<int>"),
    ("isr", "array<int>"),
    ("leader", "int"),
    ("leader_recovery_state", "int"),
    ("leader_epoch", "int"),
    ("partition_epoch", "int"),
    ("adding_replicas", "array<int>"),
    ("removing_replicas", "array<int>"),
    ("elr", "array<int>"),
    ("last_known_elr", "array<int>"),
    ("directories", "array<string>"),
    ("resource_type", "int"),
    ("resource_name", "string"),
    ("config_name", "string"),
    ("config_value", "string"),
    ("feature_name", "string"),
    ("feature_level", "int"),
    ("controller_id", "int"),
    ("quorum_leader", "int"),
    ("voters", "array<int>"),
    ("kraft_version", "int"),
    ("producer_id", "bigint"),
    ("name", "string"),
    ("data", "string"),
    ("key", "string"),
)
SQL_SCHEMA = ", ".join(f"`{name}` {kind}" for name, kind in COLUMNS)

_ARROW = {
    "string": pa.string(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "array<int>": pa.list_(pa.int32()),
    "array<string>": pa.list_(pa.string()),
}
ARROW_TYPES = {name: _ARROW[kind] for name, kind in COLUMNS}

_Take = Callable[[Any], Any]


def _text(value: UUID) -> str:
    text = _TEXTS.get(value)
    if text is None:
        if len(_TEXTS) > 100_000:
            _TEXTS.clear()
        text = _TEXTS[value] = format_uuid(value)
    return text


_TEXTS: dict[UUID, str] = {}


def _texts(values: Sequence[UUID]) -> list[str]:
    return [_text(value) for value in values]


def _flag(value: int) -> bool | None:
    """A registration change's -1, 0, 1: no, as before, yes."""
    return None if value == 0 else value > 0


def _unless(sentinel: int) -> _Take:
    return lambda value: None if value == sentinel else value


def _voters(voters: Iterable[Any]) -> list[int]:
    return [voter.voter_id for voter in voters]


_BROKER = {"broker_id": ("broker_id", None), "broker_epoch": ("broker_epoch", None)}
_PARTITION: dict[str, tuple[str, _Take | None]] = {
    "topic_id": ("topic_id", _text),
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
        "incarnation_id": ("incarnation_id", _text),
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
        "incarnation_id": ("incarnation_id", _text),
    },
    r.TopicRecord: {"topic": ("name", None), "topic_id": ("topic_id", _text)},
    r.RemoveTopicRecord: {"topic_id": ("topic_id", _text)},
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

_FIXED = ("file", "snapshot_end", "epoch", "batch_base", "control")  # one value per batch
_VARYING = {"offset": 0, "timestamp": 1, "type": 2, "version": 4}  # places in a record tuple


class Rows:
    """Turns batches into Arrow record batches with the columns that are wanted."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self._wanted = tuple(wanted)
        place = {name: index for index, name in enumerate(self._wanted)}
        self._steps = {
            cls: tuple(
                (place[column], attribute, take)
                for column, (attribute, take) in fields.items()
                if column in place
            )
            for cls, fields in _FIELDS.items()
        }
        self._fixed = [place.get(name) for name in _FIXED]
        self._varying = [(place[name], at) for name, at in _VARYING.items() if name in place]
        self._data = place.get("data")
        self._key = place.get("key")
        self._schema = pa.schema([(name, ARROW_TYPES[name]) for name in self._wanted])

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
        rows: list[list[Any]] = []
        for batch in batches:
            blank: list[Any] = [None] * len(self._wanted)
            fixed = (file, snapshot_end, batch.leader_epoch, batch.base_offset, batch.is_control)
            for index, value in zip(self._fixed, fixed, strict=True):
                if index is not None:
                    blank[index] = value
            for described in _records(batch, types):
                if keep is None or keep(described[0], described[2]):
                    rows.append(self._row(blank.copy(), described))
            if len(rows) >= CHUNK_ROWS:
                yield self._arrow(rows)
                rows = []
        if rows:
            yield self._arrow(rows)

    def _row(self, row: list[Any], described: _Described) -> list[Any]:
        for index, place in self._varying:
            row[index] = described[place]
        record = described[3]
        for index, attribute, take in self._steps.get(type(record), ()):
            value = getattr(record, attribute)
            if value is not None:
                row[index] = value if take is None else take(value)
        if self._data is not None and isinstance(record, Message):
            row[self._data] = to_json_text(record, described[4])
        if self._key is not None and described[5] is not None:
            row[self._key] = to_json_text(described[5], 0)
        return row

    def _arrow(self, rows: list[list[Any]]) -> pa.RecordBatch:
        arrays = [
            pa.array(column, type=field.type)
            for column, field in zip(zip(*rows, strict=True), self._schema, strict=True)
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


_NAMES: dict[type, str] = {}
_Described = tuple[int, int, str, Any, int, Message | None]


def _records(batch: RecordBatch, types: RecordTypes | None) -> Iterator[_Described]:
    """Offset, time, type, message, version and key of each record of a batch."""
    if batch.is_control:
        for record, control in zip(batch.records, control_records(batch), strict=True):
            what = control.name, control.message, control.version
            yield record.offset, record.timestamp, *what, None
        return
    if types is not None:
        described = described_records(batch.records, types)
        for record, description in zip(batch.records, described, strict=True):
            yield (
                record.offset,
                record.timestamp,
                description.name,
                description.value,
                description.version,
                description.key,
            )
        return
    for offset, timestamp, _, value in batch.contents():
        versioned = decode_record(value or b"")
        cls = type(versioned.record)
        name = _NAMES.get(cls)
        if name is None:
            name = _NAMES[cls] = cls.__name__.removesuffix("Record")
        yield offset, timestamp, name, versioned.record, versioned.version, None
