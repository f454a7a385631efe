"""Evidence as rows: what tasks read, the exchange carries and the judges take.

A row is an event of a run, or the records of a share that follow each other in what one task reads.
``share`` says which of the judges of the run takes it; a row that all of them need is there once
for each. Within a share rows are in the order of ``phase``, then of ``place``. A record is its
bytes as they lie on disk: no row has a list in it.
"""

from __future__ import annotations

import pickle
from collections.abc import Container, Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import groupby
from typing import Any, TypeVar

import pyarrow as pa

from minicluster.errors import UserError
from minicluster.log.batch import HEADER_BYTES, LENGTH_END, RecordBatch
from minicluster.values import dataclass
from minicluster.verify.evidence.run import LogFacts, Run
from minicluster.verify.share import share_of

SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "share": pa.int32(),
        "slot": pa.int32(),  # the partition in which the share is judged
        "phase": pa.int32(),
        "place": pa.int64(),  # the order within the phase
        "node": pa.int32(),  # of a batch's header or a snapshot: the controller
        "offset": pa.int64(),
        "subject": pa.string(),  # the table of a trace's rows, the name of a snapshot
        "record": pa.binary(),
    }
)
# With each record in a row of its own, for whom its time matters.
TIMED_SCHEMA = pa.schema(
    [
        *SCHEMA,
        pa.field("batch", pa.int64()),  # the place of the first record of its batch
        pa.field("ends", pa.int64()),  # the last offset of its batch
        pa.field("time", pa.int64()),
    ]
)
_SQL = {
    pa.string(): "string",
    pa.binary(): "binary",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.bool_(): "boolean",
    pa.list_(pa.int32()): "array<int>",
    pa.list_(pa.int64()): "array<bigint>",
    pa.list_(pa.string()): "array<string>",
}


def sql_of(schema: pa.Schema) -> str:
    """An Arrow schema as SQL has it."""
    return ", ".join(f"`{column.name}` {_SQL[column.type]}" for column in schema)


BATCH_ROWS = 2_000
BATCH_BYTES = 256 << 10
_EVERY = -1
CHANGE = bytes((1, 5))  # frame version and type of a PartitionChangeRecord
KEY = slice(3, 23)  # its partition (4 bytes) and topic id


class DamagedWhileShown(UserError):
    """A reader of a long log has found damage; it has to be read with more care."""

    exit_code = 65


class Phase(IntEnum):
    """The kinds of rows, in the order in which a judge takes them.

    ======== ==================================================================================
    HEADING  what is known of the run before its events (``Heading``), pickled
    DAMAGE   a reader has found bytes that no log has; the run has to be read with more care
    START    the snapshot from which the committed log is judged: its bytes
    RECORD   records of the committed log, by their batches (``RecordsOfBatch``), pickled: Spark
             copies every row several times, so a row for each would be most of its work on a long
             log. With times it is one record: its value
    BATCH    one batch of a controller's log: its header, all of it if it is a control batch
    END      the first committed batch, and those with which snapshots end: likewise
    SNAPSHOT one snapshot beside a log: its bytes
    TRACE    some rows of one table of the trace (``packed_rows.Packed``), pickled
    ZNODES   some rows of the log of ZooKeeper, pickled
    ======== ==================================================================================
    """

    HEADING = 0
    DAMAGE = 1
    START = 2
    RECORD = 3
    BATCH = 4
    END = 5
    SNAPSHOT = 6
    TRACE = 7
    ZNODES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """What a judge has to know before the events of a run come.

    Shapes:  run: without its contents; None where there is nothing to judge: ``rejected`` is why.
             start: end offset, epoch and file of the snapshot from which the log is judged.
             in_files: batches are in the order of their files, since a run's histories look back at
             them, or offsets go back from one file to the next; else they come by their offsets.
    """

    run: Run | None
    shares: int
    start: tuple[int, int, str] | None = None
    logs: tuple[LogFacts, ...] = ()
    in_files: bool = False
    rejected: tuple[type[UserError], str] | None = None


RecordsOfBatch = tuple[int, list[int], list[bytes], dict[int, tuple[int, int]]]
"""The last offset of a batch, and those of its records that a share gets: offsets, and values.

The last is where ``operations.Entry`` is clean and unseen from, by offset; of a change of a
partition nobody asks.
"""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the rows of a run go: each of its shares has a slot.

    Shapes:  shares: among which the changes of partitions are divided. folds: one more share gets
             every record, and what is beside the log, since it folds all of it.
    """

    run: str
    first_slot: int
    shares: int
    folds: bool = False

    @property
    def every(self) -> range:
        """All shares."""
        return range(self.shares + self.folds)


class RowWriter:
    """Collects rows of one run as columns, and gives them as Arrow batches.

    Shapes:  phases: the kinds of rows that are wanted.
    """

    def __init__(
        self, target: Target, *, timed: bool = False, phases: Container[Phase] = tuple(Phase)
    ) -> None:
        self._target = target
        self._phases = phases
        self._timed = timed
        self._schema = TIMED_SCHEMA if timed else SCHEMA
        self._filled = [name for name in self._schema.names if name not in ("run", "slot")]
        self._columns = self._empty()
        self._records: dict[int, list[RecordsOfBatch]] = {}  # by share
        self._places: dict[int, int] = {}  # of their first, by share
        self._shares: dict[bytes, int] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._columns["share"]) + len(self._records)

    def _empty(self) -> dict[str, list[Any]]:
        return {name: [] for name in self._filled}

    def add(
        self,
        phase: Phase,
        record: bytes | None,
        shares: Iterable[int],
        *,
        place: int = 0,
        node: int | None = None,
        offset: int | None = None,
        subject: str | None = None,
    ) -> None:
        """Add a row, once for each of these shares."""
        if phase not in self._phases:
            return
        for share in shares:
            self._append(
                share=share,
                phase=phase,
                place=place,
                node=node,
                offset=offset,
                subject=subject,
                record=record,
            )

    def add_heading(self, heading: Heading) -> None:
        """Add the heading of the run, which every share needs."""
        self.add(Phase.HEADING, pickle.dumps(heading), self._target.every)

    def add_batch(self, phase: Phase, batch: RecordBatch, place: int, node: int | None) -> None:
        """Add the header of a batch: to the first share, or to the one that folds the log."""
        record = batch.encoded if batch.is_control else batch.encoded[:HEADER_BYTES]
        share = 0 if phase is Phase.BATCH else self._target.every[-1]
        self.add(phase, record, (share,), place=place, node=node, offset=batch.base_offset)

    def add_records(self, batch: RecordBatch, place: int, control_from: int) -> None:
        """Add the records of a committed batch, each to the shares that need it.

        Shapes:  place: of the first. control_from: where the control batches right before begin.
        Errors:  InvalidBatch.
        """
        if Phase.RECORD not in self._phases:
            return
        if self._timed:
            self._add_timed(batch, place)
            return
        target = self._target
        values = batch.values()
        base = batch.base_offset
        to: dict[int, tuple[list[int], list[bytes]]] = {share: ([], []) for share in target.every}
        seen_from: dict[int, tuple[int, int]] = {}
        clean_from = base  # behind the last record that changes no partition
        for offset, value in enumerate(values, base):
            share = _EVERY
            if value[:2] == CHANGE:
                share = self._share_of(value)
            else:
                is_first = clean_from == base and control_from >= 0
                seen_from[offset] = clean_from, control_from if is_first else clean_from
                clean_from = offset + 1
            of_one = to.get(share)
            for offsets, content in to.values() if of_one is None else (of_one,):
                offsets.append(offset)
                content.append(value)
            if target.folds and of_one is not None:
                offsets, content = to[target.shares]
                offsets.append(offset)
                content.append(value)
        self._bytes += sum(map(len, values))
        for share, (offsets, content) in to.items():
            if offsets:
                self._places.setdefault(share, place)
                records = batch.last_offset, offsets, content, seen_from
                self._records.setdefault(share, []).append(records)

    def _add_timed(self, batch: RecordBatch, place: int) -> None:
        """Add each record of a batch with its time, a change of a partition to its share alone."""
        every = self._target.every
        for index, (offset, time, _, content) in enumerate(batch.contents()):
            value = content or b""
            share = self._share_of(value) if value[:2] == CHANGE else _EVERY
            for to_share in every if share == _EVERY or self._target.shares == 1 else (share,):
                self._append(
                    share=to_share,
                    phase=Phase.RECORD,
                    place=place + index,
                    offset=offset,
                    batch=place,
                    ends=batch.last_offset,
                    record=value,
                    time=time,
                )

    def _append(self, **row: Any) -> None:
        for name, column in self._columns.items():
            column.append(row.get(name))
        self._bytes += len(row["record"] or b"")

    def _share_of(self, value: bytes) -> int:
        """The share that gets a change; the replicas of a first partition count for its topic."""
        key = value[KEY]
        share = self._shares.get(key)
        if share is None:
            share = share_of(key, self._target.shares) if any(key[:4]) else _EVERY
            self._shares[key] = share
        return share

    def taken(self) -> pa.RecordBatch:
        """The rows so far, which are forgotten here."""
        for share, batches in self._records.items():
            place, content = self._places[share], pickle.dumps(batches)
            self._append(share=share, phase=Phase.RECORD, place=place, record=content)
        self._records, self._places = {}, {}
        columns, target = self._columns, self._target
        self._bytes = 0
        self._columns = self._empty()
        count = len(columns["share"])
        arrays: dict[str, pa.Array] = {
            name: pa.array(values, self._schema.field(name).type)
            for name, values in columns.items()
        }
        slots = pa.array([target.first_slot + share for share in columns["share"]], pa.int32())
        arrays |= {"run": pa.array([target.run] * count, pa.string()), "slot": slots}
        ordered = [arrays[name] for name in self._schema.names]
        return pa.RecordBatch.from_arrays(ordered, schema=self._schema)

    def taken_if_full(self) -> Iterator[pa.RecordBatch]:
        """The rows so far, if they are many."""
        if len(self) >= BATCH_ROWS or self._bytes >= BATCH_BYTES:
            yield self.taken()


T = TypeVar("T")


def in_chunks(rows: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Sequences of at most so many."""
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


EventRow = tuple[Any, ...]
NODE, OFFSET, BATCH, ENDS, SUBJECT, RECORD, TIME = map(
    TIMED_SCHEMA.names.index, ("node", "offset", "batch", "ends", "subject", "record", "time")
)
"""Where the columns of a row are."""


def by_phase(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[str, int, int, int, Iterator[EventRow]]]:
    """Rows as a worker gets them: run, share, slot, phase, and the rows that follow each other."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        for key, rows in groupby(zip(*columns, strict=True), key=lambda row: row[:4]):
            run, share, slot, phase = key
            yield run, share, slot, phase, rows


def batch_of(content: bytes) -> RecordBatch:
    """A batch of a row: its header, the records of a control batch behind it."""
    length = (len(content) - LENGTH_END).to_bytes(4, "big")
    return RecordBatch.decode(content[:8] + length + content[LENGTH_END:], lenient=True)
