"""Promises about time: each is broken by its own hand-written run, and kept by the near miss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.verify.rules.time.bounds import RULES
from minicluster.verify.rules.time.waits import Committed, Times, Waits
from tests.verify import trace_cases_time as cases
from tests.verify.build_run import RunBuilder
from tests.verify.in_process import judged

IDS = tuple(rule.id for rule in RULES)
Case = Callable[[], RunBuilder]


def broken(case: Case, folder: Path) -> dict[str, bool]:
    """The rules with cases, and those of them that are broken."""
    case().write(folder / "run")
    found = judged(folder / "run", *IDS)
    return {rule: bool(messages) for rule, (cases, messages) in found.items() if cases}


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule, several in cases.BAD.items() for case in several]
)
def test_what_waits_too_long_is_found(rule: str, case: Case, tmp_path: Path) -> None:
    assert broken(case, tmp_path)[rule]


@pytest.mark.parametrize(
    ("rule", "case"), [(rule, case) for rule, several in cases.NEAR.items() for case in several]
)
def test_what_ends_in_time_is_no_finding(rule: str, case: Case, tmp_path: Path) -> None:
    found = broken(case, tmp_path)
    assert rule in found and not found[rule]


@pytest.mark.parametrize("change", [{"healed_ms": None}, {"ended_at_ms": 400}])
def test_without_an_end_of_disturbances_or_of_a_bound_nothing_is_promised(
    change: dict[str, object], tmp_path: Path
) -> None:
    def unjudged() -> RunBuilder:
        run = cases.g1_bad()
        run.header |= change
        return run

    assert broken(unjudged, tmp_path) == {}


def test_a_wait_has_the_offset_that_was_committed_when_it_began() -> None:
    """By it the report shows a finding's moment, its causes and its mark."""
    commits = [{"seq": n, "kind": "hw", "offset": 10 * n, "vt": 100 * n} for n in (1, 2, 3)]
    committed = Committed(commits)
    assert [committed.last_at(ms) for ms in (99, 100, 199, 250, 900)] == [None, 9, 9, 19, 29]
    waits = Waits(Times(healed_ms=150, settled_ms=150, ended_ms=900, bounds={"G4": 100}))
    for since_ms, until_ms in ((100, 160), (200, 400), (500, 600)):
        waits.stretch("G4", ("orders", 0, 1), since_ms, until_ms)
    assert waits.longest == {("G4", ("orders", 0, 1)): 200}
    assert waits.since_ms == {("G4", ("orders", 0, 1)): 200}
    waits.stretch("G4", ("orders", 0, 1), 0, 700)
    assert waits.since_ms == {("G4", ("orders", 0, 1)): 150}, "from the last disturbance on"


def test_a_run_names_the_end_of_its_disturbances(tmp_path: Path) -> None:
    """A broker that comes back is in sync again in time; while it is down nothing is judged."""
    with MiniCluster(controllers=1, brokers=3, seed=3) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        cluster.produce("orders", count=5)
        cluster.kill(2)
        down = cluster.save(tmp_path / "down")
        cluster.run_for("20s")
        cluster.restart(2)
        cluster.run_for("80s")
        assert sorted(orders[0].isr) == [1, 2, 3]
        back = cluster.save(tmp_path / "back")
    assert not any(cases for cases, _ in judged(down, *IDS).values())
    found = judged(back, *IDS)
    assert not [messages for _, messages in found.values() if messages]
    assert {rule for rule, (cases, _) in found.items() if cases} >= {"G1", "G2", "G3", "G6", "G8"}
