"""The trace rows of a broker's logs, record by record (``replica_log``)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minicluster.actors.nodes.disk import Disk
from minicluster.actors.recording.values import value_text
from minicluster.log.batch import RecordBatch
from minicluster.log.log import Log
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_manager import ReplicaStore

if TYPE_CHECKING:
    import pyarrow as pa

Texts = dict[RecordBatch, list[str]]
"""The values of batches as text; replicas share their batches."""


@dataclass(frozen=True, slots=True)
class _Listed:
    """A log, and the columns that all of its rows share."""

    log: Log
    place: dict[str, Any]


def records_of(disk: Disk) -> int:
    """How many records a broker's logs have, so many rows would there be."""
    logs = (disk.logs[name] for name in ReplicaStore(disk).names())
    return sum(batch.count for log in logs for batch in log.batches)


def replica_rows(disk: Disk, incarnation: str | None, at: str) -> Iterator[dict[str, Any]]:
    """The rows of one broker.

    Shapes:  at: the event at which the logs are read (crash, end).
    """
    for listed in _logs(disk, incarnation, at):
        for batch in listed.log.batches:
            for record in batch.records:
                yield {
                    **listed.place,
                    "offset": record.offset,
                    "leader_epoch": batch.leader_epoch,
                    "value_id": value_text(record.value),
                }


def replica_columns(
    disk: Disk, incarnation: str | None, at: str, common: dict[str, Any], texts: Texts
) -> Iterator[pa.Table]:
    """The same rows as columns, a table for each log: a run may end with a million of them.

    Shapes:  common: the recorder's columns. texts: of batches that were read before.
    """
    from minicluster.actors.recording.trace_files import arrow_columns

    for listed in _logs(disk, incarnation, at):
        offsets: list[int] = []
        epochs: list[int] = []
        values: list[str] = []
        for batch in listed.log.batches:
            known = texts.get(batch)
            if known is None:
                known = texts[batch] = [value_text(record.value) for record in batch.records]
            if len(known) == batch.last_offset - batch.base_offset + 1:
                offsets += range(batch.base_offset, batch.last_offset + 1)
            else:  # compaction has left gaps
                offsets += [record.offset for record in batch.records]
            epochs += [batch.leader_epoch] * len(known)
            values += known
        columns: dict[str, list[Any]] = {
            "offset": offsets,
            "leader_epoch": epochs,
            "value_id": values,
        }
        yield arrow_columns("replica_log", len(offsets), common | listed.place, columns)


def _logs(disk: Disk, incarnation: str | None, at: str) -> Iterator[_Listed]:
    store = ReplicaStore(disk)
    for name in store.names():
        known = store.partition_file(name)
        topic, _, index = name.rpartition("-")
        place: dict[str, Any] = {
            "broker": disk.node_id,
            "incarnation": incarnation,
            "topic": topic,
            "topic_id": None if known is None else format_uuid(known.topic_id),
            "part": int(index),
            "at": at,
        }
        if at == "end" and known is not None:
            place["directory"] = format_uuid(known.directory)
            place["online"] = known.directory in store.online_directories
        yield _Listed(disk.logs[name], place)
