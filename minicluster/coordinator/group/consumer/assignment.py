"""The target assignment of a consumer group, and the way from what its members have (KIP-848).

A target assignment is made for the whole group at once; each member then moves towards its part at
its own pace, and never gets a partition before the member that had it has given it up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from minicluster.coordinator.group.consumer.assignors import (
    Assignment,
    AssignorError,
    GroupSpec,
    MemberSpec,
    assign_ranges,
    assign_uniformly,
)
from minicluster.coordinator.group.consumer.group import (
    UNASSIGNED_EPOCH,
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
    PartitionEpochs,
    Partitions,
    TopicHash,
)
from minicluster.coordinator.group.consumer.records import (
    target_assignment,
    target_assignment_epoch,
)
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.java_order import (
    hash_map_order,
    hash_set_order,
    java_set_order,
    room_of_copy,
    string_hash,
)
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.values import Value, replace

# A new target assignment of a group, by the assignor that most members prefer.
#
# Source:  TargetAssignmentBuilder, GroupMetadataManager.maybeUpdateTargetAssignment.

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


def names_no_topic(group: ConsumerGroup, member: ConsumerGroupMember) -> bool:
    """True for a member that subscribes to no topic, whether or not it would exist.

    Source:  TopicIds.isEmpty.
    """
    resolved = group.resolved_regexes.get(member.subscribed_regex or "")
    return not member.subscribed_topics and (resolved is None or not resolved.topics)


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


# The next step of a member from the partitions that it has to those that it is to have.
#
# First it gives up what is not in its target. Only then it enters the epoch of the target, and gets
# what is free of it. What other members still have follows with their releases.
#
# Source:  CurrentAssignmentBuilder; KIP-848.


Owned = Sequence[Any] | None
"""The partitions that a member reports, with ``topic_id`` and ``partitions``; None: no report."""
Epochs = dict[UUID, dict[int, int]]


class Reconciliation(Value, kw_only=True):
    """One member before the step.

    Shapes:  ``subscribed`` are the topics that it subscribes to and that exist; it
             ``names_no_topic`` where it subscribes to none, whether or not they exist;
             ``partition_epoch`` gives the epoch of a partition's owner, -1 for none.
    """

    member: ConsumerGroupMember
    target_epoch: int
    target: Partitions
    subscribed: frozenset[UUID]
    names_no_topic: bool
    has_subscription_changed: bool
    owned: Owned
    partition_epoch: Callable[[UUID, int], int]
    topic_hash: TopicHash

    def next_member(self) -> ConsumerGroupMember:
        """The member after the step; the same one where there is nothing to do.

        Errors:  FENCED_MEMBER_EPOCH for a member in a state that this release does not have.
        """
        member = self.member
        match member.state:
            case MemberState.STABLE:
                if member.epoch != self.target_epoch:
                    return self._next_assignment()
                return self._within_subscription() if self.has_subscription_changed else member
            case MemberState.UNREVOKED_PARTITIONS:
                if self._owns_any_of(member.pending_revocation):
                    return self._within_subscription() if self.has_subscription_changed else member
                return self._next_assignment()
            case MemberState.UNRELEASED_PARTITIONS:
                return self._next_assignment()
        if self.owned is None or self.owned:
            raise OperationError(
                ErrorCode.FENCED_MEMBER_EPOCH,
                "The consumer group member is in a unknown state. The member must abandon all its "
                "partitions and rejoin.",
            )
        return replace(self, member=replace(member, epoch=self.target_epoch))._next_assignment()

    def _owns_any_of(self, partitions: PartitionEpochs) -> bool:
        if self.owned is None:
            return True
        return any(
            index in partitions.get(topic.topic_id, {})
            for topic in self.owned
            for index in topic.partitions
        )

    # --- another subscription -----------------------------------------------------------------

    def _within_subscription(self) -> ConsumerGroupMember:
        """Give up at once the topics that the member does not subscribe to any more."""
        member = self.member
        kept = {t: p for t, p in member.assigned.items() if t in self.subscribed}
        # One without topics enters its epoch again, though it had no partitions either.
        enters_again = self.names_no_topic and not member.pending_revocation
        if len(kept) == len(member.assigned) and not enters_again:
            return member
        revoked: dict[UUID, Mapping[int, int]] = dict(member.pending_revocation)
        for topic_id, epochs in member.assigned.items():
            if topic_id not in kept:
                revoked[topic_id] = {**revoked.get(topic_id, {}), **epochs}
        if revoked and self._owns_any_of(revoked):
            return _in_epoch(
                member,
                member.epoch,
                state=MemberState.UNREVOKED_PARTITIONS,
                assigned=kept,
                pending_revocation=self._ordered(revoked),
            )
        # They were given up before they were revoked.
        return _in_epoch(member, member.epoch, assigned=kept)

    # --- another target -----------------------------------------------------------------------

    def _next_assignment(self) -> ConsumerGroupMember:
        member = self.member
        assigned: Epochs = {}
        revoked: Epochs = {}
        free: dict[UUID, list[int]] = {}
        is_any_unreleased = False
        topic_ids = hash_set_order(list(self.target), list(member.assigned), self.topic_hash)
        for topic_id in topic_ids:
            current = member.assigned.get(topic_id, {})
            target: frozenset[int] = frozenset()
            if topic_id in self.subscribed:
                target = self.target.get(topic_id, target)
            kept = {index: epoch for index, epoch in current.items() if index in target}
            gone = {index: epoch for index, epoch in current.items() if index not in target}
            wanted = [index for index in java_set_order(sorted(target)) if index not in kept]
            available = [index for index in wanted if self._is_available(topic_id, index)]
            is_any_unreleased |= len(available) < len(wanted)
            if kept:
                assigned[topic_id] = _in_map_order(current, kept, ())
            if gone:
                revoked[topic_id] = _in_map_order(current, gone, ())
            if available:
                free[topic_id] = available
        if revoked and self._owns_any_of(revoked):
            return _in_epoch(
                member,
                member.epoch,
                state=MemberState.UNREVOKED_PARTITIONS,
                assigned=self._ordered(assigned),
                pending_revocation=self._ordered(revoked),
            )
        for topic_id in hash_map_order(free, self.topic_hash):
            before = assigned.get(topic_id, {})
            added = dict.fromkeys(free[topic_id], self.target_epoch)
            copied = member.assigned.get(topic_id, {}) if before else {}
            # Map.computeIfAbsent puts a new key in front of its bin.
            place: Epochs = {} if before else {topic_id: {}}
            assigned = {**place, **assigned}
            assigned[topic_id] = _in_map_order(copied, {**before, **added}, added)
        unreleased = MemberState.UNRELEASED_PARTITIONS
        return _in_epoch(
            member,
            self.target_epoch,
            state=unreleased if is_any_unreleased else MemberState.STABLE,
            assigned=self._ordered(assigned),
            pending_revocation={},
        )

    def _is_available(self, topic_id: UUID, index: int) -> bool:
        """No member has the partition, unless it is this one, which was to give it up."""
        if self.partition_epoch(topic_id, index) == UNASSIGNED_EPOCH:
            return True
        return index in self.member.pending_revocation.get(topic_id, {})

    def _ordered(self, partitions: PartitionEpochs) -> PartitionEpochs:
        order = hash_map_order(partitions, self.topic_hash)
        return {topic_id: partitions[topic_id] for topic_id in order}


def _in_epoch(member: ConsumerGroupMember, epoch: int, **changes: Any) -> ConsumerGroupMember:
    return replace(member, epoch=epoch, previous_epoch=member.epoch, **changes)


def _in_map_order(
    copied: Mapping[int, int], epochs: Mapping[int, int], then: Iterable[int]
) -> dict[int, int]:
    """The partitions in the order of a HashMap that is a copy with changes."""
    if not copied:
        order = hash_map_order(epochs, int)
    else:
        members = dict.fromkeys((*copied, *then))
        order = hash_map_order(members, int, room_of_copy(len(copied)))
    return {index: epochs[index] for index in order if index in epochs}
