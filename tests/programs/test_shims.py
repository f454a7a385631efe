"""Client libraries in programs: a release that was not tried, and sets in ascending order."""

from __future__ import annotations

import random

import aiokafka
import pytest

from minicluster import MiniCluster
from minicluster.actors.programs.shims.aiokafka import SHIM
from minicluster.actors.programs.shims.sets import SortedFrozenSet, SortedSet

WORDS = [f"topic-{number}" for number in range(20)]


def test_one_line_says_that_a_release_was_not_tried(
    mini_cluster: MiniCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SHIM, "tried", ("0.1", "0.2"))
    line = rf"^aiokafka {aiokafka.__version__} was not tried in the simulation \(0\.1, 0\.2 were\)"
    with pytest.warns(UserWarning, match=line):
        mini_cluster.app("one", lambda: None)


def test_operations_give_what_sets_give_in_ascending_order() -> None:
    chance = random.Random(7)
    for _ in range(100):
        one, two = (chance.sample(WORDS, chance.randrange(12)) for _ in range(2))
        for sorted_kind, kind in ((SortedSet, set), (SortedFrozenSet, frozenset)):
            for name in ("__or__", "__and__", "__sub__", "__xor__", "union", "difference"):
                expected = sorted(getattr(kind(one), name)({*two}))
                assert [*getattr(sorted_kind(one), name)({*two})] == expected
        assert [*({*two} - SortedSet(one))] == sorted({*two} - {*one})
        changed = SortedSet(one)
        changed |= {*two}
        assert [changed.pop() for _ in list(changed)] == sorted({*one, *two})


def test_they_are_sets_for_everybody() -> None:
    assert isinstance(SortedSet(WORDS), set) and isinstance(SortedFrozenSet(WORDS), frozenset)
    assert isinstance(set(), SortedSet) and not isinstance([], SortedSet)
    assert hash(SortedFrozenSet(WORDS)) == hash(frozenset(WORDS))
    assert SortedSet(WORDS) == {*WORDS} and {*WORDS} == SortedSet(WORDS)
    several = [object(), object()]
    assert {*SortedSet(several)} == {*several}  # what cannot be compared keeps its order


async def test_a_client_has_them_and_finds_tuples_among_its_partitions(
    mini_cluster: MiniCluster,
) -> None:
    topics = [f"orders-{number}" for number in range(8)]
    for topic in topics:
        mini_cluster.create_topic(topic, partitions=1)
    consumer = aiokafka.AIOKafkaConsumer(
        *topics, bootstrap_servers=mini_cluster.bootstrap_servers, group_id="all"
    )
    async with consumer:
        assignment = consumer.assignment()
        assert ("orders-3", 0) in assignment
        assert [place.topic for place in assignment] == [*consumer.subscription()] == topics
