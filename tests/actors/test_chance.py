"""Chance by the block is the chance of single draws."""

from __future__ import annotations

from itertools import islice

import pytest

from minicluster.actors.runtime import chance


@pytest.mark.parametrize("source", [0, 1, chance.key(7, "link/1>2"), (1 << 64) - 1])
@pytest.mark.parametrize("stride", [1, 8])
def test_draws_in_a_row_are_the_single_draws(source: int, stride: int) -> None:
    row = list(islice(chance.draws(source, 3, stride), 40))
    assert row == [chance.draw(source, 3 + n * stride) for n in range(40)]


def test_a_draw_is_the_published_one() -> None:
    """SplitMix64 with the seed 0: its first output is of the state that was advanced once."""
    assert chance.draw(0, 1) == 0xE220A8397B1DCDAF
