"""The group and the member of a request, each found, made or converted.

Source:  GroupMetadataManager.getOrMaybeCreateConsumerGroup,
         getOrMaybeSubscribeDynamicConsumerGroupMember,
         getOrMaybeSubscribeStaticConsumerGroupMember, replaceMember.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.group.classic.records import tombstone
from minicluster.coordinator.group.consumer.assignment import Owned
from minicluster.coordinator.group.consumer.group import (
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    ConsumerGroup,
    ConsumerGroupMember,
)
from minicluster.coordinator.group.consumer.records import (
    current_assignment,
    member_subscription,
    member_tombstones,
    target_assignment,
)
from minicluster.coordinator.group.conversion.upgrade import (
    convert_to_consumer_group,
    validate_upgrade,
)
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.protocol import ErrorCode
from minicluster.values import replace


def group_of_heartbeat(
    shard: GroupShard, group_id: str, records: list[Any], now_ms: int, *, is_joining: bool
) -> ConsumerGroup:
    """The group of a heartbeat; a member that joins makes one where there is none.

    Errors:  GROUP_ID_NOT_FOUND.
    """
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    if not is_joining:
        what = f"Consumer group {group_id} not found."
        if group is not None:
            what = f"Group {group_id} is not a consumer group."
        raise OperationError(ErrorCode.GROUP_ID_NOT_FOUND, what)
    if group is not None:
        if not group.is_empty:
            validate_upgrade(shard, group)
            return convert_to_consumer_group(shard, group, records, now_ms)
        records.append(tombstone(group_id))
    return ConsumerGroup(group_id, shard.timeline, shard.topic_hash)


def require_room(shard: GroupShard, group: ConsumerGroup, member_id: str) -> None:
    """Reject a new member of a full group.

    Errors:  GROUP_MAX_SIZE_REACHED.
    """
    highest = shard.config.consumer_max_size
    if len(group.members) >= highest and member_id not in group.members:
        message = f"The consumer group has reached its maximum capacity of {highest} members."
        raise OperationError(ErrorCode.GROUP_MAX_SIZE_REACHED, message)


def validate_member_epoch(member: ConsumerGroupMember, epoch: int, owned: Owned) -> None:
    """Fence a member with another epoch than its own.

    The epoch before is accepted from a member that has no more than it should: the response with
    its newer epoch may have been lost. Epoch 0 is a member that begins again.

    Errors:  FENCED_MEMBER_EPOCH.
    """
    if epoch in (0, member.epoch):
        return
    is_previous = epoch == member.previous_epoch and epoch < member.epoch
    if is_previous and _is_within_assignment(owned, member):
        return
    side = "greater" if epoch > member.epoch else "smaller"
    raise OperationError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {side} member epoch ({epoch}) than the one known by the "
        f"group coordinator ({member.epoch}). The member must abandon all its partitions and "
        "rejoin.",
    )


def _is_within_assignment(owned: Owned, member: ConsumerGroupMember) -> bool:
    if owned is None:
        return False
    return all(
        topic.topic_id in member.assigned
        and all(index in member.assigned[topic.topic_id] for index in topic.partitions)
        for topic in owned
    )


def dynamic_member(
    group: ConsumerGroup, member_id: str, *, is_new_allowed: bool
) -> ConsumerGroupMember:
    """A member without instance id.

    Errors:  UNKNOWN_MEMBER_ID.
    """
    if is_new_allowed and member_id not in group.members:
        return ConsumerGroupMember(member_id=member_id)
    return group.member(member_id)


def joining_static_member(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str,
    records: list[Any],
    *,
    uses_classic_protocol: bool,
) -> ConsumerGroupMember:
    """A static member that joins; it takes over from the one that left with its instance id.

    Errors:  UNRELEASED_INSTANCE_ID while that one has not left.
    """
    existing = group.static_member(instance_id)
    if existing is None:
        return dynamic_member(group, member_id, is_new_allowed=True)
    both_new = not (uses_classic_protocol or existing.uses_classic_protocol)
    if both_new and existing.epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        raise OperationError(
            ErrorCode.UNRELEASED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} cannot join the group "
            f"because the instance id is owned by {existing.member_id} member.",
        )
    new = replace(existing, member_id=member_id, epoch=0, previous_epoch=0)
    group_id = group.group_id
    # The timers of the old member stay: without it they do nothing.
    records += member_tombstones(group_id, existing.member_id)
    records.append(member_subscription(group_id, new))
    records.append(target_assignment(group_id, member_id, group.target_of(existing.member_id)))
    records.append(current_assignment(group_id, new))
    return new


def known_static_member(
    group: ConsumerGroup, member_id: str, instance_id: str
) -> ConsumerGroupMember:
    """A static member that is in the group already.

    Errors:  UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID.
    """
    existing = group.static_member(instance_id)
    if existing is None:
        message = f"Instance id {instance_id} is unknown."
        raise OperationError(ErrorCode.UNKNOWN_MEMBER_ID, message)
    require_same_member(existing, member_id, instance_id)
    return existing


def require_same_member(existing: ConsumerGroupMember, member_id: str, instance_id: str) -> None:
    """Fence a member that uses the instance id of another member.

    Errors:  FENCED_INSTANCE_ID.
    """
    if existing.member_id != member_id:
        raise OperationError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{existing.member_id}.",
        )
