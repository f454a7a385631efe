"""Runs and logs on other file systems, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.datasource import GreaterThanOrEqual
from pyspark.sql.types import LongType, StructType

from minicluster.cli import run
from minicluster.errors import UserError
from minicluster.values import replace
from minicluster.verify import Verdict
from minicluster.verify.evidence.file_systems import below, local_copy, opened, target_in, uri_of
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.log_rows import Item
from minicluster.verify.rules.every import RULES
from minicluster.verify.spark.data_source import KraftDataSource
from minicluster.verify.spark.judging_worker import Task
from tests.verify.buckets import put_bucket
from tests.verify.examples.controller import c6_near
from tests.verify.handwritten.log import change, cluster
from tests.verify.in_pipeline import rows_here
from tests.verify.in_process import verified, without_spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "fenced_follower.yaml"


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_bucket(tmp_path / "bucket", monkeypatch)
    return tmp_path / "bucket"


@pytest.mark.parametrize(
    ("given", "uri"),
    [
        ("s3a://runs/one", "s3a://runs/one"),
        (Path("s3a://runs/one"), "s3a://runs/one"),
        ("file:/tmp/x", "file:///tmp/x"),
        ("s3://runs/one?region=x&scheme=http", "s3://runs/one?region=x&scheme=http"),
    ],
)
def test_a_uri_is_whole_again_when_a_path_was_made_of_it(given: Path | str, uri: str) -> None:
    assert uri_of(given) == uri


def test_options_of_a_bucket_stay_behind_the_path() -> None:
    assert below("s3://runs/all?region=x", "one/run.json") == "s3://runs/all/one/run.json?region=x"


def test_a_copy_keeps_the_names_around_a_log_and_never_leaves_its_folder(tmp_path: Path) -> None:
    log = target_in("hdfs://host/runs/controller-7/__cluster_metadata-0", tmp_path)
    odd = target_in("s3://runs/../../../etc", tmp_path)

    assert log.parts[-2:] == ("controller-7", "__cluster_metadata-0")
    assert odd.resolve().is_relative_to(tmp_path)


def test_a_folder_of_runs_in_a_bucket_is_judged_as_one(bucket: Path) -> None:
    for name in ("one", "two"):
        c6_near().write(bucket / "runs" / name)
    report = verified(Path("bucket://runs"), rules=["C6"])

    assert [run.verdict for run in report.each] == [Verdict.VALID, Verdict.VALID]
    assert [run.name for run in report.runs] == ["one", "two"]
    assert report.sources[0].read() is not None


def test_a_file_uri_is_a_path_of_this_machine(tmp_path: Path) -> None:
    log = cluster().op(change((2, 3))).write(tmp_path / "log")
    report = verified(Path(f"file://{log}"), rules=["E10"])

    assert [finding.rule for finding in report.findings] == ["E10"]


def judged(item: Item) -> list[tuple[Any, ...]]:
    """What workers say of a run, which they read where it is or fetch from its origin."""
    rows = rows_here([item], Task.of(RULES))
    columns = ("kind", "rule", "looked_at", "offset", "topic", "message")
    judgements = [tuple(getattr(row, name) for name in columns) for row in rows]
    return sorted((one for one in judgements if one[0] != "run"), key=repr)


def test_an_executor_that_lacks_the_copy_fetches_what_it_judges_itself(bucket: Path) -> None:
    cluster().op(change((2, 3))).write(bucket / "log")
    c6_near().write(bucket / "runs" / "one")
    for inner, found in (("runs/one", []), ("log", ["E10"])):
        item = Item.at(bucket / inner, "one")
        here = judged(item)

        there = replace(item, path=f"/nowhere/{inner}", origin=f"bucket://{inner}")
        assert judged(there) == here
        assert [rule for kind, rule, *_ in here if kind == "finding"] == found
        assert sum(looked_at or 0 for _, _, looked_at, *_ in here) > 20


def test_the_data_source_reads_pieces_of_files_in_a_bucket(bucket: Path) -> None:
    log = cluster().op(change((1, 2))).op(change((1, 2, 3))).write(bucket / "log")
    schema = StructType().add("offset", LongType())
    rows = {}
    for path in (str(log), "bucket://log"):
        reader = KraftDataSource({"path": path}).reader(schema)
        list(reader.pushFilters([GreaterThanOrEqual(("offset",), 3)]))
        pieces = reader.partitions()
        rows[path] = [
            offset
            for piece in pieces
            for batch in reader.read(piece)
            for offset in batch.column(0).to_pylist()
        ]
        assert all(Path(piece.path).exists() == (path == str(log)) for piece in pieces)

    assert rows["bucket://log"] == rows[str(log)] == list(range(3, 3 + len(rows[str(log)])))
    with pytest.raises(UserError, match="a stream follows a log of this machine's"):
        KraftDataSource({"path": "bucket://log"}).streamReader(schema).initialOffset()


@pytest.mark.parametrize("path", ["nothing://log", "bucket://log"])
def test_a_place_that_is_not_there_is_one_line(path: str, bucket: Path) -> None:
    reader = KraftDataSource({"path": path}).reader(StructType())
    with pytest.raises(UserError, match=f"^{path}: ") as raised:
        reader.partitions()
    assert "\n" not in str(raised.value)
    with pytest.raises(UserError, match=f"^{path}: "), local_copy(Path(path)):
        pass


def test_whoever_lists_runs_sees_one_that_is_sent_once_it_is_whole(
    bucket: Path, tmp_path: Path
) -> None:
    run_folder = c6_near().write(tmp_path / "one")
    place = opened("bucket://runs/one")
    seen: list[str] = []

    class Watching:
        def __getattr__(self, name: str) -> object:
            return getattr(place.system, name)

        def open_output_stream(self, path: str) -> object:
            seen.append(path)
            return place.system.open_output_stream(path)

    type(place)(place.uri, Watching(), place.path).send(run_folder)

    assert seen[-1] == "runs/one/run.json"
    assert read_run(bucket / "runs" / "one", "one").extent == read_run(run_folder, "one").extent


def test_a_campaign_writes_to_a_bucket_what_one_job_judges_and_others_replay(
    bucket: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chaos = ["chaos", "--seeds", "36", "--fault", "S29", "--no-shrink", "--verify"]
    with without_spark():
        assert run([*chaos, "--runs", "bucket://runs"]) == 1
    (line,) = [one for one in capfd.readouterr().out.splitlines() if one.startswith("repeat")]
    uri = line.split()[-1]
    report = verified(Path("bucket://runs"), rules=["E10", "E29"])

    assert [one.name for one in report.runs] == ["nemesis-36-S29"]
    assert uri == "bucket://runs/nemesis-36-S29"
    assert json.loads((bucket / "runs/nemesis-36-S29/report.json").read_text())
    assert not Path("bucket:").exists()
    assert run(["replay", uri, "--no-verify", "--runs", str(tmp_path / "again")]) == 0
    assert "the same trace" in capfd.readouterr().out


def test_a_place_without_a_file_system_is_refused_before_anything_is_played(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["chaos", "--seeds", "1", "--runs", "nothing://runs"]) == 66
    assert "nothing://runs: there is no file system for it" in capfd.readouterr().err
    assert run(["run", str(EXAMPLE), "--no-verify", "--runs", "nothing://runs"]) == 66
    assert "nothing://runs: there is no file system for it" in capfd.readouterr().err


def test_a_run_in_a_bucket_is_replayed_and_goes_on_from_there(
    bucket: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """``run --runs`` and ``what-if`` take URIs, as ``verify`` does; a ``file:`` URI is a path."""
    name, here = "a-fenced-follower-stays-out-of-the-ISR-3", f"file://{bucket}/runs"
    for runs, uri in (("bucket://runs", "bucket://runs"), (here, f"{bucket}/runs")):
        assert run(["run", str(EXAMPLE), "--no-verify", "--runs", runs, "--seed", "3"]) == 0
        (line,) = [one for one in capfd.readouterr().out.splitlines() if one.startswith("run ")]
        left = line.split()[-1]
        assert left == f"{uri}/{name}"
    log = f"bucket://runs/{name}"
    assert run(["what-if", log, "kill 1", "--watch", "1s", "--runs", "bucket://pages"]) == 0
    shown = capfd.readouterr().out.splitlines()
    assert shown[0].startswith(f"{log}: 3 brokers")
    assert shown[-2] == f"page    bucket://pages/what-if-runs-{name}.html"
    assert shown[-1].startswith("repeat  ")
    assert shown[-1].endswith(f"minicluster what-if {log} 'kill 1' --seeds 1 --watch 1s")
    assert log in (bucket / "pages" / f"what-if-runs-{name}.html").read_text()
    assert run(["what-if", "bucket://nothing", "kill 1", "--runs", "bucket://pages"]) == 66
    assert "bucket://nothing: there is no such file or folder" in capfd.readouterr().err
    assert run(["replay", log, "--no-verify", "--runs", "bucket://again"]) == 0
    assert f"(bucket://again/replay/{name})" in capfd.readouterr().out
    assert (bucket / "again" / "replay" / name / "run.json").exists()


SHORT = (
    "name: short\ncluster: {brokers: 1, controllers: 1, seed: 3}\n"
    "steps: [{do: create_topic, name: orders, partitions: 1, replicas: 1}]\n"
)


def test_a_run_in_a_bucket_replaces_one_of_its_scenario_and_no_other(
    bucket: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As in a folder of this machine: ``short-3``, its second play, and another of this name."""
    story = tmp_path / "story.yaml"
    command = ["run", str(story), "--no-verify", "--runs", "bucket://runs"]
    for written in (SHORT, SHORT, SHORT.replace("partitions: 1", "partitions: 2")):
        story.write_text(written)
        assert run(command) == 0
        if written == SHORT:
            (bucket / "runs/short-3/mine.txt").write_text("of no run")
            header = json.loads((bucket / "runs/short-3/run.json").read_text())
            header["files"].append("trace/of_another_version.parquet")
            (bucket / "runs/short-3/run.json").write_text(json.dumps(header))
            (bucket / "runs/short-3/trace/of_another_version.parquet").write_text("")
            last = sorted(path.name for path in (bucket / "runs").iterdir())
    printed = capfd.readouterr()
    assert last == ["short-3"]
    assert "bucket://runs/short-3 holds the run of another scenario of this name" in printed.err
    assert "this run is bucket://runs/short-3-2" in printed.err
    assert "minicluster verify bucket://runs/short-3-2" in printed.out
    story.write_text(SHORT)
    assert run(command) == 0
    assert not (bucket / "runs/short-3/trace/of_another_version.parquet").exists()
    assert (bucket / "runs/short-3/mine.txt").exists()
    assert "partitions: 2" in (bucket / "runs/short-3-2/scenario.yaml").read_text()


def test_a_header_in_a_bucket_that_is_no_runs_stays(
    bucket: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    story = tmp_path / "story.yaml"
    story.write_text(SHORT)
    mine = bucket / "runs/short-3/run.json"
    mine.parent.mkdir(parents=True)
    mine.write_text("[]")
    assert run(["run", str(story), "--no-verify", "--runs", "bucket://runs"]) == 0
    assert mine.read_text() == "[]"
    assert "bucket://runs/short-3-2" in capfd.readouterr().out
