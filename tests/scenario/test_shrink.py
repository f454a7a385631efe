"""Shrinking, on steps that are plain numbers and words."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.scenario.shrink import shrink


def broken_once_all_are_in(*needed: int):  # type: ignore[no-untyped-def]
    """Breaks at the first step by which all the needed ones have come, in any order."""

    def play(steps: Sequence[int]) -> int | None:
        left = set(needed)
        for played, step in enumerate(steps, 1):
            left.discard(step)
            if not left:
                return played
        return None

    return play


def test_only_the_steps_that_matter_remain_in_their_order() -> None:
    shrunk = shrink(range(200), broken_once_all_are_in(17, 4, 120))
    assert shrunk.steps == (4, 17, 120)
    assert shrunk.complete


def test_few_replays_are_needed_where_few_steps_matter() -> None:
    assert shrink(range(1_000), broken_once_all_are_in(400, 401)).replays < 80


def test_what_comes_after_the_violation_is_dropped_by_the_first_replay() -> None:
    tried: list[int] = []
    breaks = broken_once_all_are_in(3)

    def play(steps: Sequence[int]) -> int | None:
        tried.append(len(steps))
        return breaks(steps)

    shrink(range(1_000), play)
    assert tried[0] == 1_000 and max(tried[1:]) < 5


def test_what_is_returned_was_played_and_broke_the_promise() -> None:
    """The promise breaks in the wait for the step after the last that was performed."""
    failed: list[tuple[int, ...]] = []

    def play(steps: Sequence[int]) -> int | None:
        performed = [step for step in steps if step < 70]
        if 30 not in performed or len(performed) == len(steps):
            return None  # without a later step there is no wait
        failed.append(tuple(steps))
        return steps.index(30) + 1

    found = shrink(range(100), play).steps
    assert found in failed
    assert found[0] == 30 and len(found) == 2


@given(
    st.lists(st.integers(0, 30), max_size=40),
    st.sets(st.integers(0, 30), min_size=1, max_size=5),
)
def test_no_single_step_of_the_result_can_be_left_out(steps: list[int], needed: set[int]) -> None:
    play = broken_once_all_are_in(*needed)
    if play(steps) is None:
        with pytest.raises(ValueError, match="nothing to shrink"):
            shrink(steps, play)
        return
    found = shrink(steps, play).steps
    assert sorted(found) == sorted(needed)
    assert all(play([*found[:n], *found[n + 1 :]]) is None for n in range(len(found)))


def test_steps_that_only_matter_together_go_as_a_group() -> None:
    """A request and its response: without one of them the other hangs, and nothing is broken."""

    def play(steps: Sequence[tuple[str, int]]) -> int | None:
        whole = all(steps.count(("request", n)) == steps.count(("response", n)) for n in range(9))
        return len(steps) if whole and ("request", 1) in steps else None

    steps = [(word, n) for n in range(3) for word in ("request", "response")]
    # Pieces of two would do here by luck; with other steps in between only the group does.
    mixed = [steps[0], steps[2], steps[4], steps[1], steps[5], steps[3]]
    assert len(shrink(mixed, play).steps) > 2
    shrunk = shrink(mixed, play, groups=lambda step: [step[1]])
    assert shrunk.steps == (("request", 1), ("response", 1))


def test_steps_become_simpler_when_fewer_will_not_do() -> None:
    def play(waits: Sequence[int]) -> int | None:
        return len(waits) if sum(waits) >= 900 else None

    shrunk = shrink([700, 650, 3], play, simpler=lambda ms: (ms // 2, ms - 1) if ms else ())
    assert sum(shrunk.steps) == 900


def test_another_violation_does_not_count() -> None:
    """The player chooses the violation: a candidate that breaks something else is no success."""

    def play(steps: Sequence[int]) -> int | None:
        broken = "first" if 7 in steps and 9 in steps else "second" if 9 in steps else ""
        return len(steps) if broken == "first" else None

    assert shrink(range(20), play).steps == (7, 9)


def test_when_the_replays_run_out_the_best_so_far_is_given() -> None:
    shrunk = shrink(range(1_000), broken_once_all_are_in(100, 900), replays_max=5)
    assert not shrunk.complete and shrunk.replays == 5
    assert {100, 900} <= set(shrunk.steps) and len(shrunk.steps) < 1_000


def test_when_the_time_is_over_the_best_so_far_is_given() -> None:
    time_left = iter([True] * 5 + [False])
    shrunk = shrink(range(1_000), broken_once_all_are_in(100, 900), in_time=lambda: next(time_left))
    assert not shrunk.complete and shrunk.replays == 5
    assert {100, 900} <= set(shrunk.steps) and len(shrunk.steps) < 1_000
