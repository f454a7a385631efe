"""A seed is one run: in every process, under every hash seed, with the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.house.sources import ROOT
from tests.programs.played import STORIES, play


def played_elsewhere(name: str, seed: int) -> str:
    """The same in another process, whose hash seed is drawn by the interpreter."""
    return subprocess.run(
        [sys.executable, "-m", "tests.programs.played", name, str(seed)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "random"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


def played_in_processes(name: str, processes: int) -> set[str]:
    """What a story was in several of them."""
    with ThreadPoolExecutor(2) as pool:
        return set(pool.map(lambda _: played_elsewhere(name, 7), range(processes)))


@pytest.mark.slow
@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_the_same_in_twenty_processes(name: str) -> None:
    assert len(played_in_processes(name, 20)) == 1


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_the_same_here_and_in_another_process(name: str) -> None:
    assert {play(name, 7)} == played_in_processes(name, 1)


def test_another_seed_is_another_run() -> None:
    assert play("group", 8).split()[3:] != play("group", 7).split()[3:]
