"""The waits after the last disturbance: the longest of each counts, and why one is not judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from minicluster.verify.evidence.reading import read_run
from minicluster.verify.histories.commits import Commits
from minicluster.verify.histories.timeline import Timeline
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.judging import Tally
from minicluster.verify.promises import promises_of
from minicluster.verify.waits.liveness import RULES, Awaited
from minicluster.verify.waits.longest import Subject, Waits
from minicluster.verify.whole import judge_run, read_trace
from tests.verify.examples import liveness as cases
from tests.verify.handwritten.run import TOPIC_ID, RunBuilder


def tallies(run: RunBuilder, folder: Path) -> Mapping[str, Tally]:
    evidence = read_run(run.write(folder / "run"), "run")
    judge = judge_run(evidence, RULES, read_trace(evidence)[0])
    assert not judge.crashes, judge.crashes
    return judge.tallies


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"healed_ms": None}, "a disturbance lasts until the end of the run"),
        ({"ended_at_ms": 400}, "the run ends before the bound is over"),
    ],
)
def test_a_run_that_decides_nothing_says_why(
    change: dict[str, object], why: str, tmp_path: Path
) -> None:
    run = cases.g1_bad()
    run.header |= change
    for rule, tally in tallies(run, tmp_path).items():
        assert tally.looked_at == 0
        assert dict(tally.exempt) == ({} if rule == "G10" else {why: 1})


def by_topic_id(run: RunBuilder) -> RunBuilder:
    """The run with Produce of version 13, which names topics by their ids."""
    for row in run.rows["rpc"]:
        if row["api"] == "Produce":
            response = json.loads(row["response"])
            for topic in response["responses"]:
                del topic["name"]
                topic["topicId"] = TOPIC_ID
            row["response"] = json.dumps(response, separators=(",", ":"))
    return run


def test_a_time_out_of_a_committed_produce_is_found_by_name_and_by_id(tmp_path: Path) -> None:
    by_name = tallies(cases.g8_committed_timeout(), tmp_path / "name")["G8"]
    by_id = tallies(by_topic_id(cases.g8_committed_timeout()), tmp_path / "id")["G8"]
    assert by_name == by_id
    assert by_id.findings


def test_a_wait_has_the_offset_that_was_committed_when_it_began(tmp_path: Path) -> None:
    """By it the report shows a finding's moment, its causes and its mark."""
    marks = [{"seq": n, "kind": "hw", "offset": 10 * n, "vt": 100 * n} for n in (1, 2, 3)]
    evidence = read_run(cases.g1_bad().write(tmp_path / "run"), "run")
    run = TracedRun(evidence, {"raft_event": marks}, Timeline(), promises_of(None))
    committed = Commits(run)
    assert [committed.last_at(ms) for ms in (99, 100, 199, 250, 900)] == [None, 9, 9, 19, 29]
    assert [committed.at_ms(offset) for offset in (0, 9, 10, 29, 30)] == [100, 100, 200, 300, None]
    assert [committed.seq_of(offset) for offset in (0, 9, 10, 29, 30)] == [1, 1, 2, 3, None]


def test_of_all_waits_of_a_subject_the_longest_after_the_last_disturbance_counts() -> None:
    change, subject = Awaited.ISR_CHANGE_ENDED, Subject("orders", 0, 1)
    waits = Waits({change: 100}, {change: 150}, ended_ms=900, unjudged={})
    for since_ms, until_ms in ((100, 160), (200, 400), (500, 600)):
        waits.stretch(change, subject, since_ms, until_ms)
    assert waits.longest[change] == {subject: (200, 200)}
    waits.stretch(change, subject, 0, 700)
    assert waits.longest[change] == {subject: (550, 150)}, "from the last disturbance on"
