"""The columns of trace tables are those that ``pyarrow.array`` makes, and load no pandas."""

from __future__ import annotations

import enum
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.actors.recording.columns import arrow_type, column, repeated, text_column

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
    for value in values[:1]:
        assert repeated(kind, value, 9).equals(pa.array([value] * 9, type=arrow_type(kind)))


def test_values_may_be_of_other_classes() -> None:
    assert column("int", [Color.RED, None, True]).to_pylist() == [7, None, 1]
    assert column("str", [Color.RED, "text"]).to_pylist() == [str(Color.RED), "text"]
    assert column("ints", [(Color.RED, 2), None]).to_pylist() == [[7, 2], None]
    assert column("json", [{"a": [1]}, "{}", None]).to_pylist() == ['{"a":[1]}', "{}", None]
    assert text_column([b"one", "größer".encode(), b""]).to_pylist() == ["one", "größer", ""]


@pytest.mark.parametrize(("kind", "value"), [("int", "x"), ("int", 1 << 63), ("ints", ["x"])])
def test_a_value_of_another_kind_is_an_error(kind: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        column(kind, [None, value])


def test_a_run_is_saved_without_pandas() -> None:
    """It takes 44 MB and 0.3 s, of an actor or of the end of ``serve``."""
    program = (
        "import sys, tempfile\n"
        "from minicluster import MiniCluster\n"
        "from minicluster.actors.cluster.mini_cluster import inside\n"
        "with MiniCluster(seed=1) as cluster:\n"
        "    recorder = inside(cluster).recorder\n"
        "    recorder.fold_at, recorder.rows_in_memory, recorder.piece_rows = 200, 64, 64\n"
        "    recorder.shelf.group_rows = 64\n"
        "    cluster.produce(cluster.create_topic('orders'), count=3)\n"
        "    cluster.run_for('10s')\n"
        "    assert recorder.shelf.bytes\n"
        "    cluster.save(tempfile.mkdtemp())\n"
        "print(sorted({'pandas', 'pyarrow', 'pyspark'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert result.stdout == "['pyarrow']\n", result.stderr
