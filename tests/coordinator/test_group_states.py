"""The states of a classic group: a generation is formed in order, and a dead group stays dead."""

from __future__ import annotations

from itertools import product

import pytest

from minicluster.coordinator.group.classic.group import (
    ClassicGroup,
    GroupState,
    IllegalStateTransition,
)

S = GroupState
IN_ORDER = (S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE, S.STABLE)
# ClassicGroupState.validPreviousStates of Kafka 4.3.0.
KAFKA = {
    (S.STABLE, S.PREPARING_REBALANCE),
    (S.COMPLETING_REBALANCE, S.PREPARING_REBALANCE),
    (S.EMPTY, S.PREPARING_REBALANCE),
    (S.PREPARING_REBALANCE, S.COMPLETING_REBALANCE),
    (S.COMPLETING_REBALANCE, S.STABLE),
    (S.PREPARING_REBALANCE, S.EMPTY),
    *((state, S.DEAD) for state in S),
}


def test_a_generation_is_formed_in_order() -> None:
    group = ClassicGroup("g", 0)
    for now_ms, state in enumerate(IN_ORDER, start=1):
        group.transition_to(state, now_ms)
        assert (group.state, group.state_since_ms) == (state, now_ms)


@pytest.mark.parametrize(("before", "after"), list(product(S, S)))
def test_a_state_follows_those_that_it_follows_in_kafka(
    before: GroupState, after: GroupState
) -> None:
    group = ClassicGroup("g", 0)
    group.state = before
    if (before, after) in KAFKA:
        group.transition_to(after, 5)
        assert (group.previous_state, group.state) == (before, after)
    else:
        with pytest.raises(IllegalStateTransition, match="g: "):
            group.transition_to(after, 5)
        assert group.state is before


@pytest.mark.parametrize("state", list(S))
def test_a_rebalance_begins_only_where_one_may_be_prepared(state: GroupState) -> None:
    group = ClassicGroup("g", 0)
    group.state = state
    assert group.can_rebalance == ((state, S.PREPARING_REBALANCE) in KAFKA)
