"""Evidence as rows: what tasks read, the exchange carries and the judges take.

A row is an event of a run, or some records of its log that follow each other. Rows of a run are in
the order of ``phase``, then of ``place``. A record is its bytes as they lie on disk: no row has a
list in it.
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

SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "slot": pa.int32(),  # the partition in which the run is judged
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
    start: tuple[int, int, str] | None = None
    logs: tuple[LogFacts, ...] = ()
    in_files: bool = False
    rejected: tuple[type[UserError], str] | None = None


RecordsOfBatch = tuple[int, list[int], list[bytes], dict[int, tuple[int, int]]]
"""The last offset of a batch, the offsets of its records, and their values.

The last is where ``operations.Entry`` is clean and unseen from, by offset; of a change of a
partition nobody asks.
"""


class RowWriter:
    """Collects rows of one run as columns, and gives them as Arrow batches.

    Shapes:  slot: the partition in which the run is judged. phases: the kinds of rows that are
             wanted.
    """

    def __init__(
        self,
        run: str,
        slot: int,
        *,
        timed: bool = False,
        phases: Container[Phase] = tuple(Phase),
    ) -> None:
        self._run, self._slot = run, slot
        self._phases = phases
        self._timed = timed
        self._schema = TIMED_SCHEMA if timed else SCHEMA
        self._filled = [name for name in self._schema.names if name not in ("run", "slot")]
        self._columns = self._empty()
        self._records: list[RecordsOfBatch] = []
        self._place = 0  # of the first of these records
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._columns["phase"]) + bool(self._records)

    def _empty(self) -> dict[str, list[Any]]:
        return {name: [] for name in self._filled}

    def add(
        self,
        phase: Phase,
        record: bytes | None,
        *,
        place: int = 0,
        node: int | None = None,
        offset: int | None = None,
        subject: str | None = None,
    ) -> None:
        """Add a row."""
        if phase in self._phases:
            self._append(
                phase=phase, place=place, node=node, offset=offset, subject=subject, record=record
            )

    def add_heading(self, heading: Heading) -> None:
        """Add the heading of the run."""
        self.add(Phase.HEADING, pickle.dumps(heading))

    def add_batch(self, phase: Phase, batch: RecordBatch, place: int, node: int | None) -> None:
        """Add the header of a batch, all of it where it is a control batch."""
        record = batch.encoded if batch.is_control else batch.encoded[:HEADER_BYTES]
        self.add(phase, record, place=place, node=node, offset=batch.base_offset)

    def add_records(self, batch: RecordBatch, place: int, control_from: int) -> None:
        """Add the records of a committed batch.

        Shapes:  place: of the first. control_from: where the control batches right before begin.
        Errors:  InvalidBatch.
        """
        if Phase.RECORD not in self._phases:
            return
        if self._timed:
            self._add_timed(batch, place)
            return
        values, base = batch.values(), batch.base_offset
        seen_from: dict[int, tuple[int, int]] = {}
        clean_from = base  # behind the last record that changes no partition
        for offset, value in enumerate(values, base):
            if value[:2] != CHANGE:
                is_first = clean_from == base and control_from >= 0
                seen_from[offset] = clean_from, control_from if is_first else clean_from
                clean_from = offset + 1
        self._bytes += sum(map(len, values))
        if not self._records:
            self._place = place
        offsets = list(range(base, base + len(values)))
        self._records.append((batch.last_offset, offsets, values, seen_from))

    def _add_timed(self, batch: RecordBatch, place: int) -> None:
        """Add each record of a batch with its time."""
        for index, (offset, time, _, content) in enumerate(batch.contents()):
            self._append(
                phase=Phase.RECORD,
                place=place + index,
                offset=offset,
                batch=place,
                ends=batch.last_offset,
                record=content or b"",
                time=time,
            )

    def _append(self, **row: Any) -> None:
        for name, column in self._columns.items():
            column.append(row.get(name))
        self._bytes += len(row["record"] or b"")

    def taken(self) -> pa.RecordBatch:
        """The rows so far, which are forgotten here."""
        if self._records:
            content = pickle.dumps(self._records)
            self._append(phase=Phase.RECORD, place=self._place, record=content)
        columns = self._columns
        self._records, self._columns, self._bytes = [], self._empty(), 0
        count = len(columns["phase"])
        arrays: dict[str, pa.Array] = {
            name: pa.array(values, self._schema.field(name).type)
            for name, values in columns.items()
        }
        arrays["run"] = pa.array([self._run] * count, pa.string())
        arrays["slot"] = pa.array([self._slot] * count, pa.int32())
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
) -> Iterator[tuple[str, int, int, Iterator[EventRow]]]:
    """Rows as a worker gets them: run, slot, phase, and the rows that follow each other."""
    for batch in batches:
        columns = [column.to_pylist() for column in batch.columns]
        for key, rows in groupby(zip(*columns, strict=True), key=lambda row: row[:3]):
            yield *key, rows


def batch_of(content: bytes) -> RecordBatch:
    """A batch of a row: its header, the records of a control batch behind it."""
    length = (len(content) - LENGTH_END).to_bytes(4, "big")
    return RecordBatch.decode(content[:8] + length + content[LENGTH_END:], lenient=True)
