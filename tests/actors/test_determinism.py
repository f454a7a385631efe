"""The same seed gives the same trace, in every process; another seed gives another one."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

from tests.actors import story


@cache
def play(seed: int) -> str:
    """Several tests compare one play with others."""
    return story.play(seed)


def test_a_seed_fixes_the_trace_in_another_process_and_under_another_hash_seed() -> None:
    environment = {**os.environ, "PYTHONHASHSEED": "random"}
    command = [sys.executable, "-m", "tests.actors.story", "11"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == play(11)


def test_another_seed_gives_another_trace() -> None:
    assert play(20) != play(11)


def test_a_second_play_in_one_process_by_bytes_alone_is_the_same() -> None:
    """They carry everything that the machines need."""
    assert story.play(11, wire=True) == play(11)
