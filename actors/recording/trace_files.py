"""The tables of a trace as Parquet files, in row groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.actors.recording.columns import kinds_of, schema_of

if TYPE_CHECKING:
    import pyarrow as pa

GROUP_ROWS = 10_000
GROUP_BYTES = 64 * 1024 * 1024  # of columns in memory; a row may have any size


def write_table(
    path: Path,
    table: str,
    content: Iterable[pa.Table],
    on_rows: Callable[[int], None] = lambda rows: None,
) -> int:
    """Write a table as Parquet.

    Shapes:  content: the rows in pieces. on_rows: called with the number of rows that are written,
             after each group. -> how many there are.
    """
    from pyarrow import parquet

    # Numbers and texts of requests differ: dictionaries of them cost half of the time, and a third
    # of the bytes.
    with_dictionary = [
        name for name, kind in kinds_of(table).items() if kind not in ("json", "int")
    ]
    rows = 0
    with (
        path.open("wb") as file,  # Arrow opens no name that the locale's encoding lacks
        parquet.ParquetWriter(
            file, schema_of(table), compression="zstd", use_dictionary=with_dictionary
        ) as writer,
    ):
        for group in _groups(content):
            writer.write_table(group)
            rows += group.num_rows
            on_rows(rows)
    return rows


def _groups(content: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Pieces together, as row groups."""
    import pyarrow as pa

    pieces: list[pa.Table] = []
    rows = size = 0
    for piece in content:
        pieces.append(piece)
        rows += piece.num_rows
        size += piece.nbytes
        if rows >= GROUP_ROWS or size >= GROUP_BYTES:
            yield pa.concat_tables(pieces).combine_chunks()
            pieces, rows, size = [], 0, 0
    if rows:
        yield pa.concat_tables(pieces).combine_chunks()
