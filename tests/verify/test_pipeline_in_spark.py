"""The pipeline in Spark: the shape of its plan, its results as data frames, its streams."""

from __future__ import annotations

import re
import shutil
import threading
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import ArrayType, MapType, StructType

from minicluster.log.batch import RecordBatch
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.log.segment import segment_name, write_segment
from minicluster.verify.evidence.reading import named_paths
from minicluster.verify.rules.every import RULES
from minicluster.verify.spark import pipeline, progress
from minicluster.verify.spark.findings_stream import follow_findings
from minicluster.verify.spark.judging_worker import Task
from minicluster.verify.spark.pipeline import items_of, judge_in_spark, logs_of, results_of
from minicluster.verify.spark.progress import Progress
from tests.verify.examples.controller import c6_near
from tests.verify.handwritten.log import change, cluster
from tests.verify.in_process import judge_path
from tests.verify.test_log_rules import KAFKA_LOGS
from tests.verify.test_pipeline import said

pytestmark = pytest.mark.spark

TASK = Task.of(RULES)
PAGE = Path(__file__).parents[2] / "docs/reference/judge.md"
LIMIT_S = 300.0


def plan_of(frame: Any) -> str:
    """The physical plan without its ids, four names of each list of columns."""
    conf, key = frame.sparkSession.conf, "spark.sql.debug.maxToStringFields"
    conf.set(key, "4")
    try:
        text = str(frame._jdf.queryExecution().executedPlan().toString())
    finally:
        conf.unset(key)
    return re.sub(r"#\d+L?|, \[plan_id=\d+\]", "", text).strip()


def test_the_plan_is_a_scan_an_exchange_a_sort_a_fold_and_an_aggregate(spark: Any) -> None:
    """As the page about the judge prints it."""
    paths = [KAFKA_LOGS / "cluster", KAFKA_LOGS / "jbod"]
    items = items_of(named_paths(paths), DEFAULT_LIMITS)
    plan = plan_of(results_of(spark, items, TASK, DEFAULT_LIMITS))

    assert re.findall(r"^\W*(\w+)", plan, re.MULTILINE) == [
        "HashAggregate", "Exchange", "HashAggregate", "MapInArrow", "Sort", "Exchange",
        "MapInArrow", "LocalTableScan",
    ]  # fmt: skip
    assert f"```\n{plan}\n```\n" in PAGE.read_text()


def test_no_column_that_is_exchanged_is_a_list(spark: Any) -> None:
    items = items_of(named_paths([KAFKA_LOGS / "cluster"]), DEFAULT_LIMITS)
    for frame in (
        logs_of(spark, items, DEFAULT_LIMITS),
        results_of(spark, items, TASK, DEFAULT_LIMITS),
    ):
        kinds = {type(field.dataType) for field in frame.schema.fields}
        assert not kinds & {ArrayType, MapType, StructType}


def test_spark_says_what_one_process_says(spark: Any, tmp_path: Path) -> None:
    cluster().op(change((2, 3))).write(tmp_path / "bad")
    c6_near().write(tmp_path / "run")
    named = named_paths([KAFKA_LOGS / "cluster", tmp_path / "bad", tmp_path / "run"])

    judged = judge_in_spark(spark, named, TASK)

    for one, (path, name) in zip(judged, named, strict=True):
        assert said(one) == said(judge_path(path, name, RULES)), name


def test_counts_and_findings_are_data_frames(spark: Any, tmp_path: Path) -> None:
    cluster().op(change((2, 3))).write(tmp_path / "bad")

    counts, findings = pipeline.verdicts(spark, tmp_path / "bad", KAFKA_LOGS / "cluster")

    assert [row.rule for row in findings.where("run = 'bad'").collect()] == ["E10"]
    assert findings.where("run = 'cluster'").count() == 0
    assert counts.where("run = 'cluster' and rule = 'E10' and looked_at > 0").count() == 1


def test_progress_never_goes_back(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "POLL_S", 0.01)
    seen: list[Progress] = []

    judge_in_spark(spark, named_paths([KAFKA_LOGS / "cluster"]), TASK, on_progress=seen.append)

    fractions = [one.fraction for one in seen]
    assert {one.phase for one in seen} == {"judging 1 run"}
    assert fractions == sorted(fractions) and fractions[-1] == 1.0


def test_findings_come_while_the_log_grows(spark: Any, tmp_path: Path) -> None:
    log = cluster()
    home = tmp_path / "log" / "__cluster_metadata-0"
    home.mkdir(parents=True)
    segment = home / segment_name(0)
    write_segment(segment, log.batches)
    before = len(log.batches)
    came, rows = threading.Event(), []

    def take(found: Any) -> None:
        rows.extend(found.collect())
        came.set()

    query = follow_findings(spark, tmp_path / "log", take, every="100 milliseconds")
    try:
        query.processAllAvailable()
        assert rows == []
        log.op(change((2, 3)))
        grown: list[RecordBatch] = log.batches[before:]
        with segment.open("ab") as file:
            for batch in grown:
                file.write(batch.encoded)
        assert came.wait(LIMIT_S), query.exception()
    finally:
        query.stop()

    assert [(row.run, row.rule, row.offset) for row in rows] == [
        ("log", "E10", grown[0].base_offset)
    ]


def test_a_stream_that_goes_on_from_its_checkpoint_tells_only_what_is_new(
    spark: Any, tmp_path: Path
) -> None:
    """Its new judge knows what was in the log before, and is silent about it."""
    log, checkpoint = cluster(), tmp_path / "checkpoint"
    home = tmp_path / "log" / "__cluster_metadata-0"
    home.mkdir(parents=True)

    def told() -> list[tuple[str, int]]:
        write_segment(home / segment_name(0), log.batches)
        found: list[Any] = []
        query = follow_findings(
            spark, tmp_path / "log", lambda new: found.extend(new.collect()), checkpoint=checkpoint
        )
        try:
            query.processAllAvailable()
        finally:
            query.stop()
        return [(row.rule, row.offset) for row in found]

    def leader_is_left_out() -> tuple[str, int]:
        log.op(change((2, 3)))
        return "E10", log.batches[-1].base_offset

    first = leader_is_left_out()
    assert told() == [first]
    log.op(change((1, 2, 3)))
    second = leader_is_left_out()
    assert told() == [second]


def test_a_log_that_changes_while_it_is_read_is_one_line(spark: Any, tmp_path: Path) -> None:
    """What is damaged and can be read is judged (``test_pipeline``); what is gone is not."""
    c6_near().write(tmp_path / "run")
    named = named_paths([tmp_path / "run"])
    items = items_of(named, DEFAULT_LIMITS)
    shutil.rmtree(tmp_path / "run")

    (row,) = results_of(spark, items, TASK, DEFAULT_LIMITS).collect()

    assert row.kind == "rejected" and row.message.endswith("there is no such file or folder")
