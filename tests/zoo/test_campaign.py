"""The table of what campaigns find: what it holds, and that its seeds still find the faults."""

from __future__ import annotations

import pytest

from docs.generate.zoo_page import spans
from tests.zoo.measure_campaign import Campaign, Found, faults, play_judged, results

FOUND = [(zoo, found) for zoo, found in results().items() if found.found is not None]
SEEDS = 400  # of a sample


def test_each_result_is_about_a_fault_that_a_cluster_can_show() -> None:
    assert {*results()} <= {*faults()}


def test_four_of_five_faults_are_found_and_three_of_five_by_a_primary_rule() -> None:
    """Within 40 seeds."""
    measured, known = results().values(), len(faults())
    assert 5 * sum((result.found or 41) <= 40 for result in measured) >= 4 * known
    assert 5 * sum((result.primary or 41) <= 40 for result in measured) >= 3 * known


@pytest.mark.parametrize("zoo", results())
def test_a_fault_acts_before_it_is_found(zoo: str) -> None:
    found = results()[zoo]
    for earlier, later in ((found.acted, found.found), (found.found, found.primary)):
        assert later is None or (earlier is not None and earlier <= later in found.tried)
    assert [*found.tried] == sorted({*found.tried})
    assert bool(found.rules) == (found.found is not None)
    assert (
        found.primary is None or found.primary != found.found or {*found.rules} & {*faults()[zoo]}
    )


def test_an_outcome_has_the_first_of_its_seeds_in_whatever_order_they_came() -> None:
    found = Found().after(7, True, ["G3"], ("E32",)).after(3, True, ["E32"], ("E32",))
    assert (
        found
        == Found(tried=(3, 7), acts=2, acted=3, found=3, primary=3, rules=("E32",))
        != found.after(2, False, [], ("E32",))
    )
    assert found.after(9, True, ["G3"], ("E32",)).rules == ("E32",)
    assert not found.is_seldom and Found(tried=(1, 2, 3), acts=1).is_seldom
    assert spans((1, 2, 3, 7, 9, 10)) == "1-3 7 9-10"


def test_a_fault_that_always_acts_is_found_and_one_that_is_idle_is_not() -> None:
    """S29 writes a change with the first heartbeats; S41 needs consumers, which seed 1 lacks."""
    shown: dict[str, Found] = {}
    campaign = Campaign({}, shown.__setitem__)
    campaign.play(1, ("S29", "S41"))
    assert shown["S29"].primary == 1
    assert shown["S41"] == Found(tried=(1,))
    campaign.play(1, ("S29", "S41"))  # nothing is left of it
    assert shown["S29"].acts == 1


@pytest.mark.slow
@pytest.mark.parametrize(("zoo", "found"), FOUND, ids=[zoo for zoo, _ in FOUND])
def test_the_seed_that_found_a_fault_finds_it_again(zoo: str, found: Found) -> None:
    assert found.found is not None
    acted, broken = play_judged(zoo, faults()[zoo], found.found)
    assert acted
    assert tuple(broken) == found.rules


@pytest.mark.slow
def test_four_of_five_faults_of_a_sample_are_found() -> None:
    """Every ninth fault, seed after seed, until any rule has found four of five of them."""
    sample = [*faults()][::9]
    found: dict[str, Found] = {}
    campaign = Campaign(found, lambda zoo, result: None)
    for seed in range(1, SEEDS + 1):
        missed = [zoo for zoo in sample if found.get(zoo, Found()).found is None]
        if 5 * len(missed) <= len(sample):
            break
        campaign.play(seed, missed)
    assert 5 * len(missed) <= len(sample), missed
