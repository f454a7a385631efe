"""What clients were acknowledged and read, where it is told apart from what only looks like it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster.verify.evidence.reading import read_run
from minicluster.verify.judging import Tally
from minicluster.verify.rules.every import BY_ID
from minicluster.verify.whole import judge_whole
from tests.verify.examples.groups import f10_bad
from tests.verify.handwritten.clients import client, leads, sent
from tests.verify.handwritten.run import TOPIC_ID, RunBuilder, plain_run
from tests.verify.in_process import judged


def tally_of(rule: str, run: RunBuilder, folder: Path) -> Tally:
    folder.mkdir()
    judged = judge_whole(read_run(run.write(folder), "r"), [BY_ID[rule]])
    assert judged.crashes == {}
    return judged.tallies[rule]


def log_at_the_end_of(run: RunBuilder, process: str, values: dict[int, str]) -> RunBuilder:
    """The log that a process of broker 1 leaves when it ends."""
    of_broker = {"broker": 1, "topic": "orders", "topic_id": TOPIC_ID, "part": 0, "at": "end"}
    for offset, value in values.items():
        row = {"incarnation": process, "offset": offset, "leader_epoch": 0, "value_id": value}
        run.row("replica_log", {**of_broker, **row})
    return run


@pytest.mark.parametrize(("held", "lost"), [("b", 0), ("x", 1)])
def test_the_last_leader_has_the_log_of_its_last_process(
    held: str, lost: int, tmp_path: Path
) -> None:
    """Broker 1 was shut down with a record that was not committed, and has truncated it since."""
    run = log_at_the_end_of(plain_run(), "first", {0: "a", 1: "x"})
    sent(sent(leads(run, end=2), 0, "a"), 1, "b")
    log_at_the_end_of(run, "second", {0: "a", 1: held})
    tally = tally_of("F1", run, tmp_path / "run")
    assert (tally.looked_at, len(tally.findings)) == (2, lost)


@pytest.mark.parametrize("kind", ["commit", "pending"])
def test_a_group_whose_offset_another_client_sets_may_leave_records_out(
    kind: str, tmp_path: Path
) -> None:
    left_out = tally_of("F10", f10_bad(), tmp_path / "alone")
    assert len(left_out.findings) == 1
    run = client(f10_bad(), kind, group_id="g", offset=3, connection=5)
    sought = tally_of("F10", run, tmp_path / "sought")
    assert (sought.findings, sought.looked_at, sum(sought.exempt.values())) == ([], 0, 1)
    of_another = client(f10_bad(), kind, group_id="h", offset=3, connection=5)
    assert len(tally_of("F10", of_another, tmp_path / "another").findings) == 1


@pytest.mark.parametrize("fetch_first", [True, False])
def test_rows_of_one_response_count_the_same_in_any_order(
    fetch_first: bool, tmp_path: Path
) -> None:
    """F18: the first response of an epoch has none before it, whichever of its rows comes first."""
    run = leads(plain_run(), end=5)
    for rpc in (7, 8):
        seq = run.seq + 1
        response = {"rpc": rpc, "resp_seq": seq, "seq": seq, "high_watermark": 5}
        rows: list[dict[str, Any]] = [{"kind": "fetch"}]
        rows += [{"kind": "read", "offset": offset, "value": str(offset)} for offset in (1, 2)]
        for row in rows if fetch_first else reversed(rows):
            client(run, **response, **row)
    assert judged(run.write(tmp_path / "run"), "F18")["F18"] == (1, [])
