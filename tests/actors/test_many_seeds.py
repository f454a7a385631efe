"""A campaign: its seeds in several processes, its budget of time."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Sequence
from itertools import count

import pytest
from click.testing import CliRunner

from minicluster.actors.play.many_seeds import campaign
from minicluster.cli.main import app
from minicluster.errors import UserError
from minicluster.scenario import Scenario
from minicluster.verify.model import Verdict, exit_code
from tests.house.sources import ROOT


@pytest.mark.slow
def test_several_processes_play_each_seed_as_one_does() -> None:
    alone, together = list(campaign(range(3, 5))), list(campaign(range(3, 5), jobs=2))
    assert together == alone
    assert all(outcome.events > 1_000 for outcome in alone)


@pytest.mark.parametrize("jobs", [1, 2])
def test_no_seed_is_taken_up_after_the_budget_of_time(jobs: int) -> None:
    assert list(campaign(range(1, 1_000), jobs=jobs, in_time=lambda: False)) == []


def test_a_budget_of_time_ends_seeds_without_an_end() -> None:
    done = CliRunner().invoke(
        app, ["chaos", "--seeds", "5-", "--minutes", "1e-9"], standalone_mode=False
    )
    assert "0 seeds, 0 failed" in done.output
    assert done.return_value == exit_code(Verdict.UNKNOWN)


def test_the_processes_of_a_campaign_end_with_it() -> None:
    """Each has its standard output, so whoever reads that to its end has seen all of them go."""
    program = "from tests.actors.test_many_seeds import play_without_end; play_without_end()"
    playing = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, cwd=ROOT, text=True
    )
    assert playing.stdout is not None
    assert playing.stdout.readline() == "1\n"
    playing.terminate()
    playing.communicate(timeout=60)
    assert playing.returncode == -signal.SIGTERM


def play_without_end() -> None:
    for outcome in campaign(count(1), jobs=2, draw=without_steps):
        print(outcome.name, flush=True)


def without_steps(seed: int, variation: Sequence[int]) -> Scenario:
    return Scenario(seed=seed)


def test_seeds_without_an_end_need_a_budget() -> None:
    done = CliRunner().invoke(app, ["chaos", "--seeds", "5-"])
    assert isinstance(done.exception, UserError)
    assert "--minutes" in str(done.exception)
