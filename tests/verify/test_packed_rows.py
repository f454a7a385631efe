"""Rows of the trace keep their values while they are packed, and come in any order."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.verify.evidence import packed_rows
from minicluster.verify.evidence.packed_rows import PackedRows, pack

LOGS, RECORDS = 40, 2_000

cells = st.fixed_dictionaries(
    {
        "topic_id": st.none() | st.sampled_from(["a", "b"]),
        "part": st.integers(0, 2),
        "offset": st.none() | st.integers(-(2**40), 2**40),
        "isr": st.none() | st.lists(st.integers(1, 3), max_size=3),
    }
)


@given(
    st.lists(cells, min_size=1, max_size=30), st.sampled_from([("offset",), ("topic_id", "part")])
)
def test_rows_come_in_the_order_of_their_columns_nulls_last(
    rows: list[dict[str, Any]], names: tuple[str, ...]
) -> None:
    packed = PackedRows(list(pack(pa.Table.from_pylist(rows))))
    ordered = sorted(rows, key=lambda row: [(row[name] is None, row[name] or 0) for name in names])

    assert [dict(row) for row in packed] == rows
    assert [dict(row) for row in packed.in_order(names)] == ordered
    assert len(packed.in_order(names)) == len(packed) == len(rows)


def test_each_record_of_many_logs_is_read_without_unpacking_them_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A run in which brokers died 40 times has 40 listings of each record, far from one another."""
    rows = [{"broker": log, "offset": n} for log in range(LOGS) for n in range(RECORDS)]
    packed = PackedRows(list(pack(pa.Table.from_pylist(rows))))
    in_order = packed.in_order(("offset", "broker"))
    unpacked: list[str] = []
    unpack = packed_rows._Columns.__missing__

    def counted(columns: packed_rows._Columns, name: str) -> list[Any]:
        unpacked.append(name)
        return unpack(columns, name)

    monkeypatch.setattr(packed_rows._Columns, "__missing__", counted)
    assert [row["broker"] for row in in_order] == list(range(LOGS)) * RECORDS
    assert len(unpacked) == LOGS
