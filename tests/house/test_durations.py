"""Durations as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.durations import format_duration, parse_duration_ms
from minicluster.errors import UserError


@pytest.mark.parametrize(
    ("text", "duration_ms"),
    [
        *(("10s", 10_000), ("250ms", 250), ("1.5s", 1_500), ("1m30s", 90_000), ("2h", 7_200_000)),
        *((10, 10_000), (0, 0), (0.25, 250), ("10", 10_000), ("1.5", 1_500)),
    ],
)
def test_a_duration_has_units_or_is_in_seconds(text: object, duration_ms: int) -> None:
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", [-1, float("nan"), "", "-1", "-1s", "10 parsecs", None, True])
def test_anything_else_is_refused_in_one_line(text: object) -> None:
    with pytest.raises(UserError, match=r"not a duration; write seconds, or a number with a unit"):
        parse_duration_ms(text)


@pytest.mark.parametrize("value", [1e12, 10**400, float("inf"), "9000h"])
def test_a_year_is_the_longest(value: object) -> None:
    with pytest.raises(UserError, match="more than a year"):
        parse_duration_ms(value)


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_written_reads_back(duration_ms: int) -> None:
    assert parse_duration_ms(format_duration(duration_ms)) == duration_ms
