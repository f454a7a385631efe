"""Members leave a consumer group: by request, or after one of their time-outs.

Source:  GroupMetadataManager.consumerGroupFenceMembers, cancelTimers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.member import ConsumerGroupMember
from minicluster.coordinator.group.consumer.records import (
    group_epoch,
    member_tombstones,
    regular_expression_tombstone,
)
from minicluster.coordinator.group.consumer.subscription import add_matches, add_names
from minicluster.coordinator.group.migration.downgrade import (
    can_downgrade_without,
    convert_to_classic_group,
)
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import Result


@dataclass(frozen=True, slots=True)
class TimerKeys:
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
