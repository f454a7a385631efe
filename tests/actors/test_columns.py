"""The columns of trace tables, from values as recorders have them."""

from __future__ import annotations

import enum
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.actors.recording.columns import arrow_type, column

INT64 = st.integers(-(1 << 63), (1 << 63) - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int": INT64,
    "str": TEXT,
    "bool": st.booleans(),
    "ints": st.lists(INT64, max_size=5),
    "json": TEXT,
}


class Color(enum.IntEnum):
    RED = 7


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_a_column_is_that_of_arrow(kind: str, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind], max_size=40))
    made = column(kind, values)
    made.validate(full=True)
    assert made.equals(pa.array(values, type=arrow_type(kind)))


def test_values_may_be_of_other_classes() -> None:
    assert column("int", [Color.RED, None, True]).to_pylist() == [7, None, 1]
    assert column("str", [Color.RED, "text"]).to_pylist() == [str(Color.RED), "text"]
    assert column("ints", [(Color.RED, 2), None]).to_pylist() == [[7, 2], None]
    assert column("json", [{"a": [1]}, "{}", None]).to_pylist() == ['{"a":[1]}', "{}", None]


@pytest.mark.parametrize(("kind", "value"), [("int", "x"), ("int", 1 << 63), ("ints", ["x"])])
def test_a_value_of_another_kind_is_an_error(kind: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        column(kind, [None, value])
