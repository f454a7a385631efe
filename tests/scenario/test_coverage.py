"""The coverage of a campaign, and the seeds that are varied because they saw something new."""

from __future__ import annotations

import pytest

from minicluster.actors.play import many_seeds, observations
from minicluster.actors.play.campaign import Outcome
from minicluster.actors.play.many_seeds import ROUND, campaign
from minicluster.scenario import Scenario
from minicluster.scenario.coverage import KINDS, Coverage
from minicluster.scenario.reading import MODES

KNOWN = {"refusals": frozenset({"fenced", "not the leader"})}


def test_a_sight_belongs_to_the_seed_that_saw_it_first() -> None:
    coverage = Coverage(KNOWN)
    assert coverage.add("1", [("refusals", "fenced"), ("errors", "Vote NOT_LEADER")]) == 2
    assert coverage.add("2", [("refusals", "fenced")]) == 0
    assert coverage.add("2.1", [("refusals", "fenced"), ("voters", "begin -> voted")]) == 1
    assert coverage.first_seen["refusals", "fenced"] == "1"
    assert coverage.fresh == {"1": 2, "2.1": 1}


def test_the_table_has_a_row_for_each_kind_and_names_what_was_missed() -> None:
    coverage = Coverage(KNOWN)
    coverage.add("7", [("refusals", "fenced")])
    head, *rows = coverage.lines()
    assert head.split() == ["coverage", "seen", "of", "last", "new", "at", "seed"]
    assert [row.split()[0] for row in rows[: len(KINDS)]] == list(KINDS)
    assert "refusals       1     2  7" in rows
    assert rows[-1] == "refusals not seen: not the leader"


def test_the_same_for_programs() -> None:
    coverage = Coverage(KNOWN)
    coverage.add("7", [("refusals", "fenced"), ("records", "Topic")])
    data = coverage.to_dict()
    assert data["seeds"] == {"7": 2}
    refusals = data["kinds"]["refusals"]
    assert refusals["seen"] == {"fenced": "7"} and refusals["missed"] == ["not the leader"]
    assert "missed" not in data["kinds"]["records"]


def seen_by(seed: int, variation: tuple[int, ...]) -> frozenset[tuple[str, str]]:
    """Seed 2 sees something, and so does its second variation; nobody else."""
    names = {(2, ()): "fenced", (2, (2,)): "not the leader"}
    name = names.get((seed, variation))
    return frozenset() if name is None else frozenset({("refusals", name)})


def played(
    seed: int, faults: tuple[str, ...], *, variation: tuple[int, ...], runs: None, draw: object
) -> Outcome:
    return Outcome(
        seed=seed,
        scenario=Scenario(faults=faults),
        failure=None,
        trace_hash="",
        events=0,
        cluster_ms=0,
        steps_done=0,
        idle_faults=(),
        variation=variation,
        observations=seen_by(seed, variation),
    )


def test_seeds_that_saw_something_new_are_varied_and_so_are_their_variations(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(many_seeds, "play_seed", played)
    names = [outcome.name for outcome in campaign(range(1, 11), vary=2)]
    first = [str(seed) for seed in range(1, ROUND + 1)]
    assert names == [*first, "9", "10", "2.1", "2.2", "2.2.1", "2.2.2"]


def test_without_variations_each_seed_is_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many_seeds, "play_seed", played)
    assert [outcome.name for outcome in campaign(range(1, 4))] == ["1", "2", "3"]
    assert [outcome.name for outcome in campaign((2,), variation=(2, 1))] == ["2.2.1"]


def test_a_campaign_of_either_mode_misses_the_rules_of_its_log_and_those_of_replicas() -> None:
    rules = {mode: known["rules"] for mode, known in observations.KNOWN.items()}
    assert {"A1", "E02"} <= rules["kraft"] - rules["zookeeper"]
    assert {"K1", "K8"} <= rules["zookeeper"] - rules["kraft"]
    assert {"B2", "F8", "F18"} <= rules["kraft"] & rules["zookeeper"]
    assert {*MODES} == {*rules}
