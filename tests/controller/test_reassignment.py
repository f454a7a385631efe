"""Conformance rows B45-B58: the algebra of reassignments, as 4.3 and as 3.9 have it."""

from __future__ import annotations

import pytest

from minicluster.controller.reassignment import (
    Completed,
    Reassignment,
    complete_reassignment,
    revert_reassignment,
    start_reassignment,
)

Ids = tuple[int, ...]


@pytest.mark.parametrize(
    ("current", "target", "adding", "removing", "replicas"),
    [
        pytest.param((3, 2, 1), (3, 6, 2, 1, 5), (5, 6), (), (3, 6, 2, 1, 5), id="B45"),
        pytest.param((3, 2, 1, 0), (3, 1), (), (0, 2), (3, 1, 0, 2), id="B46"),
        pytest.param((3, 2, 1, 0), (7, 3, 1, 9), (7, 9), (0, 2), (7, 3, 1, 9, 0, 2), id="B47"),
        pytest.param((1, 2, 3), (3, 2, 1), (), (), (3, 2, 1), id="a new order is no progress"),
        pytest.param((2, 3, 0, 1), (4, 5), (4, 5), (0, 1, 2, 3), (4, 5, 0, 1, 2, 3), id="C28"),
    ],
)
def test_start(current: Ids, target: Ids, adding: Ids, removing: Ids, replicas: Ids) -> None:
    started = start_reassignment(current, target)
    assert (started.adding, started.removing, started.replicas) == (adding, removing, replicas)
    assert started.in_progress == bool(adding or removing)


@pytest.mark.parametrize(
    ("current", "target", "isr", "done_in_3_9", "done_in_4_3"),
    [
        pytest.param((0, 1, 2), (3, 4, 5), (0, 1, 2, 3, 4), None, None, id="B49"),
        pytest.param((0, 1, 2), (3, 4, 5), (0, 1, 2, 3, 4, 5), (3, 4, 5), (3, 4, 5), id="B50"),
        pytest.param((0, 1, 2), (0, 1, 3), (0, 1, 2, 3), (0, 1, 3), (0, 1, 3), id="B51"),
        pytest.param((0, 1, 2), (0, 1, 3), (3,), None, (3,), id="4.3 waits for the added only"),
        pytest.param((0, 1, 2), (0, 1, 3), (2, 3), None, (3,), id="4.3-a"),
        pytest.param((0, 1, 2), (0, 1, 3), (0, 2, 3), None, (0, 3), id="4.3-b"),
        pytest.param(
            (0, 1, 2, 3), (1, 2, 3, 4, 5), (0, 1, 2, 4, 5), None, (1, 2, 4, 5), id="4.3-c"
        ),
        pytest.param((0, 1, 2, 3, 4), (2, 3, 4, 5), (0, 1, 2, 3, 5), None, None, id="4.3-d"),
        pytest.param((0, 1, 2), (0, 1), (0, 2), None, None, id="a removal needs all who stay"),
        pytest.param((0, 1, 2), (0, 1), (0, 1), (0, 1), (0, 1), id="a removal is done at once"),
        pytest.param((0, 1), (0, 1), (0, 1), None, None, id="B53"),
    ],
)
def test_complete(
    current: Ids, target: Ids, isr: Ids, done_in_3_9: Ids | None, done_in_4_3: Ids | None
) -> None:
    started = start_reassignment(current, target)
    for needs_all, expected in ((True, done_in_3_9), (False, done_in_4_3)):
        done = complete_reassignment(started, isr, needs_all_replicas=needs_all)
        if expected is None:
            assert done is None
        else:
            assert done == Completed(replicas=target, isr=expected)


def test_a_replica_that_is_added_and_removed_at_once_holds_a_reassignment_up_in_4_3() -> None:
    # 3 was added by a first reassignment; a second one, to replica 2 alone, removes it again.
    moving = Reassignment(replicas=(2, 0, 3), adding=(3,), removing=(0, 3))
    done = complete_reassignment(moving, (0, 2, 3), needs_all_replicas=True)
    assert done == Completed(replicas=(2,), isr=(2,))
    assert complete_reassignment(moving, (0, 2, 3), needs_all_replicas=False) is None


def test_B54_the_original_replicas_are_those_that_are_not_added() -> None:
    started = start_reassignment((0, 1, 2), (0, 1, 3))
    assert set(started.replicas) - set(started.adding) == {0, 1, 2}


def test_B55_taking_back_nothing_changes_nothing() -> None:
    revert = revert_reassignment(Reassignment(replicas=(3, 2, 1)), (3, 2))
    assert (revert.replicas, revert.isr, revert.unclean) == ((3, 2, 1), (3, 2), False)


def test_B58_when_only_added_replicas_are_in_sync_the_revert_is_unclean() -> None:
    state = Reassignment(replicas=(4, 5, 3, 2, 1), adding=(4, 5), removing=(2,))
    revert = revert_reassignment(state, (4, 5))
    assert (revert.replicas, revert.isr, revert.unclean) == ((3, 2, 1), (3,), True)
