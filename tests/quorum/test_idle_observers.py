"""The times for which a leader keeps an observer and counts one as caught up."""

from __future__ import annotations

from minicluster.quorum.settings import CAUGHT_UP_WITHIN_MS, OBSERVER_SESSION_TIMEOUT_MS
from minicluster.quorum.state.leader_state import LeaderState
from tests.quorum.test_rows_leader import key, leader, voter_set

FETCHED_MS = 1_000


def watched() -> LeaderState:
    """A leader at whose end an observer, 7, has fetched."""
    role = leader(1, 2, start=0)
    role.on_local_end(10, voter_set(1, 2))
    role.on_fetch(key(7), 10, FETCHED_MS)
    return role


def test_an_observer_is_forgotten_when_it_has_been_silent_for_five_minutes() -> None:
    role = watched()
    role.drop_idle_observers(FETCHED_MS + OBSERVER_SESSION_TIMEOUT_MS - 1)
    assert key(7) in role.observers
    role.drop_idle_observers(FETCHED_MS + OBSERVER_SESSION_TIMEOUT_MS)
    assert key(7) not in role.observers


def test_an_observer_is_caught_up_for_less_than_an_hour_after_its_last_fetch() -> None:
    role = watched()
    assert role.is_caught_up(key(7), FETCHED_MS + CAUGHT_UP_WITHIN_MS - 1)
    assert not role.is_caught_up(key(7), FETCHED_MS + CAUGHT_UP_WITHIN_MS)
    assert not role.is_caught_up(key(8), FETCHED_MS)


def test_an_observer_that_was_never_at_the_end_is_not_caught_up() -> None:
    role = watched()
    role.on_fetch(key(8), 9, FETCHED_MS)
    assert not role.is_caught_up(key(8), FETCHED_MS)
