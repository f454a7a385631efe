"""A mistake of the recorder or of the live checks ends no cluster, and hides in no verdict.

The cluster continues. The run is unknown for what is missing, with one line of what failed.
"""

from __future__ import annotations

import errno
import json
import resource
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.play.campaign import outcome_of
from minicluster.actors.play.player import play_once
from minicluster.actors.recording.problems import RecorderWarning, one_line
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.recording.tables import TableFile, TraceRow
from minicluster.actors.serve import serving
from minicluster.actors.serve.session import EXIT_UNKNOWN, Session
from minicluster.log.batch import RecordBatch
from minicluster.metadata.image.folded_run import FoldedRun
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol.records import ConfigRecord, VersionedRecord
from minicluster.scenario import Scenario, parse_scenario
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.live import LiveJudge
from minicluster.verify.model import Evidence, Finding, Verdict
from minicluster.verify.partition.driver import Partitions
from minicluster.verify.quorum.quorum import Quorum
from minicluster.zookeeper.server.effects import LogTransaction
from minicluster.zookeeper.server.operations import Code, SetData
from minicluster.zookeeper.server.tree import Change
from tests.actors.test_recorded_clients import Client, encoded
from tests.verify.in_process import verified

STORY = """
name: a short load
cluster: {brokers: 3, controllers: 1, seed: 5}
steps:
  - {do: create_topic, name: orders, min_isr: 2}
  - {do: produce, topic: orders, count: 5}
"""


def full(*_: Any) -> None:
    """A disk without space."""
    raise OSError(errno.ENOSPC, "No space left on device")


def crash_at(monkeypatch: pytest.MonkeyPatch, kind: type, name: str, number: int) -> None:
    """Let the n-th call of a method raise, as a mistake in it would."""
    usual, calls = getattr(kind, name), 0

    def crashing(self: Any, *args: Any) -> list[Finding]:
        nonlocal calls
        calls += 1
        if calls == number:
            raise ZeroDivisionError("planted\nsecond line")
        result: list[Finding] = usual(self, *args)
        return result

    monkeypatch.setattr(kind, name, crashing)


def story() -> Scenario:
    return parse_scenario(STORY)


@pytest.mark.parametrize("runtime", ["simulated", "threaded"])
@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (LiveJudge, "on_response"),
        (Partitions, "on_event"),
        (LiveJudge, "commit"),
        (Quorum, "on_event"),
    ],
)
def test_a_crash_of_the_live_checks_leaves_the_cluster(
    monkeypatch: pytest.MonkeyPatch, runtime: Any, kind: type, name: str
) -> None:
    crash_at(monkeypatch, kind, name, 1 if name == "on_response" else 5)
    cluster = MiniCluster(seed=3, controllers=1, runtime=runtime)
    expected = "the live checks crashed at .*ZeroDivisionError"
    with pytest.warns(RecorderWarning, match=expected), cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.wait_until(lambda: orders[0].high_watermark >= 0)
        client = Client(cluster, "orders")
        offsets = [client.send_and_wait([b"first"]), client.send_and_wait([b"second"])]
        assert offsets == [0, 1]
        client.fetch(0)
        checks = inside(cluster).live_checks
        assert checks is not None and checks.crashed
    assert not inside(cluster).rt.crashes
    [problem] = inside(cluster).recorder.problems
    assert problem.lacks is None and "\n" not in problem.why
    assert "ZeroDivisionError: planted (test_recorder_problems.py:" in problem.why


class FoldsNoConfig(SharedFolds):
    """Folds with a mistake in one kind of record."""

    def runs(
        self, image: MetadataImage, records: Sequence[VersionedRecord], base_offset: int
    ) -> Iterator[FoldedRun]:
        if any(isinstance(one.record, ConfigRecord) for one in records):
            raise ZeroDivisionError("planted")
        return super().runs(image, records, base_offset)


@pytest.mark.parametrize("runtime", ["simulated", "threaded"])
def test_a_crash_of_the_committed_fold_leaves_the_cluster(runtime: Any) -> None:
    """The image of what is committed lacks a batch, as its nodes do not."""
    cluster = MiniCluster(seed=3, controllers=1, runtime=runtime)
    expected = "the fold of the committed log crashed at .*ZeroDivisionError"
    with pytest.warns(RecorderWarning, match=expected), cluster:
        cluster.create_topic("orders", min_isr=2)
        inside(cluster).committed._folds = FoldsNoConfig()
        cluster.set_config("retention.ms", 86_400_000, topic="orders")
        cluster.create_topic("later")
        cluster.produce("later", count=1)
    assert not inside(cluster).rt.crashes
    [problem] = inside(cluster).recorder.problems
    assert problem.lacks is None and "\n" not in problem.why


def test_a_campaign_calls_a_run_unknown_whose_live_checks_crashed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert outcome_of(story()).verdict is Verdict.VALID
    crash_at(monkeypatch, Quorum, "on_event", 5)
    outcome = outcome_of(story(), runs=tmp_path)
    assert outcome.verdict is Verdict.UNKNOWN and outcome.failure is not None
    assert outcome.failure.kind == "unseen"
    assert outcome.steps_done == len(story().steps)
    assert "the live checks crashed" in outcome.failure.text
    assert outcome.path is not None
    report = verified(outcome.path, rules=["E01", "F1", "E42"])
    assert report.verdict is Verdict.UNKNOWN
    assert any("the live checks crashed" in reason for reason in report.reasons)
    assert report.rule("E01").verdict is report.rule("E42").verdict is Verdict.VALID


def test_a_cluster_that_serves_ends_as_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    crash_at(monkeypatch, Quorum, "on_event", 5)
    cluster, _ = play_once(story())
    session = Session(cluster, Scenario(steps=()))
    session.stop()
    response, failure = serving._run(session)
    assert response is not None and response.exit_code == EXIT_UNKNOWN
    assert "the live checks crashed" in response.text
    assert failure is not None and failure.verdict is Verdict.UNKNOWN


def test_rows_that_the_disk_does_not_take_are_missing_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TableFile, "write", full)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecorderWarning)
        with MiniCluster(seed=3, controllers=1) as cluster:
            recorder = inside(cluster).recorder
            recorder.tables.rows_in_memory, recorder.tables.piece_rows = 100, 50
            orders = cluster.create_topic("orders", min_isr=2)
            cluster.produce(orders, rate=20)
            cluster.run_for("20s")
            assert len(recorder.exchanges) < 500
            assert len([*recorder.in_memory("partition_event")]) < 500
            path = cluster.save(tmp_path / "run")
    run = read_run(path, "run")
    lacking = {problem.table for problem in run.problems}
    assert lacking == {"rpc", "partition_event", "raft_event", "history"} and run.header is not None
    assert all(problem.evidence is Evidence.TRACE for problem in run.problems)
    report = verified(path, rules=["F1", "F8", "E01", "E05"])
    assert report.verdict is Verdict.UNKNOWN
    assert report.rule("F8").verdict is Verdict.UNKNOWN
    [reason] = report.rule("F8").reasons
    assert "crashed" in reason and "No space left on device" in reason
    assert report.rule("E01").verdict is Verdict.VALID


def test_a_piece_that_the_disk_takes_in_part_is_an_error(tmp_path: Path) -> None:
    """What is left of it would be read as the beginning of the next one."""
    file = TableFile(tmp_path / "rpc.rows")
    piece = [TraceRow(number, number, {}) for number in range(10)]
    file.write(piece)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file.bytes + 5, limits[1]))
    try:
        with pytest.raises(OSError, match="No space left on device"):
            file.write(piece)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_row_that_is_no_row_of_its_table_is_missing_and_named(tmp_path: Path) -> None:
    """Wrong columns, a wrong type, a table that is not declared: mistakes of who records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecorderWarning)
        with MiniCluster(seed=3, controllers=1) as cluster:
            recorder = inside(cluster).recorder
            recorder.trace("refusal", {"node": 1, "no_such_column": 1})
            recorder.trace("fault", {"step": "three", "action": "cut", "phase": "start"})
            recorder.trace("no_such_table", {"node": 1})
            cluster.create_topic("orders")
            inside(cluster).recorder.trace("partition_event", {"broker": 1, "kind": "hw"})
            cluster.run_for("5s")
            path = cluster.save(tmp_path / "run")
            cluster.run_for("5s")
    problems = json.loads((path / "run.json").read_text())["recorder_problems"]
    assert [problem["lacks"] for problem in problems] == [None, None, "refusal", "fault"]
    assert "no_such_table" in problems[0]["why"] and "the live checks" in problems[1]["why"]
    read = read_run(path, "run")
    assert {problem.table for problem in read.problems} == {"refusal", "fault"}


def test_a_row_that_has_no_place_in_the_hash_is_named() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecorderWarning)
        with MiniCluster(seed=3, controllers=1) as cluster:
            cluster.create_topic("orders")
            inside(cluster).recorder.trace("publish", {"node": 2**70})
            assert cluster.trace_hash
            [problem] = inside(cluster).recorder.problems
    assert "the hash of a row crashed" in problem.why


def test_a_body_that_cannot_be_read_is_a_problem_of_client_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An error that the decoder of batches does not declare."""

    def fields(self: RecordBatch) -> Iterator[Any]:
        raise IndexError("index out of range")

    body = encoded([b"first"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecorderWarning)
        with MiniCluster(seed=3, controllers=1, online=False) as cluster:
            orders = cluster.create_topic("orders", min_isr=2)
            cluster.wait_until(lambda: orders[0].high_watermark >= 0)
            client = Client(cluster, "orders")
            with monkeypatch.context() as patch:
                patch.setattr(RecordBatch, "fields", fields)
                exchange = client.send_encoded(body)
            assert exchange.open
            cluster.wait_until(lambda: not exchange.open)
            assert client.responses
            assert client.send_and_wait([b"second"]) == 1
            rows = inside(cluster).recorder.table("client_record")
            received = [(row["f"], row["value"]) for row in rows]
    assert received == [("send", "second")]
    [problem] = inside(cluster).recorder.problems
    assert problem.lacks == "client_record" and "IndexError" in problem.why


def test_a_znode_of_bytes_that_are_no_text_is_missing_and_named(tmp_path: Path) -> None:
    """Other clients of ZooKeeper than Kafka's may write any bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecorderWarning)
        with MiniCluster(seed=3, mode="zookeeper") as cluster:
            operation = SetData("/config", b"\xff\xfe", -1)
            change = Change("set", "/config", 1, 1, b"\xff\xfe")
            last = inside(cluster).zookeeper_log.lines[-1]["zxid"]
            inside(cluster).zookeeper_log.append(
                LogTransaction(
                    last, cluster.now_ms, 1, "write", (operation,), (Code.OK,), (change,)
                ),
                None,
            )
            cluster.create_topic("orders")
            path = cluster.save(tmp_path / "run")
    run = read_run(path, "run")
    [problem] = run.problems
    assert problem.evidence is Evidence.ZNODES and "UnicodeDecodeError" in problem.why


def test_only_the_first_error_of_a_part_is_kept() -> None:
    class Clock:
        now_ms = 7

    recorder = Recorder("run", Clock())
    for number in range(3):
        recorder.own_problems.add("the live checks", ValueError(f"number {number}"))
    [problem] = recorder.problems
    assert problem.why == "the live checks crashed at 7 ms: ValueError: number 0 (and 2 more times)"
    assert len(one_line(ValueError("x" * 5_000))) < 400
