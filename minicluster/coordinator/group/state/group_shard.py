"""The groups and offsets of one partition, folded from its records.

Source:  GroupCoordinatorShard, GroupMetadataManager, OffsetMetadataManager.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable

from minicluster.coordinator.group.classic.group import ClassicGroup, MemberOrder
from minicluster.coordinator.group.classic.records import group_of
from minicluster.coordinator.group.config import GroupCoordinatorConfig
from minicluster.coordinator.group.state.offsets import Offsets, offset_of
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.coordinator.runtime.timers import ShardTimers
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.classic_group import (
    GroupMetadataKey,
    GroupMetadataValue,
)
from minicluster.protocol.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from minicluster.protocol.coordinator_records.offsets import (
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)

Task = Callable[[int], Result]
RunTask = Callable[[str, Task, int, bool], None]


class GroupShard:
    """All groups of a partition by their id.

    Shapes:  run_task(key, task, now_ms, retry) runs a task as a write of this shard; new_uuid draws
             the random part of a member id.
    """

    record_types = GROUP_RECORDS

    def __init__(
        self,
        config: GroupCoordinatorConfig,
        timeline: Timeline,
        timers: ShardTimers,
        run_task: RunTask,
        new_uuid: Callable[[], uuid.UUID],
        order: MemberOrder,
    ) -> None:
        self.config = config
        self.timers = timers
        self.new_uuid = new_uuid
        self.order = order
        self.image = MetadataImage.EMPTY
        self.groups: TimelineDict[str, ClassicGroup] = timeline.new_dict()
        self.offsets = Offsets(timeline)
        self._run_task = run_task

    # --- groups ---------------------------------------------------------------------------

    def group(self, group_id: str) -> ClassicGroup:
        """A group.

        Errors:  GROUP_ID_NOT_FOUND.
        """
        found = self.groups.get(group_id)
        if found is None:
            message = f"Group {group_id} not found."
            raise OperationError(ErrorCode.GROUP_ID_NOT_FOUND, message)
        return found

    def classic_group(self, group_id: str) -> ClassicGroup | None:
        """A classic group, None where there is none of this id."""
        return self.groups.get(group_id)

    def group_or_new(self, group_id: str, now_ms: int | None) -> ClassicGroup:
        """A group; an empty classic one is made where there is none."""
        found = self.groups.get(group_id)
        if found is None:
            found = self.groups[group_id] = ClassicGroup(group_id, now_ms, self.order)
        return found

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
                    self.group_or_new(key.group, None)
                    self.offsets.replay(place, offset_of(value, offset), producer_id)
                else:
                    self.offsets.replay(place, None, producer_id)

    def replay_end_transaction(self, producer_id: int, epoch: int, *, committed: bool) -> None:
        """Apply the marker of a transaction."""
        self.offsets.end_transaction(producer_id, committed=committed)

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """A newer image was published."""
        self.image = image
