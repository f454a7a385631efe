"""The tables of a run's trace: the latest rows in memory, those before them in files.

A row comes here when what it tells has ended, and does not change. It is written when memory has
more rows than it is to have: some hundred at a time, since an actor waits meanwhile, pickled behind
those of its table. The files have a bound in bytes. Beyond it the oldest file goes of the table
that takes the most room, so that the tables with few rows, such as elections and disturbances, stay
whole.

Columns are made of a row when it is read: nobody reads those of most runs, and pickled rows take
half the room of Arrow's columns and a third of the time.
"""

from __future__ import annotations

import errno
import itertools
import os
import pickle
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import cramjam
from msgspec import Struct
from msgspec.msgpack import Encoder

from minicluster import trace
from minicluster.actors.recording.columns import arrow_tables
from minicluster.actors.recording.problems import Problems, RecorderProblem

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_IN_MEMORY = 20_000  # of each table; more after a burst
BYTES_IN_MEMORY = 32 * 1024 * 1024  # of requests and responses, about
BYTES_ON_DISK = 160 * 1024 * 1024  # some nine million rows
PIECE_ROWS = 500  # that are written at a time: some 8 ms for requests
PIECE_BYTES = 512 * 1024
BURST = 16  # of more pieces than one that are to be written, this part is, in addition
FILE_BYTES = 4 * 1024 * 1024
_LENGTH_BYTES = 4
FILES = 16  # at least, of a full trace: the bound drops one at a time


class Entry(Protocol):
    """A row in memory; it is made of columns when it is read or written.

    Shapes:  seq: its event's number. vt: its time. weight: bytes of its messages, about.
    """

    seq: int
    vt: int

    @property
    def weight(self) -> int: ...

    def row(self, table: str) -> dict[str, Any]:
        """Every column, but the run's name."""


class TraceRow(Struct, array_like=True, gc=False):
    """An event that is a row, with the columns that were given."""

    seq: int
    vt: int
    values: Mapping[str, Any]

    @property
    def weight(self) -> int:
        """Nothing: only messages have a bound in bytes."""
        return 0

    def row(self, table: str) -> dict[str, Any]:
        """Every column, but the run's name."""
        row = trace.row(table, self.values)
        row["vt"], row["seq"] = self.vt, self.seq
        return row


class TableFile:
    """Rows of a table in a file that grows; it can be read at any time.

    Shapes:  last: event number and time of its last row.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows = self.bytes = 0
        self.last = 0, 0
        self._file = path.open("wb", buffering=0)

    def write(self, piece: Sequence[Entry]) -> None:
        """Add rows behind those that are there.

        Errors:  OSError; what pickle raises for a row that holds what is no value.
        """
        content = bytes(cramjam.zstd.compress(pickle.dumps(piece, pickle.HIGHEST_PROTOCOL)))
        block = len(content).to_bytes(_LENGTH_BYTES, "big") + content
        if self._file.write(block) < len(block):  # the disk took a part before it was full
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.path))
        self.rows += len(piece)
        self.bytes += len(block)
        self.last = piece[-1].seq, piece[-1].vt

    def read(self) -> Iterator[Entry]:
        """The rows, in the order in which they were written."""
        with self.path.open("rb") as file:
            while length := file.read(_LENGTH_BYTES):
                content = file.read(int.from_bytes(length, "big"))
                yield from pickle.loads(cramjam.zstd.decompress(content))

    def remove(self) -> None:
        """Remove it, with its rows."""
        self._file.close()
        self.path.unlink()


class Table:
    """One table: its files, oldest first, and the rows behind them.

    Shapes:  dropped: how many rows the bound has cost. last_dropped: the event and the time of the
             last of them.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.kept: list[Any] = []  # Entry; those of one table are of one kind
        self.files: list[TableFile] = []
        self.dropped = 0
        self.last_dropped = 0, 0
        self.hash = blake2b(digest_size=16)  # of the rows that are in files, or were

    @property
    def bytes(self) -> int:
        """The bytes of its files."""
        return sum(file.bytes for file in self.files)

    def oldest(self, rows_max: int, bytes_max: int) -> list[Entry]:
        """The oldest rows in memory: so many, or fewer where they are large."""
        count = weight = 0
        for entry in islice(self.kept, rows_max):
            weight += entry.weight
            if count and weight > bytes_max:
                break
            count += 1
        return self.kept[:count]

    def drop_oldest_file(self) -> None:
        """Lose the oldest rows."""
        oldest = self.files.pop(0)
        self.dropped += oldest.rows
        self.last_dropped = oldest.last
        oldest.remove()


class Tables:
    """All tables of a run. What cannot be made or written of a row is a problem of the run.

    Shapes:  weight: bytes of the messages in memory, those of open exchanges included.
    """

    def __init__(self, run_id: str, problems: Problems) -> None:
        self.run_id = run_id
        self.hashed = True  # False: nobody compares the hash of this run
        self.rows_in_memory, self.bytes_in_memory = ROWS_IN_MEMORY, BYTES_IN_MEMORY
        self.bytes_on_disk = BYTES_ON_DISK
        self.piece_rows = PIECE_ROWS
        self.weight = 0
        self._added = 0  # rows since the last look at what is too much
        self._problems = problems
        self._tables = {name: Table(name) for name in trace.TABLES}
        self._folder: Path | None = None
        self._files = itertools.count(1)
        self._lock = threading.RLock()  # of who writes or reads; an actor that adds takes none

    def __getitem__(self, table: str) -> Table:
        return self._tables[table]

    def add(self, table: str, entry: Entry) -> None:
        """Add a row, which changes no more.

        Errors:  KeyError for a table that is not declared.
        """
        self._tables[table].kept.append(entry)
        self._added += 1

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(table.bytes for table in self._tables.values())

    @property
    def are_in_memory(self) -> bool:
        """No row has been written yet."""
        return self._folder is None

    def dropped(self) -> Iterator[RecorderProblem]:
        """The tables that the bound on disk has made shorter."""
        most = f"{self.bytes_on_disk // 1_000_000:,} MB"
        for table in self._tables.values():
            if table.dropped:
                yield RecorderProblem(
                    table.name,
                    f"the trace table {table.name} lacks its first {table.dropped:,} rows, up to "
                    f"{table.last_dropped[1] / 1000:,.1f} s: a trace takes at most {most} on disk",
                )

    # From memory to disk.

    def relieve(self) -> None:
        """Write some of the oldest rows, where there are more than memory is to have.

        To be called with each request. A change of thousands of partitions makes thousands of rows
        at once: what is left of a burst is written by the next calls.
        """
        if self._added >= self.piece_rows:
            self._added = 0
            most = self.rows_in_memory + self.piece_rows
            for table in self._tables.values():
                if len(table.kept) >= most:
                    self._write_some(table, (len(table.kept) - most) // self.piece_rows)
                    self._added = self.piece_rows  # a rest of it is written with the next request
        if self.weight > self.bytes_in_memory:
            more = (self.weight - self.bytes_in_memory) // PIECE_BYTES
            self._write_some(self._tables["rpc"], more)

    def relieve_table(self, name: str) -> None:
        """The same for one table, to which a piece of rows has come without a request."""
        table = self._tables[name]
        if len(table.kept) >= self.rows_in_memory + self.piece_rows:
            self._write_some(table, 0)

    def _write_some(self, table: Table, more: int) -> None:
        """Write one piece, and a part of those that are too many beside it."""
        with self._lock:
            for _ in range(1 + more // BURST):
                if piece := table.oldest(self.piece_rows, PIECE_BYTES):
                    self._write(table, piece)
                    del table.kept[: len(piece)]  # in place: another thread may be about to append
                    self.weight -= sum(entry.weight for entry in piece)

    def _write(self, table: Table, piece: Sequence[Entry]) -> None:
        """Write rows. Where the disk takes none (it is full) they are lost."""
        if self.hashed:
            self._hash(table.hash, piece)
        with self._problems.noted(f"the move of rows of {table.name} to disk", table.name):
            self._append(table, piece)

    def _append(self, table: Table, piece: Sequence[Entry]) -> None:
        file_bytes = min(FILE_BYTES, self.bytes_on_disk // FILES)
        if not table.files or table.files[-1].bytes >= file_bytes:
            table.files.append(TableFile(self._new_path(table.name)))
        try:
            table.files[-1].write(piece)
        except Exception:
            table.files.pop().remove()  # it may end in the midst of a piece
            raise
        while self.bytes > self.bytes_on_disk:
            max(self._tables.values(), key=lambda table: table.bytes).drop_oldest_file()

    def _new_path(self, table: str) -> Path:
        if self._folder is None:
            from minicluster.own_folders import temporary_folder  # most runs write nothing

            own = temporary_folder("trace")
            weakref.finalize(self, own.cleanup)
            self._folder = own.path
        return self._folder / f"{table}-{next(self._files)}.rows"

    # Reading.

    def rows(self, name: str, last: Iterable[Entry] = ()) -> Iterator[dict[str, Any]]:
        """The rows of a table with every column, in the order in which they came.

        Shapes:  last: rows of what has not ended, which come behind all others.
        """
        yield from self._made(name, self._entries(name, last))

    def columns(self, name: str, last: Iterable[Entry] = ()) -> Iterator[pa.Table]:
        """The same rows as columns, some at a time.

        Errors:  TypeError, ValueError, OverflowError: a value is not of its column's kind.
        """
        yield from arrow_tables(name, self.rows(name, last), self.piece_rows)

    def _entries(self, name: str, last: Iterable[Entry]) -> Iterator[Entry]:
        table = self._tables[name]
        with self._lock:
            files, kept = list(table.files), list(table.kept)
        return chain(chain.from_iterable(file.read() for file in files), kept, last)

    def digest(self, last: Mapping[str, Iterable[Entry]]) -> str:
        """A hash over every row so far, those of what has not ended included."""
        assert self.hashed, "this run has no hash"
        whole = blake2b(digest_size=16)
        with self._lock:
            for name, table in self._tables.items():
                of_table = table.hash.copy()
                self._hash(of_table, chain(table.kept, last.get(name, ())))
                whole.update(of_table.digest())
        return whole.hexdigest()

    def _hash(self, of_table: blake2b, entries: Iterable[Entry]) -> None:
        for entry in entries:
            try:
                of_table.update(_packed(entry))
            except Exception as error:
                self._problems.add("the hash of a row", error)

    def _made(self, table: str, entries: Iterable[Entry]) -> Iterator[dict[str, Any]]:
        """The rows, without those that cannot be made."""
        for entry in entries:
            try:
                row = entry.row(table)
            except Exception as error:
                self._problems.add(f"a row of the trace table {table}", error, table)
            else:
                row["run_id"] = self.run_id
                yield row


# A row's text is the same in every process; what MessagePack does not know has its own.
_packed = Encoder(enc_hook=str).encode
