"""The epochs of a log after truncation from its end or its start, to the offset."""

from __future__ import annotations

import pytest

from minicluster.log.epochs import LeaderEpochs

EPOCHS = ((2, 10), (5, 20), (7, 35))


@pytest.mark.parametrize(
    ("end", "left"),
    [(36, EPOCHS), (35, EPOCHS[:2]), (21, EPOCHS[:2]), (20, EPOCHS[:1]), (10, ()), (0, ())],
)
def test_an_epoch_of_which_nothing_is_left_at_the_end_is_forgotten(
    end: int, left: tuple[tuple[int, int], ...]
) -> None:
    epochs = LeaderEpochs(EPOCHS)
    epochs.truncate_from_end(end)
    assert epochs.entries == left
    assert epochs.latest == (left[-1][0] if left else None)


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (9, EPOCHS),
        (10, EPOCHS),
        (19, ((2, 19), *EPOCHS[1:])),
        (20, EPOCHS[1:]),
        (21, ((5, 21), EPOCHS[2])),
        (35, EPOCHS[2:]),
        (40, ((7, 40),)),
    ],
)
def test_the_epoch_in_which_a_log_starts_begins_at_its_start(
    start: int, left: tuple[tuple[int, int], ...]
) -> None:
    epochs = LeaderEpochs(EPOCHS)
    epochs.truncate_from_start(start)
    assert epochs.entries == left


def test_an_offset_belongs_to_the_epoch_that_began_last_before_it() -> None:
    epochs = LeaderEpochs(EPOCHS)
    assert [epochs.epoch_of(offset) for offset in (9, 10, 19, 20, 34, 35, 99)] == [
        None, 2, 2, 5, 5, 7, 7,
    ]  # fmt: skip


def test_an_epoch_that_began_before_all_others_ends_where_the_first_one_begins() -> None:
    epochs = LeaderEpochs(EPOCHS)
    found = [epochs.end_offset_for(epoch, 50) for epoch in (-5, -1, 0, 2, 6, 7, 8)]
    undefined = (-1, -1)
    assert found == [(-5, 10), undefined, (0, 10), (2, 20), (5, 35), (7, 50), undefined]
