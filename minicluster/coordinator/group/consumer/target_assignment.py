"""A new target assignment of a group, by the assignor that most members prefer.

Source:  TargetAssignmentBuilder, GroupMetadataManager.maybeUpdateTargetAssignment.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from minicluster.coordinator.group.assignors.assignor import (
    Assignment,
    AssignorError,
    GroupSpec,
    MemberSpec,
)
from minicluster.coordinator.group.assignors.range import assign_ranges
from minicluster.coordinator.group.assignors.uniform import assign_uniformly
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.member import ConsumerGroupMember, Partitions
from minicluster.coordinator.group.consumer.records import (
    target_assignment,
    target_assignment_epoch,
)
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.java_order import hash_map_order, hash_set_order, string_hash
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode

ASSIGNORS = {"uniform": assign_uniformly, "range": assign_ranges}


def subscribed_topic_ids(
    group: ConsumerGroup, member: ConsumerGroupMember, image: MetadataImage
) -> tuple[UUID, ...]:
    """The topics that a member subscribes to, by name and by expression, and that exist.

    Source:  TopicIds, UnionSet.
    """
    names = hash_set_order(sorted(member.subscribed_topics), (), string_hash)
    resolved = group.resolved_regexes.get(member.subscribed_regex or "")
    if resolved is not None:
        matched = hash_set_order(sorted(resolved.topics), (), string_hash)
        large, small = (names, matched) if len(names) > len(matched) else (matched, names)
        names = list(dict.fromkeys((*large, *small)))
    topics = (image.topics.named(name) for name in names)
    return tuple(topic.id for topic in topics if topic is not None)


def new_target_assignment(
    shard: GroupShard,
    group: ConsumerGroup,
    epoch: int,
    old: ConsumerGroupMember,
    new: ConsumerGroupMember,
    records: list[Any],
    now_ms: int,
    *,
    is_homogeneous: bool,
) -> Partitions:
    """Assign all partitions of a group with one member changed; the target of that member.

    Errors:  UNKNOWN_SERVER_ERROR where the assignor fails.
    """
    image = shard.image
    specs = _member_specs(shard, group, new)
    spec = GroupSpec(
        members=specs,
        is_homogeneous=is_homogeneous,
        owners=group.target_owners,
        partition_count=lambda topic_id: _partition_count(image, topic_id),
        topic_hash=shard.topic_hash,
    )
    assignor = group.preferred_assignor(old, new) or shard.config.consumer_assignors[0]
    try:
        assignment = ASSIGNORS[assignor](spec)
    except AssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {epoch}: {error}"
        raise OperationError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
    for member_id in specs:
        partitions = _of_member(shard, assignment, member_id)
        if partitions != group.target.get(member_id):
            records.append(target_assignment(group.group_id, member_id, partitions))
    records.append(target_assignment_epoch(group.group_id, epoch, now_ms))
    return _of_member(shard, assignment, new.member_id)


def _member_specs(
    shard: GroupShard, group: ConsumerGroup, new: ConsumerGroupMember
) -> Mapping[str, MemberSpec]:
    """All members with their last target; one that replaces another has the target of that."""
    replaced = group.static_members.get(new.instance_id or "")
    updated = {**{i: group.members[i] for i in group.member_ids}, new.member_id: new}
    specs = {}
    for member_id in shard.order(list(updated)):
        if member_id == replaced and member_id != new.member_id:
            continue
        member = updated[member_id]
        from_id = member_id
        if member_id == new.member_id and replaced is not None:
            from_id = replaced
        specs[member_id] = MemberSpec(
            instance_id=member.instance_id,
            subscribed=subscribed_topic_ids(group, member, shard.image),
            assignment=group.target_of(from_id),
        )
    return specs


def _of_member(shard: GroupShard, assignment: Assignment, member_id: str) -> Partitions:
    partitions = assignment.get(member_id, {})
    return {
        topic_id: frozenset(partitions[topic_id])
        for topic_id in hash_map_order(partitions, shard.topic_hash)
        if partitions[topic_id]
    }


def _partition_count(image: MetadataImage, topic_id: UUID) -> int | None:
    topic = image.topics.get(topic_id)
    return None if topic is None else len(topic.partitions)
