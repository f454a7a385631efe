"""The groups and offsets of one partition, folded from its records.

Source:  GroupCoordinatorShard, GroupMetadataManager, OffsetMetadataManager.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.coordinator.runtime.timers import ShardTimers
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord


class GroupShard:
    """All groups of a partition by their id."""

    record_types = GROUP_RECORDS

    def __init__(self, partition: int, timeline: Timeline, timers: ShardTimers) -> None:
        self.partition = partition
        self.timers = timers
        self.image = MetadataImage.EMPTY
        self.groups: TimelineDict[str, Any] = timeline.new_dict()

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int, epoch: int) -> None:
        """Apply a record of the log."""

    def replay_end_transaction(self, producer_id: int, epoch: int, *, committed: bool) -> None:
        """Apply the marker of a transaction."""

    def on_loaded(self, image: MetadataImage, now_ms: int) -> None:
        """All of the log is replayed."""
        self.image = image

    def on_unloaded(self) -> None:
        """The partition is led elsewhere."""

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """A newer image was published."""
        self.image = image

    def commit(self, offset: int) -> None:
        """All below an offset is committed."""
