"""Conformance rows D23-D31: striped placement with the random numbers of Kafka's own tests."""

from __future__ import annotations

from collections import Counter

import pytest

from minicluster.controller.placement import (
    BrokerList,
    PlacementError,
    RackList,
    UsableBroker,
    place_replicas,
)
from tests.controller.kit import JavaRandom


def racks(text: str) -> list[UsableBroker]:
    """Brokers from "1:11,10 2:20f": f means fenced, no name before the colon no rack."""
    brokers = []
    for part in text.split():
        rack, _, ids = part.rpartition(":")
        for word in ids.split(","):
            fenced = word.endswith("f")
            brokers.append(UsableBroker(id=int(word.rstrip("f")), rack=rack or None, fenced=fenced))
    return brokers


def test_D23_a_broker_list_rotates_by_epoch() -> None:
    brokers = BrokerList([0, 1, 2, 3])
    brokers.initialize(lambda _: 0)
    assert [brokers.next(0) for _ in range(6)] == [0, 1, 2, 3, -1, -1]
    assert [brokers.next(1) for _ in range(5)] == [1, 2, 3, 0, -1]


@pytest.mark.parametrize(
    ("brokers", "factor", "expected"),
    [
        pytest.param("3,2,1f", 3, [(3, 2, 1), (2, 3, 1), (3, 2, 1), (2, 3, 1)], id="D25"),
        pytest.param(
            "1:11,10 3:30,31 2:21,20f",
            4,
            [(11, 21, 31, 10), (21, 30, 10, 20), (31, 11, 21, 30)],
            id="D26",
        ),
        pytest.param(
            "1:11,10 3:30f,31f 2:20f,21f 4:41,40f",
            4,
            [(41, 11, 21, 30), (10, 20, 31, 41), (41, 21, 30, 11)],
            id="D27",
        ),
    ],
)
def test_rack_lists(brokers: str, factor: int, expected: list[tuple[int, ...]]) -> None:
    rack_list = RackList(racks(brokers), JavaRandom())
    assert [rack_list.place(factor) for _ in expected] == expected


def place(brokers: str, partitions: int, factor: int) -> tuple[tuple[int, ...], ...]:
    placed = place_replicas(
        racks(brokers),
        partitions=partitions,
        replication_factor=factor,
        draw=JavaRandom(),
        cordoned_in_messages=False,
    )
    return tuple(placed)


def test_D28_five_partitions_on_four_brokers() -> None:
    assert place("0,3,2,1", 5, 3) == ((2, 3, 0), (3, 0, 1), (0, 1, 2), (1, 2, 3), (1, 0, 2))


def test_D29_one_unfenced_broker_leads_all() -> None:
    assert place("0,1f", 3, 1) == ((0,),) * 3


def test_D30_two_hundred_partitions_are_spread_as_kafka_spreads_them() -> None:
    counts = Counter(place("0,1,2,3", 200, 2))
    assert counts == {
        (0, 1): 14,
        (0, 2): 22,
        (0, 3): 14,
        (1, 0): 17,
        (1, 2): 17,
        (1, 3): 16,
        (2, 0): 13,
        (2, 1): 17,
        (2, 3): 20,
        (3, 0): 20,
        (3, 1): 19,
        (3, 2): 11,
    }


@pytest.mark.parametrize(
    ("brokers", "factor", "message"),
    [
        ("10f,11f", 1, "All brokers are currently fenced."),
        (
            "10,11",
            3,
            "The target replication factor of 3 cannot be reached because only 2 broker(s) are "
            "registered.",
        ),
        (
            "11,10",
            0,
            "Invalid replication factor 0: the replication factor must be positive.",
        ),
    ],
    ids=["D31-fenced", "D31-too few", "D31-not positive"],
)
def test_D31_what_cannot_be_placed(brokers: str, factor: int, message: str) -> None:
    with pytest.raises(PlacementError) as refused:
        place(brokers, 1, factor)
    assert str(refused.value) == message


def test_the_order_of_checks_when_all_are_fenced_and_too_few() -> None:
    with pytest.raises(PlacementError, match="All brokers"):
        place("1f", 1, 3)
    with pytest.raises(PlacementError, match="cannot be reached"):
        RackList(racks("1f"), JavaRandom(), cordoned_in_messages=False).place(3)
