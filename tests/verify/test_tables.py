"""Tables on their way to Spark: all rows arrive."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from minicluster.verify.spark import tables

pytestmark = pytest.mark.spark


def test_no_row_is_lost_behind_a_run_that_has_none(spark: Any) -> None:
    one = pa.table({"run": ["a", "b"], "offset": pa.array([1, None], type=pa.int64())})
    none = one.slice(0, 0)
    sent = {"several": pa.concat_tables([none, one, none, one]), "empty": none}
    frames = tables.frames(spark, sent)

    assert sorted(row.run for row in frames["several"].collect()) == ["a", "a", "b", "b"]
    assert frames["empty"].collect() == []
    assert frames["several"].columns == frames["empty"].columns == ["run", "offset"]
