"""The table of what campaigns find: what it holds, and that its seeds still find the faults."""

from __future__ import annotations

import pytest

from tests.zoo.measure_campaign import Found, faults, play_judged, results

FOUND = [(zoo, found) for zoo, found in results().items() if found.found is not None]


def test_each_result_is_about_a_fault_that_a_cluster_can_show() -> None:
    assert {*results()} <= {*faults()}


@pytest.mark.parametrize("zoo", results())
def test_a_fault_acts_before_it_is_found(zoo: str) -> None:
    found = results()[zoo]
    for earlier, later in ((found.acted, found.found), (found.found, found.primary)):
        assert later is None or (earlier is not None and earlier <= later in found.tried)
    assert bool(found.rules) == (found.found is not None)
    assert (
        found.primary is None or found.primary != found.found or {*found.rules} & {*faults()[zoo]}
    )


@pytest.mark.slow
@pytest.mark.parametrize(("zoo", "found"), FOUND, ids=[zoo for zoo, _ in FOUND])
def test_the_seed_that_found_a_fault_finds_it_again(zoo: str, found: Found) -> None:
    assert found.found is not None
    acted, broken = play_judged(zoo, faults()[zoo], found.found)
    assert acted
    assert tuple(broken) == found.rules
