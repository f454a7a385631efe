"""From paths to runs: which part of which log is judged, and why something cannot be."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pyarrow import parquet

from minicluster.log.errors import NotALog
from minicluster.protocol import records as r
from minicluster.verify.evidence.reading import read_run, read_runs
from minicluster.verify.model import Evidence
from tests.verify.handwritten.log import LogBuilder, change, cluster
from tests.verify.handwritten.run import RunBuilder

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"


@pytest.mark.parametrize(
    ("path", "records", "name"),
    [
        ("cluster", 460, "cluster"),
        ("cluster/controller-102", 460, "cluster/controller-102"),
        (
            "cluster/controller-102/__cluster_metadata-0",
            460,
            "cluster/controller-102/__cluster_metadata-0",
        ),
    ],
)
def test_every_form_of_path_names_a_run(path: str, records: int, name: str) -> None:
    (run,) = read_runs([KAFKA_LOGS / path])

    assert (run.extent.records, run.name, run.is_run) == (records, name, False)


def test_one_segment_is_a_run() -> None:
    folder = KAFKA_LOGS / "cluster" / "controller-101" / "__cluster_metadata-0"
    segments = sorted(folder.glob("*.log"))
    first = read_run(segments[0], "first")
    second = read_run(segments[1], "second")

    assert first.problems == ()
    assert [problem.partial for problem in second.problems] == [True]
    assert second.nodes[0].begins_well  # nothing shows what came before it


def test_one_checkpoint_is_a_run_of_a_state_without_changes() -> None:
    folder = KAFKA_LOGS / "cluster" / "controller-101" / "__cluster_metadata-0"
    checkpoint = sorted(folder.glob("*.checkpoint"))[-1]
    run = read_run(checkpoint, "state")

    assert run.committed == ()
    assert run.start is not None and len(run.start.records) > 10


def test_two_runs_of_one_name_get_two_names() -> None:
    path = KAFKA_LOGS / "smoke"

    assert [run.name for run in read_runs([path, path])] == ["smoke", "smoke#2"]


def test_what_no_majority_holds_is_not_committed() -> None:
    run = read_run(KAFKA_LOGS / "divergent", "divergent")

    assert run.committed[-1].next_offset == 81
    assert run.uncommitted == 13


def test_a_tail_that_only_the_leader_has_is_left_out(tmp_path: Path) -> None:
    log = cluster()
    shared = len(log.batches)
    log.op(change((2, 3)))
    for node, count in ((101, shared + 1), (102, shared), (103, shared)):
        some = LogBuilder()
        some.batches = log.batches[:count]
        some.write(tmp_path / f"controller-{node}")
    run = read_run(tmp_path, "r")

    assert len(run.committed) == shared
    assert run.uncommitted == 1


def test_a_trimmed_log_begins_with_the_earliest_snapshot_that_reaches_into_it() -> None:
    run = read_run(KAFKA_LOGS / "trimmed", "trimmed")

    assert run.start is not None
    assert (run.committed[0].base_offset, run.start.end_offset) == (655, 667)
    assert run.problems == ()


def test_a_log_without_its_snapshot_has_a_hole(tmp_path: Path) -> None:
    shutil.copytree(KAFKA_LOGS / "trimmed" / "controller-101", tmp_path / "controller-101")
    for checkpoint in (tmp_path / "controller-101").rglob("*.checkpoint"):
        checkpoint.unlink()
    run = read_run(tmp_path, "r")

    assert not run.nodes[0].begins_well
    assert [problem.evidence for problem in run.problems] == [Evidence.LOG]


def test_a_torn_tail_is_truncated_and_reported(tmp_path: Path) -> None:
    cluster().op(r.NoOpRecord()).write(tmp_path)
    segment = next(tmp_path.rglob("*.log"))
    segment.write_bytes(segment.read_bytes()[:-3])
    run = read_run(tmp_path, "r")

    assert run.problems == ()
    assert any("torn tail" in note for note in run.notes)


def _three(tmp_path: Path, *, header: bool = True) -> list[Path]:
    """A run of three controllers; their segments."""
    RunBuilder(cluster(), controllers=[101, 102, 103]).write(tmp_path)
    if not header:
        (tmp_path / "run.json").unlink()
    shutil.rmtree(tmp_path / "controller-101", ignore_errors=True)
    for node in (101, 102, 103):
        cluster().write(tmp_path / f"controller-{node}")
    return sorted(tmp_path.rglob("*.log"))


@pytest.mark.parametrize(("cut", "lost"), [(0, False), (1, False), (2, True), (3, True)])
def test_a_torn_tail_in_a_run_is_damage_since_runs_are_written_whole(
    cut: int, lost: bool, tmp_path: Path
) -> None:
    for segment in _three(tmp_path)[:cut]:
        segment.write_bytes(segment.read_bytes()[:-3])
    run = read_run(tmp_path, "r")

    assert [problem.evidence for problem in run.problems] == [Evidence.LOG] * cut
    assert run.lost is lost


@pytest.mark.parametrize(("gone", "lost"), [(1, False), (2, True), (3, True)])
@pytest.mark.parametrize("empty", [True, False])
def test_a_controller_whose_log_is_gone_from_a_run_is_missing_evidence(
    gone: int, lost: bool, empty: bool, tmp_path: Path
) -> None:
    for segment in _three(tmp_path)[:gone]:
        shutil.rmtree(segment.parents[1])
        if empty:
            segment.parents[1].mkdir()
    run = read_run(tmp_path, "r")

    assert [problem.evidence for problem in run.problems] == [Evidence.LOG] * gone
    assert all("there is no such folder" in problem.why for problem in run.problems)
    assert run.lost is lost


def test_a_trace_without_its_header_is_a_run_that_lacks_it(tmp_path: Path) -> None:
    _three(tmp_path, header=False)
    run = read_run(tmp_path, "r")

    assert run.is_run and not run.lost
    assert [problem.evidence for problem in run.problems] == [Evidence.META]
    assert "run.json: there is no such file" in run.problems[0].why


def test_a_trace_table_that_lost_rows_or_columns_is_damaged(tmp_path: Path) -> None:
    RunBuilder(cluster(), trace_rows={"publish": 1, "rpc": 0}).publish(1).write(tmp_path)
    assert read_run(tmp_path, "r").problems == ()

    publish, rpc = (tmp_path / f"trace/{table}.parquet" for table in ("publish", "rpc"))
    parquet.write_table(parquet.read_table(publish).slice(0, 0), publish)
    parquet.write_table(parquet.read_table(rpc).drop_columns(["request", "error"]), rpc)
    problems = {problem.table: problem.why for problem in read_run(tmp_path, "r").problems}

    assert problems == {
        "publish": f"{publish}: 0 rows, where the run wrote 1",
        "rpc": f"{rpc}: there is no column request, error",
    }


def test_damage_in_the_middle_is_a_problem_that_names_the_place(tmp_path: Path) -> None:
    cluster().write(tmp_path)
    segment = next(tmp_path.rglob("*.log"))
    content = bytearray(segment.read_bytes())
    content[200] ^= 0xFF
    segment.write_bytes(bytes(content))
    run = read_run(tmp_path, "r")

    assert run.committed == ()
    (problem,) = run.problems
    assert problem.evidence is Evidence.LOG
    assert segment.name in problem.why and "damaged at byte" in problem.why


def test_a_path_with_nothing_to_judge_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotALog, match="no such file or folder"):
        read_runs([tmp_path / "nowhere"])
    with pytest.raises(NotALog, match="is empty"):
        read_runs([tmp_path])


@pytest.mark.parametrize(("content", "noted"), [(b"", False), (b"no log", True)])
def test_a_controller_without_a_batch_does_not_spoil_the_others(
    content: bytes, noted: bool, tmp_path: Path
) -> None:
    for node in (101, 102, 103):
        cluster().write(tmp_path / f"controller-{node}")
    next((tmp_path / "controller-103").rglob("*.log")).write_bytes(content)
    run = read_run(tmp_path, "r")

    assert run.extent.records == 10
    assert run.problems == ()
    assert any("nothing to read" in note for note in run.notes) is noted


def test_a_run_names_the_missing_tables_of_its_trace(tmp_path: Path) -> None:
    run = RunBuilder(cluster())
    run.left_out = {"rpc"}
    folder = run.write(tmp_path / "r")
    (folder / "trace" / "publish.parquet").write_bytes(b"PAR1 no")
    read = read_run(folder, "r")

    assert read.is_run
    assert sorted(problem.table or "" for problem in read.problems) == ["publish", "rpc"]


def test_a_damaged_header_is_a_problem_of_the_run(tmp_path: Path) -> None:
    folder = RunBuilder(cluster()).write(tmp_path / "r")
    (folder / "run.json").write_text("{")

    assert [p.evidence for p in read_run(folder, "r").problems] == [Evidence.META]
    (folder / "run.json").write_text(json.dumps([1]))
    assert [p.evidence for p in read_run(folder, "r").problems] == [Evidence.META]
