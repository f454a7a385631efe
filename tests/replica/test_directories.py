"""Directories of replicas, their report to the controller, and failed directories."""

from __future__ import annotations

import uuid
from typing import Any

from minicluster.effects import Effect, Send, SetTimer
from minicluster.metadata.image import directory_id
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
)
from minicluster.protocol.records import (
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from minicluster.replica.config import ReplicaManagerConfig
from minicluster.replica.effects import BrokerHalted, DirectoryFailed
from minicluster.replica.log_manager import ReplicaStore
from minicluster.replica.machine import ReplicaManagerMachine
from tests.replica.memory_disk import MemoryDisk

ORDERS = uuid.UUID(int=0xA)
FIRST, SECOND = uuid.UUID(int=0xD1), uuid.UUID(int=0xD2)
CONTROLLER = 101


class Story:
    """Broker 1 with two log directories; partitions 0 to n-1 of one topic are its own."""

    def __init__(self, *assigned: uuid.UUID, metadata_version: int = 30) -> None:
        self.config = ReplicaManagerConfig(broker_id=1)
        self.disk = MemoryDisk(directory_ids=(FIRST, SECOND))
        self.image = apply_all(
            MetadataImage.EMPTY,
            [
                FeatureLevelRecord(name="metadata.version", feature_level=metadata_version),
                TopicRecord(name="orders", topic_id=ORDERS),
                *(
                    PartitionRecord(
                        partition_id=index,
                        topic_id=ORDERS,
                        replicas=(1,),
                        isr=(1,),
                        leader=1,
                        leader_epoch=0,
                        partition_epoch=0,
                        directories=(directory,),
                    )
                    for index, directory in enumerate(assigned)
                ),
            ],
        )
        self.start()

    def start(self) -> None:
        self.manager = ReplicaManagerMachine(self.config, self.disk)
        self.manager.on_broker_epoch(42)
        self.sends: list[Send] = []
        self.timers: dict[str, int] = {}
        self.others: list[Effect] = []
        self.see(self.manager.on_controller(CONTROLLER, 0))
        self.see(
            self.manager.on_metadata(MetadataDelta.between(MetadataImage.EMPTY, self.image), 0)
        )

    def see(self, effects: list[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Send):
                self.sends.append(effect)
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.at_ms
            else:
                self.others.append(effect)

    def lies(self) -> list[uuid.UUID]:
        files = [
            self.manager.state.store.partition_file(name)
            for name in self.manager.state.store.names()
        ]
        return [file.directory for file in files if file is not None]

    def reported(self) -> dict[int, uuid.UUID]:
        """The content of the one request, once it is sent: partition -> directory."""
        if not self.sends:
            assert self.wake("directory-assignments") >= 100, "they are collected"
        self.last = self.sends.pop(0)
        assert isinstance(self.last.request, AssignReplicasToDirsRequest)
        assert self.last.request.broker_epoch == 42
        return {
            partition.partition_index: directory.id
            for directory in self.last.request.directories
            for topic in directory.topics
            for partition in topic.partitions
        }

    def respond(self, now_ms: int, error: ErrorCode = ErrorCode.NONE, **errors: ErrorCode) -> None:
        kind = AssignReplicasToDirsResponse

        def topic(requested: Any) -> Any:
            return kind.TopicData(
                topic_id=requested.topic_id,
                partitions=tuple(
                    kind.PartitionData(
                        partition_index=p.partition_index,
                        error_code=errors.get(f"p{p.partition_index}", ErrorCode.NONE),
                    )
                    for p in requested.partitions
                ),
            )

        response = kind(
            error_code=error,
            directories=()
            if error
            else tuple(
                kind.DirectoryData(id=d.id, topics=tuple(topic(t) for t in d.topics))
                for d in self.last.request.directories
            ),
        )
        self.see(self.manager.on_response(self.last.correlation_id, response, now_ms))

    def wake(self, name: str) -> int:
        now_ms = self.timers.pop(name)
        self.see(self.manager.on_timer(name, now_ms))
        return now_ms


def test_a_log_is_made_in_the_directory_that_it_is_assigned_to() -> None:
    story = Story(SECOND, FIRST, SECOND)
    assert story.lies() == [SECOND, FIRST, SECOND]
    assert not story.sends


def test_logs_without_assignment_spread_and_are_reported_to_the_controller() -> None:
    story = Story(directory_id.UNASSIGNED, directory_id.UNASSIGNED)
    assert story.lies() == [FIRST, SECOND]
    assert story.reported() == {0: FIRST, 1: SECOND}, "those of a delta in one request"
    before, story.image = story.image, Story(*[directory_id.UNASSIGNED] * 4).image
    story.see(story.manager.on_metadata(MetadataDelta.between(before, story.image), 4))
    assert not story.sends, "one request at a time"
    story.respond(5)
    assert story.reported() == {2: FIRST, 3: SECOND}
    story.respond(6)
    assert not story.sends and not story.manager.state.assignments.pending


def test_a_log_of_before_directories_is_reported_once_a_record_has_directories() -> None:
    """As Apache Kafka does: raising metadata.version and changing the ISR are no reason."""
    story = Story(directory_id.MIGRATING, metadata_version=16)

    def apply(*records: Any) -> None:
        before, story.image = story.image, apply_all(story.image, records)
        story.see(story.manager.on_metadata(MetadataDelta.between(before, story.image), 0))

    of_orders = {"topic_id": ORDERS, "partition_id": 0}
    apply(FeatureLevelRecord(name="metadata.version", feature_level=17))
    two = (directory_id.MIGRATING, directory_id.MIGRATING)
    apply(PartitionChangeRecord(**of_orders, replicas=(1, 2), directories=two))
    assert story.reported() == {0: FIRST}
    story.respond(0)
    apply(PartitionChangeRecord(**of_orders, isr=(1, 2)))
    apply(PartitionChangeRecord(**of_orders, leader=1))
    assert not story.sends
    apply(PartitionChangeRecord(**of_orders, directories=(directory_id.MIGRATING, SECOND)))
    assert story.reported() == {0: FIRST}, "broker 2 has reported its own"


def test_before_directories_were_in_the_metadata_nothing_is_reported() -> None:
    assert not Story(directory_id.MIGRATING, metadata_version=16).sends


def test_what_the_controller_refuses_is_reported_again_after_growing_pauses() -> None:
    story = Story(directory_id.UNASSIGNED)
    pauses, now_ms = [], 0
    for _ in range(9):
        story.reported()
        story.respond(now_ms, error=ErrorCode.STALE_BROKER_EPOCH)
        pauses.append(story.timers["directory-assignments"] - now_ms)
        now_ms = story.wake("directory-assignments")
    assert pauses == [200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 10_000]
    assert story.reported() == {0: FIRST}


def test_only_the_partition_that_was_refused_is_reported_again() -> None:
    story = Story(directory_id.UNASSIGNED, directory_id.UNASSIGNED, directory_id.UNASSIGNED)
    assert story.reported() == {0: FIRST, 1: SECOND, 2: FIRST}
    story.respond(0, p2=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    story.wake("directory-assignments")
    assert story.reported() == {2: FIRST}


def test_a_failed_directory_is_reported_and_what_lies_elsewhere_works_on() -> None:
    story = Story(FIRST, SECOND)
    story.others.clear()
    story.see(story.manager.on_directory_failure(FIRST, 0))
    assert DirectoryFailed(FIRST) in story.others
    assert list(story.manager.state.partitions) == [(ORDERS, 1)]
    assert list(story.manager.state.offline) == [(ORDERS, 0)]


def test_after_a_restart_a_log_in_a_failed_directory_is_not_made_anew_elsewhere() -> None:
    story = Story(FIRST, SECOND)
    story.manager.on_directory_failure(FIRST, 0)
    story.start()
    assert list(story.manager.state.partitions) == [(ORDERS, 1)]
    assert story.lies() == [FIRST, SECOND]


def test_a_repaired_directory_is_used_again_after_a_restart() -> None:
    story = Story(FIRST, SECOND)
    story.manager.on_directory_failure(FIRST, 0)
    story.manager.state.store.repair_directory(FIRST)
    story.start()
    assert len(story.manager.state.partitions) == 2


def test_a_new_log_for_a_failed_directory_is_not_made_unless_it_is_free_to_go_anywhere() -> None:
    story = Story()
    story.manager.state.store.fail_directory(FIRST)
    before = story.image
    places = (FIRST, SECOND, directory_id.UNASSIGNED)
    after = Story(*places).image
    story.see(story.manager.on_metadata(MetadataDelta.between(before, after), 0))
    assert list(story.manager.state.partitions) == [(ORDERS, 1), (ORDERS, 2)]
    assert story.reported() == {2: SECOND}


def test_a_log_of_another_topic_id_gives_way() -> None:
    store = ReplicaStore(MemoryDisk(directory_ids=(FIRST,)))
    old = store.open("orders-0", ORDERS, FIRST)
    store.checkpoint({"orders-0": 7, "bills-0": 3})
    assert store.open("orders-0", ORDERS, FIRST) is old
    assert store.open("orders-0", uuid.UUID(int=0xAA), FIRST) is not old
    assert store.high_watermarks() == {"bills-0": 3}


def test_a_deleted_log_leaves_the_checkpoint_without_a_copy_of_it() -> None:
    """A topic with n partitions would need n copies of n offsets: 10,000 took seconds."""
    store = ReplicaStore(MemoryDisk(directory_ids=(FIRST,)))
    store.checkpoint({"orders-0": 7, "orders-1": 5, "bills-0": 3})
    before = store.high_watermarks()
    for name in ("orders-0", "orders-1", "orders-2"):
        store.delete(name)
    assert store.high_watermarks() is before
    assert before == {"bills-0": 3}


def test_a_cordoned_directory_takes_no_new_log_while_there_is_another() -> None:
    """KIP-1066. Where all are cordoned the first that works takes it; what lies there stays."""
    story = Story(FIRST)
    assert story.lies() == [FIRST]
    names = {"d0": FIRST, "d1": SECOND}
    for value, places in (("d0", [SECOND, SECOND]), ("*", [FIRST, FIRST])):
        fresh = Story()
        config = ConfigRecord(
            resource_type=4, resource_name="1", name="cordoned.log.dirs", value=value
        )
        free = (directory_id.UNASSIGNED, directory_id.UNASSIGNED)
        fresh.image = apply_all(Story(*free).image, [config])
        fresh.disk = MemoryDisk(directory_ids=(FIRST, SECOND))
        fresh.config = ReplicaManagerConfig(broker_id=1, dir_names=names)
        fresh.start()
        assert fresh.lies() == places


def test_the_last_directory_takes_the_broker_with_it_and_nothing_is_reported() -> None:
    story = Story(FIRST, SECOND)
    story.see(story.manager.on_directory_failure(FIRST, 0))
    story.others.clear()
    story.sends.clear()
    story.see(story.manager.on_directory_failure(FIRST, 0))
    assert not story.others, "it has failed already"
    story.see(story.manager.on_directory_failure(SECOND, 0))
    assert story.others == [BrokerHalted("all log directories have failed")]
    assert not story.sends
    assert story.manager.state.store.cannot_run(None) == "all log directories have failed"


def test_the_directory_of_the_metadata_log_takes_the_broker_with_it() -> None:
    story = Story(FIRST, SECOND)
    story.config = ReplicaManagerConfig(broker_id=1, metadata_directory=SECOND)
    story.start()
    story.others.clear()
    story.see(story.manager.on_directory_failure(SECOND, 0))
    assert story.others == [BrokerHalted("the directory of the metadata log has failed")]
    story.manager.state.store.repair_directory(SECOND)
    assert story.manager.state.store.cannot_run(SECOND) is None


def test_new_logs_are_counted_with_those_that_lie_in_a_directory_already() -> None:
    """Each of thousands that are made at once goes to the directory with the fewest."""
    store = ReplicaStore(MemoryDisk(directory_ids=(FIRST, SECOND)))
    for index, directory in enumerate((FIRST, SECOND, FIRST)):
        store.open(f"orders-{index}", ORDERS, directory)
    assert store.loads == {FIRST: 2, SECOND: 1}
    store.open("orders-3", ORDERS, SECOND)
    store.open("orders-3", ORDERS, SECOND)
    assert store.loads == {FIRST: 2, SECOND: 2}
    store.open_future("orders-0", ORDERS, SECOND)
    store.replace_with_future("orders-0")
    assert store.loads == {FIRST: 1, SECOND: 3}
    store.delete("orders-2")
    assert store.loads == {SECOND: 3}
