"""Three replicas under chaos: what replication promises holds, and a planted fault breaks it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from minicluster.faults import Faults
from minicluster.rules import Rules
from tests.replica.replication import Broken, Replication

EVENTS = 1_500


@pytest.mark.parametrize("seed", range(40))
def test_no_promise_is_broken_while_elections_are_clean(seed: int) -> None:
    """B1, B2, B10, F1 and F4 after every event."""
    replication = Replication(seed)
    replication.run(EVENTS)
    assert replication.hits == []


def test_the_runs_do_something() -> None:
    acked = sum(len(_run(seed, Faults.NONE)[0].acked) for seed in range(10))
    assert acked > 50


@pytest.mark.parametrize(
    ("fault", "promise"), [("S11", "B1"), ("S12", "B2"), ("Z40", "B10"), ("S32", "F1")]
)
def test_a_planted_fault_breaks_the_promise_that_names_it(fault: str, promise: str) -> None:
    for seed in range(60):
        replication, broken = _run(seed, Faults.of([fault]))
        if broken is not None:
            assert str(broken).startswith(promise)
            assert fault in replication.hits
            return
    pytest.fail(f"{fault} stayed hidden")


def test_as_shipped_a_repeated_partition_epoch_lets_a_new_member_be_forgotten() -> None:
    """The controller writes the change that the leader has dropped."""
    rules = replace(Rules.KAFKA_4_3, equal_partition_epoch_ends_pending=True)
    with pytest.raises(Broken, match="B1"):
        for seed in range(60):
            Replication(seed, rules=rules).run(EVENTS)


def test_the_same_seed_plays_the_same_story() -> None:
    one, other = Replication(5), Replication(5)
    one.run(EVENTS)
    other.run(EVENTS)
    assert one.acked == other.acked
    assert [printed for printed, _ in one.history] == [printed for printed, _ in other.history]


def _run(seed: int, faults: Faults) -> tuple[Replication, Broken | None]:
    replication = Replication(seed, faults=faults)
    try:
        replication.run(EVENTS)
    except Broken as broken:
        return replication, broken
    return replication, None
