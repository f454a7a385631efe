"""The time-outs of members: a member that lets one run out is removed from its group.

    session     no request comes
    rebalance   partitions are not given up
    join, sync  of members of the classic protocol: they do not join again, or do not sync

Source:  GroupMetadataManager.scheduleConsumerGroupSessionTimeout and its neighbours.
"""

from __future__ import annotations

from minicluster.coordinator.group.consumer.fencing import fence_members, timer_keys
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.member import ConsumerGroupMember, MemberState
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import NOTHING, Result


def schedule_session_timeout(
    shard: GroupShard, group_id: str, member_id: str, now_ms: int, timeout_ms: int | None = None
) -> None:
    """Begin the session of a member anew; its length is the group's, unless one is given."""
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
