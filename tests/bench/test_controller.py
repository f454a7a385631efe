"""The cost of the controller's operations; it does not grow with the cluster.

Each test times its operation with pytest-benchmark, in seconds of the processor; where two sizes
are compared they are timed in the same process, alternating, and the ratio is in ``extra_info``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from minicluster.controller.effects import Append, ControllerRespond
from minicluster.controller.machine import ControllerMachine
from minicluster.controller.settings import ControllerSettings
from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.log.segment import read_segment, write_segment
from minicluster.metadata.bootstrap import bootstrap_records
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.metadata_version import FEATURE_NAME, MetadataVersion
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    VersionedRecord,
)
from minicluster.rules import Rules

pytestmark = [pytest.mark.slow, pytest.mark.benchmark(timer=time.process_time)]

VERSION = MetadataVersion.V4_3_IV0
BROKERS = 10
MANY, FEW = 100_000, 1_000
LED = MANY // BROKERS
TOPIC_SIZE = 100
PER_REQUEST = 1_000
RATIO_MAX = 1.2
ROUNDS, REPEATS = 40, 25


def directory(broker_id: int) -> UUID:
    return UUID(int=(1 << 64) + broker_id)


def topic_id(number: int) -> UUID:
    return UUID(int=(3 << 64) + number)


def replicas(index: int) -> tuple[int, ...]:
    """Every broker leads a tenth of all partitions and follows in two more."""
    return tuple((index + n) % BROKERS + 1 for n in range(3))


def brokers() -> Iterator[VersionedRecord]:
    yield VersionedRecord(FeatureLevelRecord(name=FEATURE_NAME, feature_level=VERSION.level), 0)
    for broker_id in range(1, BROKERS + 1):
        register = RegisterBrokerRecord(
            broker_id=broker_id,
            broker_epoch=broker_id,
            incarnation_id=UUID(int=broker_id),
            log_dirs=(directory(broker_id),),
        )
        yield VersionedRecord(register, VERSION.register_broker_record_version)
        unfence = BrokerRegistrationChangeRecord(
            broker_id=broker_id, broker_epoch=broker_id, fenced=-1
        )
        yield VersionedRecord(unfence, 0)


def topics(partitions: int, topic_size: int) -> Iterator[VersionedRecord]:
    for number in range(partitions // topic_size):
        yield VersionedRecord(TopicRecord(name=f"t{number}", topic_id=topic_id(number)), 0)
        for index in range(topic_size):
            chosen = replicas(index)
            record = PartitionRecord(
                partition_id=index,
                topic_id=topic_id(number),
                replicas=chosen,
                isr=chosen,
                leader=chosen[0],
                directories=tuple(directory(b) for b in chosen),
            )
            yield VersionedRecord(record, VERSION.partition_record_version(Rules.KAFKA_4_3))


@cache
def image_of(partitions: int, topic_size: int) -> MetadataImage:
    """A cluster of so many partitions, all in sync."""
    image = MetadataImage.EMPTY
    for record in (*brokers(), *topics(partitions, topic_size)):
        image = apply(image, record)
    return image


class Controller:
    """An active controller whose records commit at once."""

    def __init__(self, image: MetadataImage) -> None:
        ids = iter(range(10_000_000, 20_000_000))
        self.machine = ControllerMachine(
            settings=ControllerSettings(),
            bootstrap=bootstrap_records(VERSION, {}),
            draw=lambda bound: bound // 2,
            new_topic_id=lambda: topic_id(next(ids)),
        )
        self.end = 1_000_000
        self.log: list[RecordBatch] = []
        self.machine.on_snapshot(image, self.end, 0)
        self.take(self.machine.on_claim(1, self.end, 0))

    def take(self, effects: list[Any]) -> Any:
        """Append and commit; the response."""
        response = None
        for effect in effects:
            if isinstance(effect, Append):
                self.log.append(metadata_batch(self.end, 1, 0, effect.records))
                self.end += len(effect.records)
            elif isinstance(effect, ControllerRespond):
                response = effect.response
        if response is None and effects:
            for effect in self.machine.on_committed(self.end, 0):
                response = effect.response if isinstance(effect, ControllerRespond) else response
        return response

    def request(self, request: Any) -> Any:
        return self.take(self.machine.on_request(1, request, type(request).latest_version, 0))

    def flip_isr(self, number: int, index: int) -> None:
        """Shrink a partition's ISR, then expand it again."""
        Request = m.AlterPartitionRequest
        for size in (2, 3):
            partition = self.machine.image.topics.by_id[topic_id(number)].partitions[index]
            data = Request.PartitionData(
                partition_index=index,
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                new_isr_with_epochs=tuple(
                    Request.BrokerState(broker_id=b, broker_epoch=b)
                    for b in partition.replicas[:size]
                ),
            )
            response = self.request(
                Request(
                    broker_id=partition.leader,
                    broker_epoch=partition.leader,
                    topics=(Request.TopicData(topic_id=topic_id(number), partitions=(data,)),),
                )
            )
            part = response.topics[0].partitions[0]
            assert part.error_code == 0 and len(part.isr) == size
        self.log.clear()


def seconds(act: Callable[[], object]) -> float:
    started = time.process_time()
    act()
    return time.process_time() - started


@pytest.mark.parametrize(
    "topic_sizes", [(TOPIC_SIZE, TOPIC_SIZE), (FEW, MANY)], ids=["many", "one"]
)
def test_alter_partition_costs_the_same_in_a_large_cluster(
    benchmark: Any, topic_sizes: tuple[int, int]
) -> None:
    """In many topics of a hundred partitions, and in one topic that holds them all."""
    small = Controller(image_of(FEW, topic_sizes[0]))
    large = Controller(image_of(MANY, topic_sizes[1]))

    def of(controller: Controller, partitions: int, size: int) -> Callable[[], None]:
        step = partitions // REPEATS
        places = [divmod(n * step, size) for n in range(REPEATS)]

        def act() -> None:
            for number, index in places:
                controller.flip_isr(number, index)

        return act

    few, many = of(small, FEW, topic_sizes[0]), of(large, MANY, topic_sizes[1])
    pairs = [(seconds(few), seconds(many)) for _ in range(ROUNDS)]
    ratio = min(b for _, b in pairs) / min(a for a, _ in pairs)
    benchmark.extra_info["ratio, 100,000 to 1,000 partitions"] = round(ratio, 3)
    benchmark.pedantic(many, rounds=5)
    assert ratio <= RATIO_MAX


def test_creating_a_hundred_thousand_partitions(benchmark: Any) -> None:
    def create() -> Controller:
        controller = Controller(image_of(0, 1))
        Request = m.CreateTopicsRequest
        for number in range(MANY // PER_REQUEST):
            topic = Request.CreatableTopic(
                name=f"t{number}", num_partitions=PER_REQUEST, replication_factor=3
            )
            response = controller.request(Request(topics=(topic,)))
            assert response.topics[0].error_code == 0
        return controller

    controller = benchmark.pedantic(create, rounds=1)
    assert sum(len(topic) for topic in controller.machine.image.topics) == MANY


def fence(controller: Controller, broker_id: int) -> None:
    request = m.BrokerHeartbeatRequest(
        broker_id=broker_id,
        broker_epoch=broker_id,
        current_metadata_offset=controller.end,
        want_fence=True,
    )
    assert controller.request(request).is_fenced


def test_fencing_a_broker_that_leads_ten_thousand_partitions(benchmark: Any) -> None:
    def prepared() -> tuple[tuple[Controller, int], dict[str, Any]]:
        return (Controller(image_of(MANY, TOPIC_SIZE)), 1), {}

    benchmark.pedantic(fence, setup=prepared, rounds=3)
    controller = Controller(image_of(MANY, TOPIC_SIZE))
    fence(controller, 1)
    led = [r.record for b in controller.log for r in b.metadata_records]
    assert sum(getattr(record, "leader", -2) >= 0 for record in led) == LED
    assert len(led) == 3 * LED + 1


def test_replaying_that_log_from_disk(benchmark: Any, tmp_path: Path) -> None:
    """The creation of 100,000 partitions and the fencing, read back and folded."""
    first = [*brokers(), *topics(MANY, TOPIC_SIZE)]
    batches = [
        metadata_batch(start, 1, 0, first[start : start + PER_REQUEST])
        for start in range(0, len(first), PER_REQUEST)
    ]
    controller = Controller(image_of(MANY, TOPIC_SIZE))
    fence(controller, 1)
    offset = len(first)
    for batch in controller.log:
        batches.append(metadata_batch(offset, 1, 0, batch.metadata_records))
        offset += batch.count
    path = tmp_path / "00000000000000000000.log"
    size = write_segment(path, batches)

    def replay() -> MetadataImage:
        image = MetadataImage.EMPTY
        for placed in read_segment(path).batches:
            for at, record in enumerate(placed.batch.metadata_records, placed.batch.base_offset):
                image = apply(image, record, offset=at)
        return image

    image = benchmark.pedantic(replay, rounds=2)
    benchmark.extra_info |= {"records": offset, "bytes": size}
    assert image.digest() == controller.machine.image.digest()
