"""The rows of a table of the trace, packed: in pieces, each column of a piece by itself.

A trace has as many rows as its cluster had events, and each history goes through them once, for
some of their columns. As a dictionary a row takes a kilobyte, in Arrow's form 200 to 900 bytes,
packed 5 to 40, as in the file. A column is unpacked where a history first asks for it, and dropped
with its piece as the history continues. That takes some 15 ns a cell: it is done again for each
history, since holding what is unpacked would take the memory that packing saves.

The cells are pickled rather than in Arrow's own streams, as which a run took a quarter longer to
judge and a fifth more memory: Arrow makes a new string for each cell, where here equal cells are
one object.
"""

from __future__ import annotations

import pickle
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import Any

import pyarrow as pa

Packed = tuple[int, Mapping[str, tuple[int, bytes]]]
"""A piece: how many rows, and by name each column: the length of its pickled cells, and these."""

_PIECE_ROWS = 2_000
_OPEN_PIECES = 16  # as rows are put into another order, in which neighbours are of a few pieces
_CODEC = "zstd"


class StoredRow(Mapping[str, Any]):
    """A row where it lies: keeping it keeps its piece, so a history that keeps a row copies it."""

    __slots__ = ("_columns", "_index")

    def __init__(self, columns: _Columns, index: int) -> None:
        self._columns, self._index = columns, index

    def __getitem__(self, name: str) -> Any:
        return self._columns[name][self._index]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns.packed)

    def __len__(self) -> int:
        return len(self._columns.packed)

    def get(self, name: str, default: Any = None) -> Any:
        """The cell of a column, the default where the table has no such column."""
        columns = self._columns
        return columns[name][self._index] if name in columns.packed else default


class _Columns(dict[str, list[Any]]):
    """The cells of a piece by column, unpacked where they are asked for."""

    __slots__ = ("packed",)

    def __init__(self, packed: Mapping[str, tuple[int, bytes]]) -> None:
        super().__init__()
        self.packed = packed

    def __missing__(self, name: str) -> list[Any]:
        size, content = self.packed[name]
        cells: list[Any] = pickle.loads(pa.decompress(content, size, _CODEC, asbytes=True))
        self[name] = cells
        return cells


class PackedRows:
    """All rows of a table; who goes through them gets them made one by one."""

    def __init__(self, pieces: Sequence[Packed]) -> None:
        self._pieces = pieces
        self._orders: dict[tuple[str, ...], PackedRows] = {}

    def __len__(self) -> int:
        return sum(count for count, _ in self._pieces)

    def __iter__(self) -> Iterator[StoredRow]:
        for count, packed in self._pieces:
            columns = _Columns(packed)
            for index in range(count):
                yield StoredRow(columns, index)

    def in_order(self, columns: Sequence[str]) -> PackedRows:
        """All rows by some columns, nulls last; equal ones stay in the table's order."""
        names = tuple(columns)
        ordered = self._orders.get(names)
        if ordered is None:
            ordered = self._orders[names] = self if self._has_order(names) else self._sorted(names)
        return ordered

    def _has_order(self, names: Sequence[str]) -> bool:
        """Nothing is to be done, as in nearly all tables by their events."""
        places = ([(row[name] is None, row[name]) for name in names] for row in self)
        return all(before <= place for before, place in pairwise(places))

    def _sorted(self, names: Sequence[str]) -> PackedRows:
        order = list(range(len(self)))
        for name in reversed(names):
            cells = [row[name] for row in self]
            if None in cells:
                order.sort(key=lambda index: (cells[index] is None, cells[index]))
            else:
                order.sort(key=cells.__getitem__)
        starts = list(accumulate((count for count, _ in self._pieces), initial=0))

        @lru_cache(_OPEN_PIECES)
        def opened(piece: int) -> _Columns:
            return _Columns(self._pieces[piece][1])

        pieces: list[Packed] = []
        for start in range(0, len(order), _PIECE_ROWS):
            rows = []
            for index in order[start : start + _PIECE_ROWS]:
                piece = bisect_right(starts, index) - 1
                rows.append(StoredRow(opened(piece), index - starts[piece]))
            columns = {name: [row[name] for row in rows] for name in rows[0]}
            pieces.append(_packed(len(rows), columns))
        return PackedRows(pieces)


def pack(table: pa.Table) -> Iterator[Packed]:
    """Pack rows that Arrow holds."""
    for start in range(0, table.num_rows, _PIECE_ROWS):
        piece = table.slice(start, _PIECE_ROWS)
        columns = {name: piece[name].to_pylist() for name in piece.column_names}
        yield _packed(piece.num_rows, columns)


def _packed(count: int, columns: Mapping[str, list[Any]]) -> Packed:
    packed: dict[str, tuple[int, bytes]] = {}
    for name, cells in columns.items():
        content = pickle.dumps(_shared(cells), pickle.HIGHEST_PROTOCOL)
        packed[name] = len(content), pa.compress(content, _CODEC, asbytes=True)
    return count, packed


def _shared(cells: list[Any]) -> list[Any]:
    """The same cells, where equal ones are one object: pickle writes it once, and makes it once."""
    known: dict[Any, Any] = {}
    return [
        known.setdefault(tuple(cell) if isinstance(cell, list) else cell, cell) for cell in cells
    ]
