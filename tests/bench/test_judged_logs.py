"""The judge over the records that replicas hold: four times as many take four times as long.

The rows of them are as many as the records: packed, they take little of what else is held.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run
from minicluster.verify.rules.every import RULES
from minicluster.verify.whole import judge_whole
from tests.bench.judging_cost import seconds_and_bytes
from tests.verify.handwritten.clients import holds, leads
from tests.verify.handwritten.run import plain_run

pytestmark = [pytest.mark.slow, pytest.mark.benchmark(timer=time.process_time)]

FEW, MANY = 5_000, 20_000
JUDGED_BY = ("F4",)


def run_of(records: int, path: Path) -> Run:
    """Three replicas that hold so many records at the end."""
    run = leads(plain_run(), end=records)
    for broker in (1, 2, 3):
        holds(run, broker, {offset: f"v{offset}" for offset in range(records)})
    return read_run(run.write(path), path.name)


def test_a_record_among_many_costs_what_it_does_among_few(benchmark: Any, tmp_path: Path) -> None:
    few, many = run_of(FEW, tmp_path / "few"), run_of(MANY, tmp_path / "many")
    judge_whole(few, RULES)  # what is loaded at the first need
    seconds_of_few, bytes_of_few = seconds_and_bytes(few, JUDGED_BY)
    seconds_of_many, bytes_of_many = benchmark.pedantic(
        lambda: seconds_and_bytes(many, JUDGED_BY), rounds=1
    )
    benchmark.extra_info["seconds"] = [seconds_of_few, seconds_of_many]
    benchmark.extra_info["megabytes"] = [bytes_of_few / 1e6, bytes_of_many / 1e6]
    print(benchmark.extra_info)
    assert seconds_of_many / seconds_of_few < 8
    assert bytes_of_many / bytes_of_few < 3, "rows of records are held"
