"""The trace rows of a broker's logs, record by record (``replica_log``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from minicluster.actors.nodes.disk import Disk
from minicluster.actors.recording.columns import arrow_columns, column, text_column
from minicluster.actors.recording.trace_files import GROUP_ROWS
from minicluster.actors.recording.values import value_text, value_texts
from minicluster.log.batch import RecordBatch
from minicluster.log.log import Log
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.log_manager import ReplicaStore
from minicluster.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

Pieces = dict[tuple[RecordBatch, ...], "Mapping[str, pa.Array]"]
"""The columns of batches in a row; replicas share their batches."""


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
            values = batch.values()
            for offset, value in zip(_offsets(batch, len(values)), values, strict=True):
                yield {
                    **listed.place,
                    "offset": offset,
                    "leader_epoch": batch.leader_epoch,
                    "value_id": value_text(value),
                }


def replica_columns(
    disk: Disk, incarnation: str | None, at: str, common: dict[str, Any], pieces: Pieces
) -> Iterator[pa.Table]:
    """The same rows as columns, since a run may end with a million of them.

    No record is made of a batch's bytes, nor a text of its value.

    Shapes:  common: the recorder's columns. pieces: those that were read before.
    """
    for listed in _logs(disk, incarnation, at):
        for batches in _pieces(listed.log.batches, GROUP_ROWS):
            columns = pieces.get(batches)
            if columns is None:
                columns = pieces[batches] = _columns(batches)
            shared = common | listed.place
            yield arrow_columns("replica_log", len(columns["offset"]), shared, columns)


def _columns(batches: Iterable[RecordBatch]) -> Mapping[str, pa.Array]:
    """The columns in which the rows of a log differ."""
    offsets: list[int] = []
    epochs: list[int] = []
    texts: list[bytes] = []
    for batch in batches:
        values = batch.values()
        offsets += _offsets(batch, len(values))
        epochs += [batch.leader_epoch] * len(values)
        texts += value_texts(values)
    return {
        "offset": column("int", offsets),
        "leader_epoch": column("int", epochs),
        "value_id": text_column(texts),
    }


def _offsets(batch: RecordBatch, count: int) -> Sequence[int]:
    """The offsets of a batch's records."""
    if count == batch.last_offset - batch.base_offset + 1:
        return range(batch.base_offset, batch.last_offset + 1)
    return [record.offset for record in batch.records]  # compaction has left gaps


def _pieces(batches: Iterable[RecordBatch], records_max: int) -> Iterator[tuple[RecordBatch, ...]]:
    """Batches in pieces of so many records, and one batch more at most."""
    piece: list[RecordBatch] = []
    records = 0
    for batch in batches:
        piece.append(batch)
        records += batch.count
        if records >= records_max:
            yield tuple(piece)
            piece, records = [], 0
    if piece:
        yield tuple(piece)


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
