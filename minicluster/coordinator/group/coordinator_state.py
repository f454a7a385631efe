"""The shards, timers and effects that all requests of a group coordinator share."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from minicluster.coordinator.group.classic.group import MemberOrder, hash_order
from minicluster.coordinator.group.config import GroupCoordinatorConfig
from minicluster.coordinator.group.consumer.group import CONSUMER, TopicHash
from minicluster.coordinator.group.group_shard import GroupShard, Task
from minicluster.coordinator.group.sessions import begin, end
from minicluster.coordinator.runtime.internal_log import InternalLog, Producer
from minicluster.coordinator.runtime.runtime import CoordinatorRuntime, Done, Operation, Reading
from minicluster.coordinator.runtime.timeline import Timeline
from minicluster.coordinator.runtime.timers import ShardTimers, Timers
from minicluster.effects import Effect, FaultHit, Respond, Trace
from minicluster.faults import Faults
from minicluster.java_order import hash_map_order, topic_partition_hash, uuid_hash
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.metadata_version import GROUP_VERSION
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.coordinator_records.groups import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    OffsetCommitKey,
)
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, partition_of
from minicluster.rules import Rules

T = TypeVar("T")
TIMER = "group-coordinator"


class GroupCoordinatorState:
    """The shards of ``__consumer_offsets`` that this broker leads."""

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        log: InternalLog,
        rules: Rules,
        new_uuid: Callable[[], uuid.UUID],
        faults: Faults = Faults.NONE,
    ) -> None:
        self.faults = faults
        self.config = config
        self.rules = rules
        self.image = MetadataImage.EMPTY
        self.metadata_offset = -1
        self.num_partitions = 1  # of __consumer_offsets, as of the broker's start
        self._effects: list[Effect] = []
        self.timers = Timers(TIMER, self._effects)
        self._new_uuid = new_uuid
        self.member_order: MemberOrder = hash_order
        self.topic_hash: TopicHash = uuid_hash
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            log,
            self._make_shard,
            self.timers,
            write_timeout_ms=config.offset_commit_timeout_ms,
            on_loaded=begin,
            on_unloaded=end,
            on_written=self._trace_deletions,
        )

    def _make_shard(self, partition: int, timeline: Timeline, timers: ShardTimers) -> GroupShard:
        def run_task(key: str, task: Task, now_ms: int, retry: bool) -> None:
            self.runtime.run_task(partition, key, lambda _, at_ms: task(at_ms), now_ms, retry=retry)

        return GroupShard(
            self.config,
            self.rules,
            timeline,
            timers,
            run_task,
            self._new_uuid,
            lambda ids: self.member_order(ids),
            lambda topic_id: self.topic_hash(topic_id),
            lambda: self.metadata_offset,
        )

    def _trace_deletions(self, records: Sequence[CoordinatorRecord]) -> None:
        """Trace the offsets and the groups that records delete."""
        self._effects += [
            Trace("group_event", row) for row in map(_deletion, records) if row is not None
        ]

    @property
    def is_consumer_protocol_enabled(self) -> bool:
        """The broker and the cluster's group.version allow consumer groups."""
        is_allowed = CONSUMER in self.config.rebalance_protocols
        return is_allowed and self.image.features.level(GROUP_VERSION) >= 1

    def write(
        self, group_id: str, operation: Operation[GroupShard], done: Done, now_ms: int
    ) -> None:
        """Run an operation on the shard of a group."""
        self.runtime.write(self.partition_of(group_id), operation, done, now_ms)

    def write_transactional(
        self,
        group_id: str,
        producer: Producer,
        operation: Operation[GroupShard],
        done: Done,
        now_ms: int,
    ) -> None:
        """Run an operation on the shard of a group, once the producer's transaction is verified."""
        partition = self.partition_of(group_id)
        self.runtime.write_transactional(partition, producer, operation, done, now_ms)

    def read(self, group_id: str, operation: Reading[GroupShard, T]) -> T:
        """Read the shard of a group as of its committed offset.

        Errors:  OperationError, as ``CoordinatorRuntime.read``.
        """
        return self.runtime.read(self.partition_of(group_id), operation)

    def partition_of(self, group_id: str) -> int:
        """The partition that holds a group."""
        return partition_of(group_id, self.num_partitions)

    def by_partition(self, group_ids: Iterable[str]) -> dict[int, list[str]]:
        """Groups by the partitions that hold them, in the order of Java's map of partitions.

        A response about several groups has that order, not the order of the request.
        """
        ids_of: dict[int, list[str]] = {}
        for group_id in group_ids:
            ids_of.setdefault(self.partition_of(group_id), []).append(group_id)

        def hash_of(partition: int) -> int:
            return topic_partition_hash((GROUP_METADATA_TOPIC, partition))

        return {partition: ids_of[partition] for partition in hash_map_order(ids_of, hash_of)}

    def respond(self, token: Any, response: Any) -> None:
        """Give a response."""
        self._effects.append(Respond(token, response))

    def hit(self, zoo_id: str) -> None:
        """Count that a planted fault has changed what the coordinator did."""
        self._effects.append(FaultHit(zoo_id))

    def take_effects(self) -> list[Effect]:
        """All effects since the last call, and the timer for what is due next."""
        self.timers.arm()
        taken, self._effects[:] = list(self._effects), []
        return taken


def _deletion(record: CoordinatorRecord) -> Mapping[str, Any] | None:
    """The row of a record that deletes an offset or a group, None for another."""
    key = record.key
    if record.value is not None:
        return None
    match key:
        case OffsetCommitKey():
            kind, topic, part = "forget", key.topic, key.partition
            return {"kind": kind, "group_id": key.group, "topic": topic, "part": part}
        case GroupMetadataKey():
            return {"kind": "end", "group_id": key.group, "part": -1}
        case ConsumerGroupMetadataKey():
            return {"kind": "end", "group_id": key.group_id, "part": -1}
    return None
