"""The groups and offsets of one partition, folded from its records.

Source:  GroupCoordinatorShard, GroupMetadataManager, OffsetMetadataManager.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from minicluster.coordinator.group.classic.group import ClassicGroup, MemberOrder
from minicluster.coordinator.group.classic.records import group_of, tombstone
from minicluster.coordinator.group.config import ConsumerGroupConfig, GroupCoordinatorConfig
from minicluster.coordinator.group.consumer.group import ConsumerGroup, TopicHash
from minicluster.coordinator.group.consumer.records import (
    ConsumerGroupReplay,
    Groups,
    group_tombstones,
)
from minicluster.coordinator.group.consumer.subscription import TopicHashes
from minicluster.coordinator.group.offsets.committed import Offsets, offset_of
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.coordinator.runtime.timeline import Timeline
from minicluster.coordinator.runtime.timers import ShardTimers
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from minicluster.protocol.coordinator_records.groups import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from minicluster.rules import Rules

Task = Callable[[int], Result]
RunTask = Callable[[str, Task, int, bool], None]
Group = ClassicGroup | ConsumerGroup
_NO_OFFSET = -1


class GroupShard:
    """All groups of a partition by their id.

    Shapes:  run_task(key, task, now_ms, retry) runs a task as a write of this shard; new_uuid draws
             the random part of a member id; metadata_offset is the offset that the image is of.
    """

    record_types = GROUP_RECORDS

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        rules: Rules,
        timeline: Timeline,
        timers: ShardTimers,
        run_task: RunTask,
        new_uuid: Callable[[], uuid.UUID],
        order: MemberOrder,
        topic_hash: TopicHash,
        metadata_offset: Callable[[], int],
    ) -> None:
        self.config = config
        self.rules = rules
        self.timeline = timeline
        self.timers = timers
        self.new_uuid = new_uuid
        self.order = order
        self.topic_hash = topic_hash
        self.topic_hashes = TopicHashes()
        self.image = MetadataImage.EMPTY
        self.metadata_offset = metadata_offset
        self.offset_of_new_topics = _NO_OFFSET
        self.groups: Groups = timeline.new_dict()
        self._consumer_groups = ConsumerGroupReplay(self.groups, timeline, topic_hash)
        self.offsets = Offsets(timeline)
        self._run_task = run_task

    # --- groups ---------------------------------------------------------------------------

    def group(self, group_id: str, *, committed: bool = False) -> Group:
        """A group.

        Errors:  GROUP_ID_NOT_FOUND.
        """
        groups = self.groups
        group = groups.committed_value(group_id) if committed else groups.get(group_id)
        if group is None:
            message = f"Group {group_id} not found."
            raise OperationError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        return group

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """A classic group, None where there is none of this id."""
        group = self.groups.get(group_id)
        return group if isinstance(group, ClassicGroup) else None

    def consumer_group(self, group_id: str, *, committed: bool = False) -> ConsumerGroup:
        """A consumer group.

        Errors:  GROUP_ID_NOT_FOUND.
        """
        group = self.group(group_id, committed=committed)
        if isinstance(group, ConsumerGroup):
            return group
        message = f"Group {group_id} is not a consumer group."
        raise OperationError(ErrorCode.GROUP_ID_NOT_FOUND, message)

    def new_classic_group(self, group_id: str, now_ms: int | None) -> ClassicGroup:
        """An empty classic group in the place of whatever was there."""
        group = self.groups[group_id] = ClassicGroup(group_id, now_ms, self.order)
        return group

    def tombstones_of(self, group: Group) -> list[CoordinatorRecord]:
        """The end of a group without members."""
        if isinstance(group, ConsumerGroup):
            return group_tombstones(group, group.member_ids)
        return [tombstone(group.group_id)]

    def consumer_config(self, group_id: str) -> ConsumerGroupConfig:
        """The configs that hold for a consumer group."""
        return self.config.of_group(group_id, self.image)

    # --- timers -----------------------------------------------------------------------------

    def schedule(self, key: str, at_ms: int, task: Task, *, retry: bool = False) -> None:
        """Run a task as a write of this shard at a time."""
        self.timers.schedule(key, at_ms, lambda now_ms: self._run_task(key, task, now_ms, retry))

    # --- replay -----------------------------------------------------------------------------

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int, epoch: int) -> None:
        """Apply a record of the log."""
        key, value = record.key, record.value
        match key:
            case GroupMetadataKey():
                if isinstance(value, GroupMetadataValue):
                    self.groups[key.group] = group_of(key.group, value, self.order)
                else:
                    self.groups.pop(key.group)
            case OffsetCommitKey() | LegacyOffsetCommitKey():
                place = key.group, key.topic, key.partition
                if isinstance(value, OffsetCommitValue):
                    if key.group not in self.groups:
                        self.new_classic_group(key.group, None)
                    self.offsets.replay(place, offset_of(value, offset), producer_id)
                else:
                    self.offsets.replay(place, None, producer_id)
            case _:
                self._consumer_groups.replay(key, value)

    def replay_end_transaction(self, producer_id: int, epoch: int, *, committed: bool) -> None:
        """Apply the marker of a transaction."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """A newer image was published: groups of topics that have changed look at them again."""
        before, self.image = self.image.topics, image
        after = image.topics
        if before is after:
            return
        is_first = self.offset_of_new_topics == _NO_OFFSET
        if is_first or any(topic_id not in before.by_id for topic_id in after.by_id):
            self.offset_of_new_topics = self.metadata_offset()
        by_topic = self._consumer_groups.groups_by_topic
        changed = [name for name in by_topic if before.named(name) is not after.named(name)]
        for group_id in {group_id for name in changed for group_id in by_topic[name]}:
            group = self.groups.get(group_id)
            if isinstance(group, ConsumerGroup):
                group.request_metadata_refresh()
