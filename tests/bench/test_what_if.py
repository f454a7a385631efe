"""A what-if costs the same for each partition, however many there are; nodes share folds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.play import what_if as played
from tests.actors.large_checkpoint import checkpoint_of

pytestmark = [pytest.mark.slow, pytest.mark.benchmark(timer=time.process_time)]


def cost(folder: Path, partitions: int) -> float:
    """Seconds of the processor for each partition, of which a third loses a replica."""
    folder.mkdir()
    path, begun = checkpoint_of(folder, partitions), time.process_time()
    found = played.what_if(path, ["kill rack(3)"], seeds=[1], config={}, watch_ms=15_000)
    assert found.seeds[0].failure is None
    assert found.seeds[0].stages[1].all.most[0] > partitions // 4
    return (time.process_time() - begun) / partitions


def test_a_partition_of_many_costs_what_one_of_few_does(benchmark: Any, tmp_path: Path) -> None:
    few, many = cost(tmp_path / "few", 1_000), 0.0

    def measure() -> None:
        nonlocal many
        many = cost(tmp_path / "many", 4_000)

    benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["microseconds"] = [round(1e6 * one) for one in (few, many)]
    benchmark.extra_info["ratio"] = round(many / few, 2)
    assert many / few < 1.5
