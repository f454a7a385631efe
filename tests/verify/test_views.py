"""Views for people: typed columns, as documented, and the worked queries of their page."""

from __future__ import annotations

import datetime
import json
import re
from pathlib import Path
from typing import Any

import pytest

from minicluster.cli import run
from minicluster.errors import UserError
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.protocol import records as r
from minicluster.verify import as_of, sql_rule, views
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.response_errors import response_errors
from minicluster.verify.shown.declared import SHOWN_VIEWS
from minicluster.verify.shown.frames import Tables, named_views, shown_in
from minicluster.verify.shown.sql_rules import judge_sql_rules
from tests.verify.examples.clients import f1_bad
from tests.verify.examples.controller import c6_near
from tests.verify.handwritten.log import TOPIC, change, cluster
from tests.verify.handwritten.run import RunBuilder

pytestmark = pytest.mark.spark

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests/data/kafka-logs/smoke"
TRIMMED = ROOT / "tests/data/kafka-logs/trimmed"
PAGE = (ROOT / "docs/reference/views.md").read_text()
QUERIES = re.findall(r"```sql\n(.*?)```", PAGE, re.S)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
IN_COMMANDS = [
    (page.name, query)
    for page in PAGES
    for query in re.findall(
        r"""(?:minicluster sql \S+ |spark\.sql\()"(select [^"…]*)\"""", page.read_text()
    )
]


@pytest.fixture(scope="module")
def frames(spark: Any) -> dict[str, Any]:
    return views(spark, LOG)


def test_each_view_has_the_columns_that_its_page_lists(frames: dict[str, Any]) -> None:
    assert list(frames) == [view.name for view in SHOWN_VIEWS]
    for view in SHOWN_VIEWS:
        found = [(one.name, one.dataType.simpleString()) for one in frames[view.name].schema]
        assert found == [(name, kind) for name, kind, _ in view.columns], view.name
        assert ("time", "timestamp") in found, view.name


def test_the_views_show_what_is_in_the_log(frames: dict[str, Any]) -> None:
    records = frames["records"].count()
    epochs = frames["partition_states"].where("to_offset is null").collect()
    last = {(one.topic, one.partition): one.isr for one in epochs}
    first = frames["leaders_of_the_quorum"].collect()[0]

    assert records == read_run(LOG, "smoke").extent.records
    assert set(last) <= {(one.topic, one.partition) for one in frames["partitions"].collect()}
    assert (first.epoch, first.controller) == (1, 1)
    assert isinstance(first.time, datetime.datetime)
    for row in frames["isr_changes"].collect():
        assert sorted([*row.isr, *row.left]) == sorted([*row.isr_before, *row.joined])


def test_the_records_of_a_snapshot_are_apart(spark: Any) -> None:
    frames = named_views(spark, [TRIMMED], ("records", "snapshot_records"), DEFAULT_LIMITS)
    (ends,) = frames["snapshot_records"].selectExpr("collect_set(snapshot_end)").collect()
    (first,) = frames["records"].selectExpr("min(offset)").collect()

    assert ends[0] and max(ends[0]) >= first[0] > 0


def test_a_view_that_is_made_here_has_the_rows_that_workers_make(spark: Any) -> None:
    """One question about a small run starts no worker of Python's."""
    names = ("records", "elections", "under_min_isr", "configs")
    planned = named_views(spark, [TRIMMED], names, DEFAULT_LIMITS)
    of_workers = {name: sorted(map(repr, planned[name].collect())) for name in names}
    here = shown_in(Tables(spark, [TRIMMED], DEFAULT_LIMITS, at_once=True), spark, names)

    assert {name: sorted(map(repr, here[name].collect())) for name in names} == of_workers
    assert of_workers["records"] and of_workers["configs"]


def test_a_state_and_a_value_last_until_the_next(spark: Any, tmp_path: Path) -> None:
    log = cluster()
    shrunk = log.op(change((1, 2))).offset - 1
    grown = log.op(change((1, 2, 3))).offset - 1
    config = {"resource_type": 2, "resource_name": "orders", "name": "min.insync.replicas"}
    of_topic = log.op(r.ConfigRecord(**config, value="3")).offset - 1
    removed = log.op(r.ConfigRecord(**config, value=None)).offset - 1
    gone = log.op(r.RemoveTopicRecord(topic_id=TOPIC)).offset - 1
    path = log.write(tmp_path)
    frames = named_views(spark, [path], ("partition_states", "configs", "topics"), DEFAULT_LIMITS)

    states = frames["partition_states"].orderBy("from_offset").collect()[-2:]
    values = frames["configs"].orderBy("offset").collect()
    (topic,) = frames["topics"].collect()

    assert [(row.from_offset, row.to_offset) for row in states] == [(shrunk, grown), (grown, gone)]
    assert [(row.offset, row.to_offset) for row in values] == [(of_topic, removed), (removed, gone)]
    assert (topic.topic, topic.deleted_at, topic.partitions) == ("orders", gone, 1)


def test_leaders_and_isrs_as_of_a_moment_in_python_and_in_sql(spark: Any, tmp_path: Path) -> None:
    log = cluster()
    shrunk = 1000 + log.op(change((1, 2))).offset - 1
    log.op(change((1, 2, 3)))
    frames = views(spark, log.write(tmp_path))
    moments = {ms: f"1970-01-01 00:00:{ms / 1000:06.3f}" for ms in (shrunk - 1, shrunk, shrunk + 1)}

    isrs = {}
    for ms, moment in moments.items():
        (row,) = spark.sql(f"select isr, leader from as_of(timestamp'{moment}')").collect()
        (same,) = as_of(frames, moment).collect()
        assert (row.isr, row.leader) == (same.isr, same.leader)
        isrs[ms - shrunk] = row.isr

    assert isrs == {-1: [1, 2, 3], 0: [1, 2], 1: [1, 2, 3]}


@pytest.mark.parametrize("query", QUERIES)
def test_the_worked_queries_run(query: str, frames: dict[str, Any], spark: Any) -> None:
    assert len(QUERIES) == 7
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    rows = spark.sql(query).collect()
    assert rows or "client_operations" in query or "under_min_isr" in query  # a quiet log alone


@pytest.mark.parametrize(("page", "query"), IN_COMMANDS)
def test_the_queries_of_commands_in_pages_run(
    page: str, query: str, frames: dict[str, Any], spark: Any
) -> None:
    assert {page for page, _ in IN_COMMANDS} == {"verifying.md", "views.md"}
    for name, frame in frames.items():
        frame.createOrReplaceTempView(name)
    spark.sql(query).collect()


def test_lost_records_are_a_question_that_can_be_asked(tmp_path: Path, spark: Any) -> None:
    folder = f1_bad().write(tmp_path / "run")
    named_views(spark, [folder], ["client_operations"], DEFAULT_LIMITS)

    rows = spark.sql("select topic, partition, offset from client_operations where lost").collect()

    assert [tuple(row) for row in rows] == [("orders", 0, 1)]


def test_requests_have_the_errors_of_their_partitions_and_refusals_kafkas_sentence(
    tmp_path: Path, spark: Any
) -> None:
    """An AlterPartition whose partition is rejected has no error of the whole response."""
    codes = (
        '{"errorCode":0,"topics":[{"errorCode":107},{"partitionErrorCode":6},{"errorCode":107}]}'
    )
    built = RunBuilder(cluster()).committed().alter_partition(1, (1, 2))
    built.rpc("AlterPartition", 1, response=codes)
    built.rpc("Fetch", 1, response='{"errorCode":999}', error="UNKNOWN_CODE_999")
    built.rpc("Vote", 101, response=None, error=None)
    refusal = {"node": 101, "api": "AlterPartition", "broker": 1, "topic": "orders", "part": 0}
    said = {"error": "INELIGIBLE_REPLICA", "reason": "fenced", "message": "Rejecting …"}
    folder = built.row("refusal", {**refusal, **said}).write(tmp_path / "run")
    frames = named_views(spark, [folder], ["requests", "refusals"], DEFAULT_LIMITS)

    errors = [(row.error, row.errors) for row in frames["requests"].orderBy("id").collect()]
    (rejected,) = frames["refusals"].collect()

    assert errors == [
        ("NONE", []),
        ("INELIGIBLE_REPLICA", ["INELIGIBLE_REPLICA", "NOT_LEADER_OR_FOLLOWER"]),
        ("UNKNOWN_CODE_999", ["UNKNOWN_CODE_999"]),
        (None, None),
    ]
    assert response_errors(codes) == errors[1][1]
    assert (rejected.controller, rejected.broker, rejected.message) == (101, 1, "Rejecting …")


# --- rules in SQL ---------------------------------------------------------------------------------


def test_rules_in_sql_are_judged_by_run(tmp_path: Path, spark: Any) -> None:
    """What a session has under the name of a view stays."""
    spark.createDataFrame([(7,)], "mine int").createOrReplaceTempView("isr_changes")
    shrunk, grown = cluster(), cluster()
    offset = shrunk.op(change((1,))).offset - 1
    grown.op(change((1, 2)))
    paths = [shrunk.write(tmp_path / "shrunk"), grown.write(tmp_path / "grown")]
    lonely = sql_rule(
        "MY1",
        "No ISR has 'one' member",
        cases="select run from isr_changes -- each",
        findings="""with alone as (select * from isr_changes where size(isr) = 1)
            select run, offset, topic, partition, 'ISR ' || isr[0] as message from alone""",
    )
    quiet = sql_rule("MY2", "Nothing", cases="select run from elections", findings=NOTHING)

    by_run = judge_sql_rules(spark, paths, [lonely, quiet], DEFAULT_LIMITS)

    assert {run: tallies["MY1"].looked_at for run, tallies in by_run.items()} == {
        "shrunk": 1,
        "grown": 1,
    }
    (finding,) = by_run["shrunk"]["MY1"].findings
    assert (finding.offset, finding.topic, finding.partition, finding.broker) == (
        offset,
        "orders",
        0,
        -1,
    )
    assert (finding.run, finding.rule, finding.message) == ("shrunk", "MY1", "ISR 1")
    assert not by_run["grown"]["MY1"].findings and not by_run["grown"]["MY2"].looked_at
    assert spark.table("isr_changes").columns == ["mine"]


NOTHING = "select run, 'x' as message from elections where false"


@pytest.mark.parametrize(
    ("findings", "why"),
    [
        ("select run from elections", "rule MY3: findings: there is no column message"),
        ("select nothing from elections", r"rule MY3: \[UNRESOLVED_COLUMN"),
    ],
)
def test_a_rule_that_spark_cannot_plan_is_one_line(findings: str, why: str, spark: Any) -> None:
    rule = sql_rule("MY3", "Wrong", cases="select run from elections", findings=findings)

    with pytest.raises(UserError, match=why) as raised:
        judge_sql_rules(spark, [LOG], [rule], DEFAULT_LIMITS)
    assert "\n" not in str(raised.value)


# --- the command ----------------------------------------------------------------------------------


def test_sql_prints_rows_and_names_a_mistake_in_one_line(
    tmp_path: Path, spark: object, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = c6_near().write(tmp_path / "run")
    capfd.readouterr()
    query = "select api, count(*) as n from requests group by api order by api"

    assert run(["sql", str(folder), query, "--format", "json"]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert rows and all(set(row) == {"api", "n"} for row in rows)
    assert run(["sql", str(folder), query, "--limit", "1", "--format", "csv"]) == 0
    assert capfd.readouterr().err == (
        "" if len(rows) == 1 else "the first 1 row; --limit shows more\n"
    )
    assert run(["sql", str(folder), "select nothing from records"]) == 64
    assert capfd.readouterr().err.strip().count("\n") == 0
    assert run(["sql", str(folder), "select * from partitons"]) == 64
    assert "unknown view 'partitons'; did you mean partitions?" in capfd.readouterr().err


def test_sql_shows_times_in_utc(
    spark: object, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")

    query = "select timestamp_millis(1500) as t"
    assert run(["sql", str(LOG), query, "--format", "csv"]) == 0
    assert capfd.readouterr().out.splitlines() == ["t", "1970-01-01 00:00:01.500"]


def test_sql_without_a_query_reads_queries(
    tmp_path: Path,
    spark: object,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queries = tmp_path / "queries.sql"
    queries.write_text(
        "select count(*) as n\nfrom records;\nselect x from records;\nselect 2 as two"
    )
    with queries.open() as lines:
        monkeypatch.setattr("sys.stdin", lines)
        assert run(["sql", str(LOG), "--format", "csv"]) == 64

    shown = capfd.readouterr()
    assert shown.out.splitlines() == ["n", str(read_run(LOG, "s").extent.records), "two", "2"]
    assert "UNRESOLVED_COLUMN" in shown.err


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
    assert run(["sql", str(LOG), "select 1 as one", "--parquet", "/dev/null/rows"]) == 64
    assert "Parent path is not a directory: file:/dev/null" in capsys.readouterr().err
