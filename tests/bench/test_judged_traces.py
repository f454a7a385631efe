"""The judge over the trace of a load of small records: four times as many take four times as long.

Each record is a batch of its own, acknowledged to a producer and read by several groups, which
commit after each. What is held of the trace must be a part of what its rows take as Python has
them.
"""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.trace_tables import read_table
from minicluster.verify.rules.every import RULES
from minicluster.verify.whole import judge_whole
from tests.bench.judging_cost import seconds_and_bytes
from tests.verify.handwritten.clients import client, holds, poll
from tests.verify.handwritten.log import cluster
from tests.verify.handwritten.run import EVERYBODY, RunBuilder, as_json

pytestmark = [pytest.mark.slow, pytest.mark.benchmark(timer=time.process_time)]

FEW, MANY = 600, 2_400
JUDGED_BY = ("F1", "F8", "H1", "F7", "G12")
GROUPS = ("g", "h", "i", "j")
ROWS_PER_RECORD = 6 + 6 * len(GROUPS) + 3


def run_of(records: int, path: Path) -> Run:
    """A run in which so many records were produced, replicated, acknowledged and read."""
    header = {"healed_ms": 0, "bounds_ms": {"G5": 500, "G12": 5_000}, "brokers": [1, 2, 3]}
    run = RunBuilder(cluster(), **header).committed()
    run.partition("become_leader", leo=0, hw_new=0, **EVERYBODY)
    for group in GROUPS:
        member = {"client_id": f"{group}-1", "member_id": f"{group}-1", "group_id": group}
        client(run, "own", generation=1, connection=None, received_seq=run.seq + 1, **member)
    for number in range(records):
        known = dict.fromkeys((2, 3), (number + 1, 0, 5))
        end: dict[str, Any] = {"leo": number + 1, "epochs": [0, 0]}
        run.partition("append", offset=number, **end, **EVERYBODY)
        run.partition("append", broker=2, offset=number, **end)
        run.partition("append", broker=3, offset=number, **end)
        moved = {"hw_old": number, "hw_new": number + 1, "leo": number + 1, "known": known}
        run.partition("hw", **moved, **EVERYBODY)
        run.partition(
            "ack", offset=number, hw_new=number + 1, leo=number + 1, known=known, **EVERYBODY
        )
        produced = {"request": as_json({"acks": -1, "timeoutMs": 30_000}), "response": "{}"}
        run.rpc("Produce", 9, dst=1, client_id="app-1", connection=1, **produced)
        client(run, "send", offset=number, value=f"v{number}", acks=-1, send_seq=run.seq)
        for group in GROUPS:
            poll(run, f"{group}-1", number)
            member = {"client_id": f"{group}-1", "group_id": group, "offset": number + 1}
            client(run, "commit", send_seq=run.seq, **member)
            client(run, "committed", send_seq=run.seq, stable=True, **member)
    for group in GROUPS:
        run.rpc("Heartbeat", 9, dst=1, client_id=f"{group}-1", connection=2, sent_ms=run.seq)
    run.header["ended_at_ms"] = run.seq + 1
    for broker in (1, 2, 3):
        holds(run, broker, {number: f"v{number}" for number in range(records)})
    return read_run(run.write(path), path.name)


def bytes_of_rows(run: Run) -> int:
    """What the rows of the trace take as Python has them."""
    tracemalloc.start()
    rows = [
        piece.to_pylist()
        for table, file in run.trace.items()
        for piece in read_table(file, table, as_written=True)
    ]
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sum(map(len, rows)) > ROWS_PER_RECORD
    return taken


def test_a_small_record_among_many_costs_what_it_does_among_few(
    benchmark: Any, tmp_path: Path
) -> None:
    few, many = run_of(FEW, tmp_path / "few"), run_of(MANY, tmp_path / "many")
    judge_whole(few, RULES)  # what is loaded at the first need
    seconds_of_few, _ = seconds_and_bytes(few, JUDGED_BY)
    seconds_of_many, peak = benchmark.pedantic(lambda: seconds_and_bytes(many, JUDGED_BY), rounds=1)
    growth, part = seconds_of_many / seconds_of_few, peak / bytes_of_rows(many)
    benchmark.extra_info.update(seconds=[seconds_of_few, seconds_of_many], part_of_the_rows=part)
    print(benchmark.extra_info)
    assert growth < 6
    assert part < 0.7, "rows of the trace are held"
