"""The same seed gives the same trace, in every process; another seed gives another one."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest

from tests.actors import story


@cache
def play(seed: int) -> str:
    """Several tests compare one play with others."""
    return story.play(seed)


def in_another_process(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
    command = [sys.executable, "-m", "tests.actors.story", str(seed)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_seed_fixes_the_trace_in_one_process() -> None:
    assert story.play(11) == play(11)


@pytest.mark.parametrize("hash_seed", ["0", "random"])
def test_a_seed_fixes_the_trace_in_another_process_and_under_another_hash_seed(
    hash_seed: str,
) -> None:
    assert in_another_process(11, hash_seed) == play(11)


def test_another_seed_gives_another_trace() -> None:
    assert play(20) != play(11)


def test_the_bytes_carry_everything_that_the_machines_need() -> None:
    assert story.play(11, wire=True) == play(11)
