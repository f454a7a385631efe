"""Views for people: typed columns, as documented, and the worked queries of their page."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest

from minicluster.cli import run
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.verify import views
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.shown.declared import SHOWN_VIEWS
from minicluster.verify.shown.frames import named_views
from tests.verify import trace_cases

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-logs/smoke"
TRIMMED = ROOT / "tests/data/kafka-logs/trimmed"
PAGE = (ROOT / "docs/views.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.S)


@pytest.fixture(scope="module")
def frames(spark: Any) -> dict[str, Any]:
    return views(spark, LOG)


def test_each_view_has_the_columns_that_its_page_lists(frames: dict[str, Any]) -> None:
    assert list(frames) == [view.name for view in SHOWN_VIEWS]
    for view in SHOWN_VIEWS:
        found = [(one.name, one.dataType.simpleString()) for one in frames[view.name].schema]
        assert found == [(name, kind) for name, kind, _ in view.columns], view.name


def test_the_views_show_what_is_in_the_log(frames: dict[str, Any]) -> None:
    records = frames["records"].count()
    epochs = frames["partition_states"].where("to_offset is null").collect()
    last = {(one.topic, one.partition): one.isr for one in epochs}
    first = frames["leaders_of_the_quorum"].collect()[0]

    assert records == read_run(LOG, "smoke").extent.records
    assert set(last) <= {(one.topic, one.partition) for one in frames["partitions"].collect()}
    assert (first.epoch, first.controller) == (1, 1)
    assert isinstance(first.time, datetime.datetime)
    for change in frames["isr_changes"].collect():
        assert sorted([*change.isr, *change.left]) == sorted([*change.isr_before, *change.joined])


def test_the_records_of_a_snapshot_are_apart(spark: Any) -> None:
    frames = named_views(spark, [TRIMMED], ("records", "snapshot_records"), DEFAULT_LIMITS)
    (ends,) = frames["snapshot_records"].selectExpr("collect_set(snapshot_end)").collect()
    (first,) = frames["records"].selectExpr("min(offset)").collect()

    assert ends[0] and max(ends[0]) >= first[0] > 0


@pytest.mark.parametrize("query", QUERIES)
def test_the_worked_queries_run(query: str, frames: dict[str, Any], spark: Any) -> None:
    assert len(QUERIES) == 5
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    assert spark.sql(query).collect()


def test_sql_prints_rows_and_names_a_mistake_in_one_line(
    tmp_path: Path, spark: object, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = trace_cases.c6_near().write(tmp_path / "run")
    capfd.readouterr()
    query = "select api, count(*) as n from requests group by api order by api"

    assert run(["sql", str(folder), query, "--format", "json"]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert rows and all(set(row) == {"api", "n"} for row in rows)
    assert run(["sql", str(folder), "select nothing from records"]) == 64
    assert capfd.readouterr().err.strip().count("\n") == 0
    assert run(["sql", str(folder), "select * from partitons"]) == 64
    assert "'partitons' is no view; did you mean partitions?" in capfd.readouterr().err


def test_sql_writes_parquet_where_the_user_is(
    tmp_path: Path,
    spark: object,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Java works in another folder."""
    monkeypatch.chdir(tmp_path)

    assert run(["sql", str(LOG), "select * from records", "--parquet", "rows"]) == 0
    assert capsys.readouterr().out == "parquet rows\n"
    assert list((tmp_path / "rows").glob("*.parquet"))
    assert run(["sql", str(LOG), "select * from records", "--parquet", "rows"]) == 64
    assert "calling" not in capsys.readouterr().err
    assert run(["sql", str(LOG), "select 1", "--parquet", "/dev/null/rows"]) == 64
    assert "Parent path is not a directory: file:/dev/null" in capsys.readouterr().err
