"""Members leave a consumer group: by request, or because one of their time-outs runs out.

    session     no request comes
    rebalance   partitions are not given up
    join, sync  of members of the classic protocol: they do not join again, or do not sync

Source:  GroupMetadataManager.consumerGroupFenceMembers, cancelTimers,
         scheduleConsumerGroupSessionTimeout and its neighbours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from minicluster.coordinator.group.consumer.group import (
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
)
from minicluster.coordinator.group.consumer.records import (
    group_epoch,
    member_tombstones,
    regular_expression_tombstone,
)
from minicluster.coordinator.group.consumer.subscription import add_matches, add_names
from minicluster.coordinator.group.conversion.downgrade import (
    can_downgrade_without,
    convert_to_classic_group,
)
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import NOTHING, Result
from minicluster.values import Value


class TimerKeys(Value):
    """The timers of one member."""

    session: str
    rebalance: str
    join: str
    sync: str


def timer_keys(group_id: str, member_id: str) -> TimerKeys:
    """The keys of a member's timers."""
    return TimerKeys(
        session=f"session-timeout-{group_id}-{member_id}",
        rebalance=f"rebalance-timeout-{group_id}-{member_id}",
        join=f"consumer-join-{group_id}-{member_id}",
        sync=f"consumer-sync-{group_id}-{member_id}",
    )


def cancel_timers(shard: GroupShard, group_id: str, member_id: str) -> None:
    """Drop all timers of a member."""
    keys = timer_keys(group_id, member_id)
    for key in (keys.session, keys.rebalance, keys.join, keys.sync):
        shard.timers.cancel(key)


def fence_members(
    shard: GroupShard,
    group: ConsumerGroup,
    members: Sequence[ConsumerGroupMember],
    now_ms: int,
    response: Any = None,
) -> Result:
    """Remove members; a group that has only members of the classic protocol left is one again."""
    if not members:
        return Result(response=response)
    if can_downgrade_without(shard, group, members):
        return convert_to_classic_group(
            shard, group, leaving=members, now_ms=now_ms, response=response, rebalance=True
        )
    records = []
    for member in members:
        records += member_tombstones(group.group_id, member.member_id)
    topics = dict(group.subscribed_topics)
    leaving = Counter(member.subscribed_regex or "" for member in members)
    for expression, count in leaving.items():
        if expression and group.subscribed_regexes.get(expression) == count:
            records.append(regular_expression_tombstone(group.group_id, expression))
            resolved = group.resolved_regexes.get(expression)
            add_matches(topics, () if resolved is None else resolved.topics, -1)
    for member in members:
        add_names(topics, member.subscribed_topics, -1)
    metadata_hash = shard.topic_hashes.of_group(topics, shard.image)
    records.append(group_epoch(group.group_id, group.group_epoch + 1, metadata_hash))
    for member in members:
        cancel_timers(shard, group.group_id, member.member_id)
    return Result(records=tuple(records), response=response)


# --- time-outs ------------------------------------------------------------------------------------


def schedule_session_timeout(
    shard: GroupShard, group_id: str, member_id: str, now_ms: int, timeout_ms: int | None = None
) -> None:
    """Restart the session of a member; its length is the group's, unless one is given."""
    if timeout_ms is None:
        timeout_ms = shard.consumer_config(group_id).session_timeout_ms
    key = timer_keys(group_id, member_id).session
    _schedule(shard, key, group_id, member_id, now_ms + timeout_ms)


def schedule_rebalance_timeout(
    shard: GroupShard, group_id: str, member: ConsumerGroupMember, now_ms: int
) -> None:
    """Expect a member to give up partitions in time, while it stays in its epoch."""
    key = timer_keys(group_id, member.member_id).rebalance
    at_ms = now_ms + member.rebalance_timeout_ms
    _schedule(shard, key, group_id, member.member_id, at_ms, epoch=member.epoch)


def cancel_rebalance_timeout(shard: GroupShard, group_id: str, member_id: str) -> None:
    """The member has nothing to give up."""
    shard.timers.cancel(timer_keys(group_id, member_id).rebalance)


def schedule_join_timeout_if_absent(
    shard: GroupShard, group_id: str, member: ConsumerGroupMember, now_ms: int
) -> None:
    """Expect a member to join again in time, counted from the first response that requires it."""
    key = timer_keys(group_id, member.member_id).join
    if key not in shard.timers:
        at_ms = now_ms + member.rebalance_timeout_ms
        _schedule(shard, key, group_id, member.member_id, at_ms)


def cancel_join_timeout(shard: GroupShard, group_id: str, member_id: str) -> None:
    """The member has joined."""
    shard.timers.cancel(timer_keys(group_id, member_id).join)


def schedule_sync_timeout(
    shard: GroupShard, group_id: str, member_id: str, timeout_ms: int, now_ms: int
) -> None:
    """Expect a member that has joined to request its assignment."""
    key = timer_keys(group_id, member_id).sync
    _schedule(shard, key, group_id, member_id, now_ms + timeout_ms)


def cancel_sync_timeout(shard: GroupShard, group_id: str, member_id: str) -> None:
    """The member has its assignment."""
    shard.timers.cancel(timer_keys(group_id, member_id).sync)


def _schedule(
    shard: GroupShard,
    key: str,
    group_id: str,
    member_id: str,
    at_ms: int,
    epoch: int | None = None,
) -> None:
    def expire(now_ms: int) -> Result:
        group = shard.groups.get(group_id)
        if not isinstance(group, ConsumerGroup):
            return NOTHING
        member = group.members.get(member_id)
        if member is None or epoch not in (None, member.epoch):
            return NOTHING
        return fence_members(shard, group, [member], now_ms)

    shard.schedule(key, at_ms, expire, retry=True)


def begin_consumer_group(shard: GroupShard, group: ConsumerGroup, now_ms: int) -> None:
    """Begin the sessions of a group that was loaded, and expect what is to be given up.

    Source:  GroupMetadataManager.onLoaded.
    """
    for member_id in group.member_ids:
        member = group.members[member_id]
        schedule_session_timeout(shard, group.group_id, member_id, now_ms)
        if member.state is MemberState.UNREVOKED_PARTITIONS:
            schedule_rebalance_timeout(shard, group.group_id, member, now_ms)
