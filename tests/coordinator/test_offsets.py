"""Offsets by group, topic and partition: what one dictionary of all would say.

Source:  OffsetMetadataManager.Offsets, OpenTransactions.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from minicluster.coordinator.group.offsets.committed import OffsetAndMetadata, OffsetKey, Offsets
from minicluster.coordinator.runtime.timeline import Timeline

GROUPS, TOPICS, PARTITIONS, PRODUCERS = ("g0", "g1", "g2"), ("a", "b", "c", "d"), 5, (7, 8, 9)
PLAIN = -1


class Model:
    """All offsets in one dictionary, and those of each open transaction in another."""

    def __init__(self) -> None:
        self.committed: dict[OffsetKey, OffsetAndMetadata] = {}
        self.pending: dict[int, dict[OffsetKey, OffsetAndMetadata]] = {}

    def replay(self, key: OffsetKey, value: OffsetAndMetadata | None, producer_id: int) -> None:
        if value is None:
            for each in (self.committed, *self.pending.values()):
                each.pop(key, None)
        elif producer_id == PLAIN:
            self.committed[key] = value
        else:
            self.pending.setdefault(producer_id, {})[key] = value

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        for key, value in self.pending.pop(producer_id, {}).items():
            before = self.committed.get(key)
            if committed and (before is None or value.record_offset > before.record_offset):
                self.committed[key] = value

    def of_group(self, group_id: str) -> dict[tuple[str, int], OffsetAndMetadata]:
        return {key[1:]: value for key, value in self.committed.items() if key[0] == group_id}


def offset(at: int) -> OffsetAndMetadata:
    return OffsetAndMetadata(
        offset=at, leader_epoch=0, metadata="", committed_ms=0, record_offset=at
    )


def drawn(draw: random.Random, timeline: Timeline) -> Iterator[tuple[Offsets, Model]]:
    offsets, model = Offsets(timeline), Model()
    for at in range(400):
        timeline.written = at
        producer_id = draw.choice((PLAIN, PLAIN, *PRODUCERS))
        if producer_id != PLAIN and draw.random() < 0.15:
            committed = draw.random() < 0.6
            for each in (offsets, model):
                each.end_transaction(producer_id, committed=committed)
        else:
            key = draw.choice(GROUPS), draw.choice(TOPICS), draw.randrange(PARTITIONS)
            value = None if draw.random() < 0.3 else offset(at)
            for each in (offsets, model):
                each.replay(key, value, producer_id)
        yield offsets, model


@pytest.mark.parametrize("seed", range(5))
def test_offsets_are_those_of_one_dictionary(seed: int) -> None:
    for offsets, model in drawn(random.Random(seed), Timeline()):
        pending = {key for each in model.pending.values() for key in each}
        for group_id in GROUPS:
            of_group = offsets.of_group(group_id)
            expected = model.of_group(group_id)
            assert {(topic, index): value for topic, index, value in of_group} == expected
            assert offsets.has_pending(group_id) == any(key[0] == group_id for key in pending)
            keys = list(offsets.keys_of_group(group_id))
            assert len(keys) == len(set(keys))
            either = {*model.committed, *pending}
            assert set(keys) == {key for key in either if key[0] == group_id}
            for topic in TOPICS:
                for index in range(PARTITIONS):
                    key = group_id, topic, index
                    assert of_group.get(topic, index) == expected.get((topic, index))
                    assert offsets.is_pending(key) == (key in pending)
                    assert offsets.has(key) == (key in either)
        of_b = [key for each in (model.committed, *model.pending.values()) for key in each]
        found = sorted(key for key, _ in offsets.of_topics(("b",)))
        assert found == sorted(key for key in of_b if key[1] == "b")


@pytest.mark.parametrize("seed", range(3))
def test_what_is_committed_is_read_back_though_groups_went_and_came_since(seed: int) -> None:
    draw, timeline = random.Random(seed), Timeline()
    before = {group_id: Model().of_group(group_id) for group_id in GROUPS}
    for offsets, model in drawn(draw, timeline):
        for group_id in GROUPS:
            of_group = offsets.of_group(group_id, committed=True)
            assert {(topic, index): value for topic, index, value in of_group} == before[group_id]
        if draw.random() < 0.1:
            timeline.commit(timeline.written)
            before = {group_id: model.of_group(group_id) for group_id in GROUPS}
