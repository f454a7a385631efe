"""A seed is one run: in every process, under every hash seed, with the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.programs.played import STORIES, play

BEFORE = {  # the releases before those that the suite is installed with, and what plays with them
    "aiokafka==0.13.0": ("group", "dead_leader", "exactly_once", "faststream"),
    "faststream==0.6.7": ("faststream",),
    "kafka-python==2.3.3": ("kafka_python",),
}


here = cache(play)
"""Several tests compare one play with others."""


def played_elsewhere(*names: str, libraries: Path | None = None) -> list[str]:
    """Stories of seed 7 in another process, whose hash seed is drawn by the interpreter.

    A library that the simulation was not tried with fails the test.
    """
    path = {} if libraries is None else {"PYTHONPATH": str(libraries)}
    played = subprocess.run(
        [sys.executable, "-m", "tests.programs.played", "7", *names],
        cwd=ROOT,
        env={**os.environ, **path, "PYTHONHASHSEED": "random"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "was not tried in the simulation" not in played.stderr
    return played.stdout.splitlines()


def played_in_processes(name: str, processes: int, libraries: Path | None = None) -> set[str]:
    """What a story was in several of them."""
    with ThreadPoolExecutor(2) as pool:
        plays = pool.map(lambda _: played_elsewhere(name, libraries=libraries), range(processes))
        return {line for lines in plays for line in lines}


@pytest.mark.slow
@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_the_same_in_twenty_processes(name: str) -> None:
    assert len(played_in_processes(name, 20)) == 1


@pytest.mark.slow
@pytest.mark.parametrize("release", BEFORE)
def test_a_story_repeats_with_the_release_before(release: str, tmp_path: Path) -> None:
    pytest.importorskip("pip")
    install = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(tmp_path)]
    subprocess.run([*install, release], check=True)
    for name in BEFORE[release]:
        [played] = played_in_processes(name, 2, tmp_path)
        assert played not in played_in_processes(name, 1), f"{release} was not what was played"


@pytest.fixture(scope="module")
def elsewhere() -> dict[str, str]:
    """What each story was in another process."""
    return dict(zip(STORIES, played_elsewhere(*STORIES), strict=True))


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_the_same_here_and_in_another_process(
    name: str, elsewhere: dict[str, str]
) -> None:
    assert here(name, 7) == elsewhere[name]


def test_another_seed_is_another_run() -> None:
    assert here("group", 8).split()[3:] != here("group", 7).split()[3:]


def test_the_next_cluster_of_a_process_counts_its_clients_from_the_beginning() -> None:
    """kafka-python numbers its producers for the life of the process, in their client ids."""
    assert here("kafka_python", 7) == play("kafka_python", 7)
