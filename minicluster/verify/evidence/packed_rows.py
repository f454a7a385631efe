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
from itertools import accumulate, count
from operator import eq
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Packed = tuple[int, Mapping[str, tuple[int, bytes]]]
"""A piece: how many rows, and by name each column: the length of its pickled cells, and these."""

_PIECE_ROWS = 2_000
_OPEN_PIECES = 256  # of rows in another order
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
        self._orders: dict[tuple[str, ...], Sequence[int] | None] = {}

    def __len__(self) -> int:
        return sum(rows for rows, _ in self._pieces)

    def __iter__(self) -> Iterator[StoredRow]:
        for rows, packed in self._pieces:
            columns = _Columns(packed)
            for index in range(rows):
                yield StoredRow(columns, index)

    def in_order(self, columns: Sequence[str]) -> PackedRows | RowsInOrder:
        """All rows by some columns, nulls last; equal ones stay in the table's order."""
        names = tuple(columns)
        if names not in self._orders:
            self._orders[names] = self._order(names)
        order = self._orders[names]
        return self if order is None else RowsInOrder(self._pieces, order)

    def _order(self, names: Sequence[str]) -> Sequence[int] | None:
        """The places of the rows in another order; None: it is the table's, as of nearly all."""
        keys = pa.table({name: pa.array(self._cells(name)) for name in names})
        order = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in names])
        places = memoryview(order.to_numpy())  # numbers that are not made before they are used
        return None if all(map(eq, places, count())) else places

    def _cells(self, name: str) -> list[Any]:
        return [cell for _, packed in self._pieces for cell in _Columns(packed)[name]]


class RowsInOrder:
    """The rows at these places of a table, one after the other.

    Neighbours by their record are of the logs of all replicas, as each was listed whenever its
    broker died; so many pieces are open at a time, else each row would unpack its own again.
    """

    def __init__(self, pieces: Sequence[Packed], places: Sequence[int]) -> None:
        self._pieces, self._places = pieces, places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[StoredRow]:
        starts = list(accumulate((rows for rows, _ in self._pieces), initial=0))

        @lru_cache(_OPEN_PIECES)
        def opened(piece: int) -> _Columns:
            return _Columns(self._pieces[piece][1])

        for place in self._places:
            piece = bisect_right(starts, place) - 1
            yield StoredRow(opened(piece), place - starts[piece])


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
