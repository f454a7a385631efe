"""A campaign: its seeds in several processes, its budget of time."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from minicluster.actors.play.many_seeds import campaign
from minicluster.cli.main import app
from minicluster.errors import UserError
from minicluster.verify.model import Verdict, exit_code


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


def test_seeds_without_an_end_need_a_budget() -> None:
    done = CliRunner().invoke(app, ["chaos", "--seeds", "5-"])
    assert isinstance(done.exception, UserError)
    assert "--minutes" in str(done.exception)
