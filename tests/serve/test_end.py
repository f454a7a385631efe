"""The end of a serving cluster: each part is shown, and a slow end is one line in a pipe."""

from __future__ import annotations

import pytest

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
    for part, seconds in (("stopping", 1), ("the logs", 2), ("rpc", 5), ("fault", 0)):
        end.begin(part)
        now_s[0] += seconds
    assert shown == ["stopping", "the logs", "rpc", "fault"]
    assert slow == ["the end takes more than 3 s: rpc"]
