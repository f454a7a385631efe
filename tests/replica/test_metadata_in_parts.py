"""Metadata that changes much is carried out in parts; requests come between, other metadata not."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import pytest

from minicluster.effects import Effect, Respond
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from minicluster.replica import apply_delta, machine
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.machine import ReplicaManagerMachine
from tests.replica.memory_disk import MemoryDisk

FIRST, SECOND = uuid.UUID(int=0xA), uuid.UUID(int=0xB)
DIRECTORY = uuid.UUID(int=0xD1)
PARTITIONS = 20


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "RESOURCES_PER_PART", 2)


def topic(name: str, topic_id: uuid.UUID, *, partitions: int = PARTITIONS) -> list[Any]:
    """Broker 1 leads the even partitions, and follows broker 2 in the others."""
    return [
        TopicRecord(name=name, topic_id=topic_id),
        *(
            PartitionRecord(
                partition_id=index,
                topic_id=topic_id,
                replicas=(1, 2),
                isr=(1, 2),
                leader=1 + index % 2,
                leader_epoch=0,
                partition_epoch=0,
                directories=(DIRECTORY, uuid.UUID(int=0xD2)),
            )
            for index in range(partitions)
        ),
    ]


BASE = apply_all(
    MetadataImage.EMPTY,
    [
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        RegisterBrokerRecord(broker_id=1, broker_epoch=1, log_dirs=(DIRECTORY,), fenced=False),
        RegisterBrokerRecord(
            broker_id=2, broker_epoch=2, log_dirs=(uuid.UUID(int=0xD2),), fenced=False
        ),
    ],
)


class Story:
    """Broker 1, and the last response that it has sent."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.disk = disk or MemoryDisk(directory_ids=(DIRECTORY,))
        self.manager = ReplicaManagerMachine(ReplicaManagerConfig(broker_id=1), self.disk)
        self.image = MetadataImage.EMPTY
        self.responses: list[Any] = []
        self.publish(BASE)

    def publish(self, image: MetadataImage) -> None:
        """Begin to take an image."""
        changes = MetadataDelta.between(self.image, image)
        self.image = image
        self.see(self.manager.on_metadata(changes, 0))

    def parts_left(self) -> int:
        """Take the rest of the image; the number of parts it takes."""
        count = 0
        while self.manager.is_applying_metadata:
            self.see(self.manager.continue_metadata(0))
            count += 1
        return count

    def see(self, effects: Iterable[Effect]) -> None:
        self.responses += [e.response for e in effects if isinstance(e, Respond)]

    @property
    def replicas(self) -> dict[tuple[uuid.UUID, int], bool]:
        """Each replica here, and whether it leads."""
        return {key: each.is_leader for key, each in self.manager.state.partitions.items()}


def test_logs_that_were_deleted_elsewhere_are_removed_in_parts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    story = Story()
    story.publish(apply_all(BASE, topic("orders", FIRST)))
    story.parts_left()
    assert len(story.disk.logs) == PARTITIONS
    monkeypatch.setattr(apply_delta, "LOGS_PER_PART", 6)
    again = Story(story.disk)
    assert len(story.disk.logs) == PARTITIONS - 2 * 6
    assert again.parts_left() == 2
    assert not story.disk.logs


def test_configs_of_many_topics_are_taken_in_parts() -> None:
    story = Story()
    names = [f"t{number}" for number in range(5)]
    topics = [topic(name, uuid.UUID(int=n), partitions=1) for n, name in enumerate(names, 1)]
    image = apply_all(BASE, [record for records in topics for record in records])
    story.publish(image)
    story.parts_left()
    configs = [
        ConfigRecord(resource_type=2, resource_name=name, name="min.insync.replicas", value="2")
        for name in names
    ]
    story.publish(apply_all(image, configs))
    assert story.parts_left() == 2
    minima = {each.min_insync_replicas for each in story.manager.state.partitions.values()}
    assert minima == {2}
