"""Availability follows commits and processes; a plain recount of the image is its oracle."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any
from uuid import UUID

import pytest

from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol import records as r
from minicluster.what_if.availability import Availability
from minicluster.what_if.outcome import Level

ORDERS, OTHER = UUID(int=5), UUID(int=6)


class World:
    """Three topics' worth of partitions on five brokers, and a clock that the test moves."""

    def __init__(self, min_isr: str | None = "2") -> None:
        self.now_ms, self.offset = 1_000, 50
        self.running = {1, 2, 3, 4, 5}
        records: list[Any] = []
        for topic, name in ((ORDERS, "orders"), (OTHER, "other")):
            records.append(r.TopicRecord(name=name, topic_id=topic))
            for index in range(3):
                replicas = tuple(1 + (index + n) % 5 for n in range(3))
                records.append(
                    r.PartitionRecord(
                        partition_id=index,
                        topic_id=topic,
                        replicas=replicas,
                        isr=replicas,
                        leader=replicas[0],
                        leader_epoch=0,
                        partition_epoch=0,
                    )
                )
        if min_isr is not None:
            records.append(
                r.ConfigRecord(
                    resource_type=2,
                    resource_name="orders",
                    name="min.insync.replicas",
                    value=min_isr,
                )
            )
        image = apply_all(MetadataImage.EMPTY, records)
        self.seen = Availability(image, SharedFolds(), self.running, lambda: self.now_ms)

    def batch(self, *messages: Any) -> RecordBatch:
        versioned = [r.VersionedRecord(message, 0) for message in messages]
        return metadata_batch(self.offset, 1, self.now_ms, versioned)

    def commit(self, *messages: Any) -> None:
        batch = self.batch(*messages)
        self.offset = batch.next_offset
        self.seen.on_committed(batch)

    def process(self, broker: int, runs: bool) -> None:
        (self.running.add if runs else self.running.discard)(broker)
        self.seen.on_process(broker, runs)

    def recount(self) -> tuple[int, int, int]:
        """Every partition of the image, one by one."""
        found: Counter[Level] = Counter()
        for topic, _, state in self.seen.image.topics.partitions():
            configured = self.seen.image.configs.value(2, topic.name, "min.insync.replicas")
            needed = min(int(configured or 1), len(topic.partitions[0].replicas))
            alive = len(set(state.isr) & self.running)
            if state.leader < 0 or state.leader not in self.running:
                found[Level.NO_LEADER] += 1
            elif alive < needed:
                found[Level.UNDER_MIN_ISR] += 1
            elif alive == needed:
                found[Level.AT_RISK] += 1
        return found[Level.NO_LEADER], found[Level.UNDER_MIN_ISR], found[Level.AT_RISK]


def change(
    index: int, isr: tuple[int, ...], leader: int | None = None, topic: UUID = ORDERS
) -> Any:
    given = {} if leader is None else {"leader": leader}
    return r.PartitionChangeRecord(partition_id=index, topic_id=topic, isr=isr, **given)


def test_a_leader_that_dies_is_missed_at_once_and_until_the_next_one_leads() -> None:
    world = World()
    world.process(1, False)
    world.now_ms += 9_000
    world.commit(change(0, (2, 3), leader=2), change(0, (2, 3), leader=2, topic=OTHER))
    world.now_ms += 51_000
    stage = world.seen.end_stage("kill 1")
    orders, other = stage.topics
    assert (orders.name, orders.partitions) == ("orders", 3)
    assert orders.most == (1, 0, 1)
    assert orders.at_end == (0, 0, 1)
    assert orders.longest_ms == (9_000, 0, 51_000)
    assert other.at_end == (0, 0, 0)
    assert stage.all.most == (2, 0, 1)
    assert not stage.left


def test_what_is_left_is_named_with_the_reason() -> None:
    world = World()
    for broker in (1, 2, 3):
        world.process(broker, False)
    world.commit(change(0, (3,), leader=-1))
    [first, *_] = world.seen.end_stage("kill [1,2,3]").left
    assert str(first) == "orders-0: leader none, ISR [3] of [1, 2, 3], down [1, 2, 3]"


def test_a_stage_begins_with_what_it_finds() -> None:
    world = World()
    world.process(1, False)
    world.now_ms += 5_000
    world.seen.begin_stage()
    world.now_ms += 2_000
    stage = world.seen.end_stage("nothing")
    assert stage.all.most == stage.all.at_end == (2, 0, 0)
    assert stage.all.longest_ms == (2_000, 0, 0)


def test_a_deleted_topic_and_a_changed_config_count() -> None:
    world = World(min_isr="3")
    assert world.seen.end_stage("").all.at_end == (0, 0, 3)
    config = {"resource_type": 2, "resource_name": "orders", "name": "min.insync.replicas"}
    world.commit(r.ConfigRecord(**config, value="1"))
    assert world.seen.end_stage("").all.at_end == (0, 0, 0) == world.recount()
    world.commit(r.RemoveTopicRecord(topic_id=ORDERS))
    assert world.seen.end_stage("").all.partitions == 3


@pytest.mark.parametrize("seed", range(20))
def test_the_counts_are_those_of_a_recount(seed: int) -> None:
    draws = random.Random(seed)
    world = World(draws.choice([None, "1", "2", "3"]))
    for _ in range(60):
        world.now_ms += draws.randrange(3) * 100
        if draws.random() < 0.4:
            broker = draws.randrange(1, 6)
            world.process(broker, broker not in world.running)
        else:
            topic, index = draws.choice([ORDERS, OTHER]), draws.randrange(3)
            replicas = world.seen.image.topics.by_id[topic].partitions[index].replicas
            isr = tuple(draws.sample(replicas, draws.randrange(1, 4)))
            leader = draws.choice([None, -1, *isr])
            world.commit(change(index, isr, leader, topic))
        stage = world.seen.end_stage("")
        assert stage.all.at_end == world.recount()
        summed = tuple(sum(topic.at_end[n] for topic in stage.topics) for n in range(3))
        assert summed == stage.all.at_end
