"""The begin and the end of a shard: sessions, retention, and those who wait for a response.

Source:  GroupMetadataManager.onLoaded, onUnloaded; GroupCoordinatorShard.cleanupGroupMetadata,
         OffsetMetadataManager.cleanupExpiredOffsets; KIP-211.
"""

from __future__ import annotations

from minicluster.coordinator.group.classic.group import (
    GroupState,
    complete_join,
    complete_sync,
)
from minicluster.coordinator.group.classic.members import prepare_rebalance, reschedule_heartbeat
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.leaving import begin_consumer_group
from minicluster.coordinator.group.group_shard import Group, GroupShard
from minicluster.coordinator.group.offsets.committed import offset_record
from minicluster.coordinator.runtime.shard import Result
from minicluster.java_order import string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.messages import JoinGroupResponse, SyncGroupResponse

RETENTION_KEY = "expire-group-metadata"


def begin(shard: GroupShard, now_ms: int) -> None:
    """Restart all sessions, and look for expired offsets from time to time."""
    for group_id in list(shard.groups):
        group = shard.groups[group_id]
        if isinstance(group, ConsumerGroup):
            begin_consumer_group(shard, group, now_ms)
            continue
        for member in group.members_in_order():
            reschedule_heartbeat(shard, group, member, now_ms)
        if len(group.members) > shard.config.group_max_size:
            prepare_rebalance(shard, group, now_ms)
    _schedule_retention(shard, now_ms)


def end(shard: GroupShard, now_ms: int) -> None:
    """Send those who wait to the new coordinator."""
    error = ErrorCode.NOT_COORDINATOR
    for group_id in list(shard.groups):
        group = shard.groups[group_id]
        if isinstance(group, ConsumerGroup):
            continue
        group.transition_to(GroupState.DEAD, now_ms)
        for member in group.members_in_order():
            complete_join(member, JoinGroupResponse(error_code=error, member_id=member.member_id))
            complete_sync(member, SyncGroupResponse(error_code=error))


def _schedule_retention(shard: GroupShard, now_ms: int) -> None:
    def expire(at_ms: int) -> Result:
        _schedule_retention(shard, at_ms)
        return expire_offsets(shard, at_ms)

    at_ms = now_ms + shard.config.offsets_retention_check_interval_ms
    shard.schedule(RETENTION_KEY, at_ms, expire, retry=True)


def expire_offsets(shard: GroupShard, now_ms: int) -> Result:
    """Delete offsets beyond their retention, and empty groups that have none left."""
    records: list[CoordinatorRecord] = []
    for group_id in shard.groups.in_order(string_hash):
        group = shard.groups[group_id]
        all_expired = _expire_offsets_of(shard, group, records, now_ms)
        if all_expired and group.is_empty:
            records += shard.tombstones_of(group)
    return Result(records=tuple(records))


def _expire_offsets_of(
    shard: GroupShard, group: Group, records: list[CoordinatorRecord], now_ms: int
) -> bool:
    offsets = shard.offsets
    all_expired = not offsets.has_pending(group.group_id)
    for topic, index, value in offsets.of_group(group.group_id):
        key = group.group_id, topic, index
        if value.expires_ms is not None:
            is_due = group.offset_base_ms(0) is not None and now_ms >= value.expires_ms
        else:
            base_ms = group.offset_base_ms(value.committed_ms)
            retention_ms = shard.config.offsets_retention_ms
            is_due = base_ms is not None and now_ms - base_ms >= retention_ms
        if is_due and not group.is_subscribed_to(topic) and not offsets.is_pending(key):
            records.append(offset_record(key, None))
        else:
            all_expired = False
    return all_expired
