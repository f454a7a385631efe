"""A shelf for the rows of a trace beyond the memory bound.

A long run puts its oldest rows on the shelf, some hundred at a time since an actor waits for it.
They become columns at once, and a file once there are as many as a row group has. What is saved in
the end is the same file, byte for byte, whether or not anything was on the shelf
(``tests/actors/test_long_runs.py``).

The files have a bound in bytes. Beyond it the oldest file goes of the table that takes the most
room, so that the tables with few rows, such as elections and disturbances, stay whole.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster import trace
from minicluster.actors.recording.columns import Row, arrow_table
from minicluster.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

# An actor waits while a group becomes a file: some 10 ms.
GROUP_ROWS = 10_000
GROUP_BYTES = 4 * 1024 * 1024  # of columns in memory; a row may have any size
UNSETTLED_MAX = 2_000  # rows that are in memory as well, since they may still change


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A row that may still change.

    Shapes:  forget: called where nobody waits for its end any more.
    """

    row: Callable[[], Row]
    is_settled: Callable[[], bool]
    forget: Callable[[], None] = lambda: None


@dataclass(slots=True)
class RowGroup:
    """Rows as columns: pieces in memory, until they are one file.

    Shapes:  unsettled: by the index in the group. last: event number and time of the last row.
    """

    rows_max: int
    pieces: list[pa.Table] = field(default_factory=list)
    unsettled: dict[int, Unsettled] = field(default_factory=dict)
    rows: int = 0
    bytes: int = 0
    last: tuple[int, int] = (0, 0)
    file: Path | None = None

    @property
    def is_full(self) -> bool:
        """It is a row group."""
        return self.rows >= self.rows_max or self.bytes >= GROUP_BYTES

    def add(self, piece: pa.Table, unsettled: Mapping[int, Unsettled]) -> None:
        """Add rows behind those that are here."""
        self.unsettled |= {self.rows + index: row for index, row in unsettled.items()}
        self.pieces.append(piece)
        self.rows += piece.num_rows
        self.bytes += piece.nbytes
        if piece.num_rows:
            self.last = piece["seq"][-1].as_py(), piece["vt"][-1].as_py()

    def read(self, table: str) -> pa.Table:
        """The rows as they are now."""
        return self._read(table, self.unsettled)

    def _read(self, table: str, changed: Mapping[int, Unsettled]) -> pa.Table:
        """The rows with these as they are now, in the order of their indexes."""
        import pyarrow as pa

        if self.file is None:
            content = pa.concat_tables(self.pieces)
        else:
            with pa.OSFile(str(self.file)) as source:
                content = pa.ipc.open_file(source).read_all()
        if changed:
            now = arrow_table(table, [unsettled.row() for unsettled in changed.values()])
            parts, end = [], 0
            for number, index in enumerate(changed):
                parts += [content.slice(end, index - end), now.slice(number, 1)]
                end = index + 1
            content = pa.concat_tables([*parts, content.slice(end)])
        return content.combine_chunks()

    def write(self, table: str, file: Path) -> int:
        """Put the rows into a file; those that may still change stay here as well.

        Shapes:  -> bytes of the file.
        """
        import pyarrow as pa

        # Those that may still change are read from here again. They are not made for the file as
        # well: a hundred requests to a dead leader, with all of its partitions, take long.
        unsettled: dict[int, Unsettled] = {}
        settled: dict[int, Unsettled] = {}
        for index, row in self.unsettled.items():
            (settled if row.is_settled() else unsettled)[index] = row
        content = self._read(table, settled)
        # Not by pyarrow.feather, which loads pandas: 30 MB and half a second.
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_file(str(file), content.schema, options=options) as writer:
            writer.write_table(content)
        self.file, self.pieces, self.unsettled = file, [], unsettled
        return file.stat().st_size


@dataclass(slots=True)
class Dropped:
    """The rows that a table has lost to the bound: how many, and the last one's event and time."""

    rows: int = 0
    last_seq: int = 0
    last_ms: int = 0


class Shelf:
    """Rows in files of a temporary folder, which goes when the shelf does.

    Rows that may still change stay in memory besides, and are read from there.

    Units:   bytes_max: of the files.
    """

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.group_rows = GROUP_ROWS
        self.unsettled_max = UNSETTLED_MAX
        self.dropped: dict[str, Dropped] = {}
        self._folder: Path | None = None
        self._files = 0
        self._sizes: dict[Path, int] = {}
        self._groups: dict[str, list[RowGroup]] = {}

    @property
    def bytes(self) -> int:
        """The bytes of all files."""
        return sum(self._sizes.values())

    def put(self, table: str, rows: Sequence[Row], unsettled: Mapping[int, Unsettled]) -> None:
        """Put rows away, behind those of their table that are here.

        Shapes:  unsettled: by the index in the rows.
        """
        groups = self._groups.setdefault(table, [])
        if not groups or groups[-1].is_full:
            groups.append(RowGroup(self.group_rows))
        group = groups[-1]
        group.add(arrow_table(table, rows), unsettled)
        if group.is_full:
            try:
                self._write(table, group)
            except Exception:
                groups.remove(group)  # a full disk must not fill the memory as well
                raise

    def _write(self, table: str, group: RowGroup) -> None:
        from minicluster.own_folders import temporary_folder

        if self._folder is None:
            own = temporary_folder("trace")
            weakref.finalize(self, own.cleanup)
            self._folder = own.path
        self._files += 1
        file = self._folder / f"{table}-{self._files}.arrow"
        self._sizes[file] = group.write(table, file)
        while self.bytes > self.bytes_max:
            self._drop(max(self._groups, key=self._bytes_of))
        self._forget(table)

    def _forget(self, table: str) -> None:
        """Let the oldest rows be as they are that have waited longest for their end.

        A lost request may have none, and a day of them is as long as the day.
        """
        groups = self._groups[table]
        over = sum(len(group.unsettled) for group in groups) - self.unsettled_max
        for group in groups:
            for index in list(group.unsettled)[: max(0, over)]:
                group.unsettled.pop(index).forget()
                over -= 1

    def _bytes_of(self, table: str) -> int:
        return sum(self._sizes[group.file] for group in self._groups[table] if group.file)

    def _drop(self, table: str) -> None:
        """Drop the oldest file of a table."""
        oldest = self._groups[table].pop(0)
        assert oldest.file is not None, "only the newest group of a table is not a file"
        del self._sizes[oldest.file]
        oldest.file.unlink()
        dropped = self.dropped.setdefault(table, Dropped())
        dropped.rows += oldest.rows
        dropped.last_seq, dropped.last_ms = oldest.last

    @property
    def is_empty(self) -> bool:
        """No row has been put away yet."""
        return not self._groups

    def count(self, table: str) -> int:
        """The number of rows of a table on the shelf."""
        return sum(group.rows for group in self._groups.get(table, ()))

    def groups(self, table: str) -> Iterator[pa.Table]:
        """The rows of a table that are here now, oldest first; all but the last are row groups."""
        return (group.read(table) for group in tuple(self._groups.get(table, ())))

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """The rows of a table that are here now, oldest first."""
        parsed = [name for name, kind in trace.TABLES[table].items() if kind == "json"]
        return (
            {**row, **{name: _from_json(row[name]) for name in parsed}}
            for group in self.groups(table)
            for row in group.to_pylist()
        )


def _from_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)
