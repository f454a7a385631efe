"""The same seed gives the same trace, in every process; another seed gives another one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.actors.story import play


def in_another_process(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "tests.actors.story", str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("hash_seed", ["0", "1", "random"])
def test_a_seed_fixes_the_trace_in_another_process_and_under_another_hash_seed(
    hash_seed: str,
) -> None:
    assert in_another_process(11, hash_seed) == play(11)


def test_other_seeds_give_other_traces() -> None:
    assert len({play(seed) for seed in range(20, 23)}) == 3


def test_the_bytes_carry_everything_that_the_machines_need() -> None:
    assert play(11, wire=True) == play(11)
