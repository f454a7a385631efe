"""The end of a serving cluster: each part is shown, and a slow end is one line in a pipe."""

from __future__ import annotations

import warnings

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording.problems import RecorderWarning
from minicluster.actors.serve import serving


def test_an_end_that_is_slow_is_told_once_with_the_part_that_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now_s[0])
    shown: list[str] = []
    slow: list[str] = []
    report = serving.Report(
        ready=shown.append,
        step=lambda text, now_ms: None,
        failed=shown.append,
        status=shown.append,
        slow=slow.append,
    )
    end = serving._End(report)
    for part, seconds in (("stopping", 0.5), ("the logs", 0.5), ("rpc", 5), ("fault", 0)):
        end.begin(part)
        now_s[0] += seconds
    assert shown == ["stopping", "the logs", "rpc", "fault"]
    assert slow == ["the end takes more than 1 s: rpc"]


def test_a_trace_that_reached_its_bound_is_no_failure_of_the_command() -> None:
    """A failure of the recorder is one: its run is unknown, and the exit code says so."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecorderWarning)
        with MiniCluster(seed=11) as cluster:
            recorder = inside(cluster).recorder
            assert serving._unseen(inside(cluster)) == (None, None)
            recorder.tables.rows_in_memory, recorder.tables.piece_rows = 64, 64
            recorder.tables.bytes_on_disk = 150_000
            cluster.produce(cluster.create_topic("orders", min_isr=1), rate=20)
            cluster.run_for("20s")
            assert any("a trace takes at most" in line for line in serving._lacks(recorder))
            response, failure = serving._unseen(inside(cluster))
            assert response is None and failure is not None and failure.kind == "unseen"
            recorder.own_problems.add("the live checks", ValueError("broken"))
            response, failure = serving._unseen(inside(cluster))
            assert response is not None and response.exit_code == 2
