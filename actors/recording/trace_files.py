"""The tables of a trace as Parquet files: whole row groups of the shelf first, then rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.actors.recording.columns import Row, arrow_table, kinds_of, schema_of
from minicluster.actors.recording.shelf import RowGroup

if TYPE_CHECKING:
    import pyarrow as pa

END_ROWS = 1_000  # of the end of a run, for which no actor waits, at a time


def write_table(
    path: Path,
    table: str,
    shelved: Iterable[pa.Table],
    rows: Iterable[Row],
    *,
    last: Iterable[pa.Table],
    piece_rows: int,
    group_rows: int,
    on_rows: Callable[[int], None] = lambda rows: None,
) -> int:
    """Write a table as Parquet: whole groups first, then rows, in groups of one size.

    Shapes:  last: rows behind all others. piece_rows: how many were put on the shelf at a time.
             on_rows: called with the number of rows that are written, after each group.
             -> how many there are.
    """
    from pyarrow import parquet

    left = iter(rows)
    # Numbers and texts of requests differ: dictionaries of them cost half of the time, and a third
    # of the bytes.
    with_dictionary = [
        name for name, kind in kinds_of(table).items() if kind not in ("json", "int")
    ]
    with (
        path.open("wb") as file,  # Arrow opens no name that the locale's encoding lacks
        parquet.ParquetWriter(
            file, schema_of(table), compression="zstd", use_dictionary=with_dictionary
        ) as writer,
    ):
        written = _Written(writer, group_rows, on_rows)
        for content in shelved:
            written.add(content)
        while piece := list(islice(left, piece_rows)):
            written.add(arrow_table(table, piece))
        for content in last:
            for first in range(0, content.num_rows, END_ROWS):
                written.add(content.slice(first, END_ROWS))
        written.finish()
    return written.rows


class _Written:
    """A Parquet file that is being written, a row group at a time."""

    def __init__(self, writer: Any, group_rows: int, on_rows: Callable[[int], None]) -> None:
        self._writer, self._group_rows, self._on_rows = writer, group_rows, on_rows
        self._group = RowGroup(group_rows)
        self.rows = 0

    def add(self, piece: pa.Table) -> None:
        """Add rows behind those that are there."""
        self.rows += piece.num_rows
        self._group.add(piece, {})
        if self._group.is_full:
            self.finish()

    def finish(self) -> None:
        """Write the rows that wait."""
        import pyarrow as pa

        if self._group.rows:
            self._writer.write_table(pa.concat_tables(self._group.pieces).combine_chunks())
            self._group = RowGroup(self._group_rows)
            self._on_rows(self.rows)
