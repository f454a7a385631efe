"""The offsets of topics that are deleted go with them.

Source:  GroupCoordinatorService.onMetadataUpdate, OffsetMetadataManager.onTopicsDeleted.
"""

from __future__ import annotations

import uuid

from minicluster.coordinator.group.state.coordinator_state import CoordinatorState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.group.state.offsets import offset_record
from minicluster.coordinator.runtime.shard import Result
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.protocol.uuids import ZERO_UUID


def delete_offsets_of_deleted_topics(
    state: CoordinatorState, delta: MetadataDelta, now_ms: int
) -> None:
    """Write a tombstone for each offset of a topic that the delta deletes."""
    if delta.before.topics is delta.after.topics:
        return
    before, after = delta.before.topics, delta.after.topics
    deleted = {topic.name: topic.id for topic in before if after.get(topic.id) is None}
    if not deleted:
        return
    for partition in state.runtime.partitions:
        state.runtime.write(
            partition, lambda shard, _: _tombstones(shard, deleted), lambda *_: None, now_ms
        )


def _tombstones(shard: GroupShard, deleted: dict[str, uuid.UUID]) -> Result:
    gone = [
        key
        for key, value in shard.offsets.everything()
        if value.topic_id in (ZERO_UUID, deleted.get(key[1])) and key[1] in deleted
    ]
    return Result(records=tuple(offset_record(key, None) for key in dict.fromkeys(gone)))
