"""The records of a consumer group in ``__consumer_offsets``: written, and folded again.

Tombstones of what is not there are ignored: in a log that compaction has cleaned, what they ended
may be gone.

Source:  GroupCoordinatorRecordHelpers, ConsumerGroup.createGroupTombstoneRecords,
         createConsumerGroupRecords; GroupMetadataManager.replay,
         getOrMaybeCreatePersistedConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from minicluster.coordinator.group.classic.group import ClassicGroup
from minicluster.coordinator.group.consumer.group import (
    LEAVE_GROUP_MEMBER_EPOCH,
    UNASSIGNED_EPOCH,
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
    PartitionEpochs,
    Partitions,
    TopicHash,
)
from minicluster.coordinator.group.consumer.subscription import ResolvedRegularExpression
from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.java_order import hash_map_order, java_set_order
from minicluster.protocol.coordinator_records import groups as r
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord as Record
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.schema import Message
from minicluster.values import replace


def member_subscription(group_id: str, member: ConsumerGroupMember) -> Record:
    """A member and what it subscribes to."""
    return Record(
        r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        r.ConsumerGroupMemberMetadataValue(
            rack_id=member.rack_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=tuple(sorted(member.subscribed_topics)),
            subscribed_topic_regex=member.subscribed_regex,
            server_assignor=member.server_assignor,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            classic_member_metadata=member.classic,
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Record:
    """A group epoch, with the hash of the topics that it is for."""
    value = r.ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash)
    return Record(r.ConsumerGroupMetadataKey(group_id=group_id), value)


def target_assignment(group_id: str, member_id: str, partitions: Partitions) -> Record:
    """The partitions that a member is to have."""
    topic = r.ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    return Record(
        r.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        r.ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=tuple(
                topic(topic_id=topic_id, partitions=tuple(java_set_order(sorted(indexes))))
                for topic_id, indexes in partitions.items()
            )
        ),
    )


def target_assignment_epoch(group_id: str, epoch: int, time_ms: int) -> Record:
    """The group epoch that the target assignment is for, and when it was made."""
    return Record(
        r.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        r.ConsumerGroupTargetAssignmentMetadataValue(
            assignment_epoch=epoch, assignment_timestamp=time_ms
        ),
    )


def current_assignment(group_id: str, member: ConsumerGroupMember) -> Record:
    """The partitions that a member has, and those that it has to give up."""
    return Record(
        r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        r.ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=_topic_partitions(member.assigned),
            partitions_pending_revocation=_topic_partitions(member.pending_revocation),
        ),
    )


def _topic_partitions(partitions: PartitionEpochs) -> tuple[Any, ...]:
    topic = r.ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    return tuple(
        topic(topic_id=topic_id, partitions=tuple(epochs), assignment_epochs=tuple(epochs.values()))
        for topic_id, epochs in partitions.items()
    )


def regular_expression(
    group_id: str, expression: str, resolved: ResolvedRegularExpression
) -> Record:
    """The topics that an expression matches."""
    return Record(
        r.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        r.ConsumerGroupRegularExpressionValue(
            topics=tuple(sorted(resolved.topics)),
            version=resolved.version,
            timestamp=resolved.time_ms,
        ),
    )


# --- tombstones -------------------------------------------------------------------------------


def subscription_metadata_tombstone(group_id: str) -> Record:
    """The end of the topics that Kafka 4.0 wrote, which the hash has replaced."""
    return Record(r.ConsumerGroupPartitionMetadataKey(group_id=group_id))


def regular_expression_tombstone(group_id: str, expression: str) -> Record:
    """The end of an expression that no member has any more."""
    return Record(
        r.ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression)
    )


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """The end of a member."""
    return [
        Record(r.ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id)),
        Record(r.ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)),
        Record(r.ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id)),
    ]


def group_tombstones(group: ConsumerGroup, member_ids: Iterable[str]) -> list[Record]:
    """The end of a group with all that it holds."""
    group_id = group.group_id
    current, target, subscriptions = [], [], []
    for member_id in member_ids:
        first, second, third = member_tombstones(group_id, member_id)
        current.append(first)
        target.append(second)
        subscriptions.append(third)
    return [
        *current,
        *target,
        Record(r.ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id)),
        *subscriptions,
        *(regular_expression_tombstone(group_id, each) for each in group.resolved_regexes),
        subscription_metadata_tombstone(group_id),
        Record(r.ConsumerGroupMetadataKey(group_id=group_id)),
    ]


def whole_group(group: ConsumerGroup) -> list[Record]:
    """All records that make a group as it is."""
    group_id = group.group_id
    members = [group.members[member_id] for member_id in group.member_ids]
    return [
        *(member_subscription(group_id, member) for member in members),
        group_epoch(group_id, group.group_epoch, group.metadata_hash),
        *(
            target_assignment(group_id, member.member_id, group.target_of(member.member_id))
            for member in members
        ),
        target_assignment_epoch(group_id, group.assignment_epoch, group.assignment_time_ms),
        *(current_assignment(group_id, member) for member in members),
    ]


# --- the same records, folded ---------------------------------------------------------------------

Groups = TimelineDict[str, ClassicGroup | ConsumerGroup]


class ConsumerGroupReplay:
    """The groups of a shard, as their records change them."""

    def __init__(self, groups: Groups, timeline: Timeline, topic_hash: TopicHash) -> None:
        self._groups = groups
        # A downgrade removes the group at once, and its tombstones are not replayed: the topics of
        # its members stay here, and refresh a later group of its id (convertToClassicGroup).
        self.groups_by_topic: TimelineDict[str, frozenset[str]] = timeline.new_dict()
        self._timeline = timeline
        self._topic_hash = topic_hash

    def replay(self, key: Message, value: Any) -> None:
        """Apply a record; one that is not of a consumer group is ignored.

        Errors:  ProtocolError for records that do not follow from one another.
        """
        step = _STEPS.get(type(key))
        group = None if step is None else self._group(key, is_needed=value is not None)
        if step is None or group is None:
            return
        before = set(group.subscribed_topics) if step in _STEPS_OF_SUBSCRIPTIONS else None
        step(self, group, key, value)
        if before is not None:
            self._update_groups_by_topic(group, before)

    def _update_groups_by_topic(self, group: ConsumerGroup, before: set[str]) -> None:
        """Source: GroupMetadataManager.updateGroupsByTopics."""
        for topic in before.symmetric_difference(group.subscribed_topics):
            ids = self.groups_by_topic.get(topic) or frozenset()
            ids = ids - {group.group_id} if topic in before else ids | {group.group_id}
            if ids:
                self.groups_by_topic[topic] = ids
            else:
                self.groups_by_topic.pop(topic)

    def _group(self, key: Any, *, is_needed: bool) -> ConsumerGroup | None:
        group = self._groups.get(key.group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if group is not None and not group.is_simple:
            raise _damaged(key, f"group {key.group_id} is not a consumer group")
        if not is_needed:
            return None
        # A group that only has offsets has no record of its own, so nothing has ended it.
        new = ConsumerGroup(key.group_id, self._timeline, self._topic_hash)
        self._groups[key.group_id] = new
        return new

    def _epoch(self, group: ConsumerGroup, key: Any, value: Any) -> None:
        if value is not None:
            group.set_group_epoch(value.epoch)
            group.metadata_hash = value.metadata_hash
            return
        if group.members or group.target or group.assignment_epoch != UNASSIGNED_EPOCH:
            raise _damaged(key, f"group {group.group_id} ends before its members")
        self._groups.pop(group.group_id)

    def _subscription_metadata(self, group: ConsumerGroup, key: Any, value: Any) -> None:
        group.has_subscription_metadata = value is not None

    def _member(self, group: ConsumerGroup, key: Any, value: Any) -> None:
        old = group.members.get(key.member_id)
        if value is not None:
            group.update_member(
                replace(
                    old or ConsumerGroupMember(member_id=key.member_id),
                    instance_id=value.instance_id,
                    rack_id=value.rack_id,
                    client_id=value.client_id,
                    client_host=value.client_host,
                    subscribed_topics=frozenset(value.subscribed_topic_names),
                    subscribed_regex=value.subscribed_topic_regex,
                    rebalance_timeout_ms=value.rebalance_timeout_ms,
                    server_assignor=value.server_assignor,
                    classic=value.classic_member_metadata,
                )
            )
        elif old is not None:
            if old.epoch != LEAVE_GROUP_MEMBER_EPOCH or key.member_id in group.target:
                raise _damaged(key, f"member {key.member_id} ends before its assignment")
            group.remove_member(key.member_id)

    def _target_epoch(self, group: ConsumerGroup, key: Any, value: Any) -> None:
        if value is not None:
            group.set_assignment_epoch(value.assignment_epoch, value.assignment_timestamp)
        elif group.target:
            raise _damaged(key, f"the target of {group.group_id} ends before its members'")
        else:
            group.set_assignment_epoch(UNASSIGNED_EPOCH, 0)

    def _target(self, group: ConsumerGroup, key: Any, value: Any) -> None:
        if value is None:
            group.remove_target(key.member_id)
            return
        partitions = {t.topic_id: frozenset(t.partitions) for t in value.topic_partitions}
        order = hash_map_order(partitions, self._topic_hash)
        group.set_target(key.member_id, {topic_id: partitions[topic_id] for topic_id in order})

    def _assignment(self, group: ConsumerGroup, key: Any, value: Any) -> None:
        old = group.members.get(key.member_id)
        if value is not None:
            group.update_member(
                replace(
                    old or ConsumerGroupMember(member_id=key.member_id),
                    epoch=value.member_epoch,
                    previous_epoch=value.previous_member_epoch,
                    state=MemberState.of(value.state),
                    assigned=self._partitions(value.assigned_partitions, value.member_epoch),
                    pending_revocation=self._partitions(
                        value.partitions_pending_revocation, value.member_epoch
                    ),
                )
            )
        elif old is not None:
            left = LEAVE_GROUP_MEMBER_EPOCH
            group.update_member(
                replace(old, epoch=left, previous_epoch=left, assigned={}, pending_revocation={})
            )

    def _partitions(self, topics: Iterable[Any], member_epoch: int) -> PartitionEpochs:
        partitions = {}
        for topic in topics:
            epochs = topic.assignment_epochs
            if epochs is None or len(epochs) != len(topic.partitions):
                # Kafka 4.2 wrote no epochs; that of a static member which has left is -2.
                epochs = [max(member_epoch, 0)] * len(topic.partitions)
            by_index = dict(zip(topic.partitions, epochs, strict=True))
            order = hash_map_order(by_index, lambda index: index)
            partitions[topic.topic_id] = {index: by_index[index] for index in order}
        order_of_topics = hash_map_order(partitions, self._topic_hash)
        return {topic_id: partitions[topic_id] for topic_id in order_of_topics}

    def _regular_expression(self, group: ConsumerGroup, key: Any, value: Any) -> None:
        if value is None:
            group.remove_resolved_regex(key.regular_expression)
            return
        resolved = ResolvedRegularExpression(
            frozenset(value.topics), value.version, value.timestamp
        )
        group.set_resolved_regex(key.regular_expression, resolved)


def _damaged(key: Message, what: str) -> ProtocolError:
    return ProtocolError(type(key).__name__, "", what)


_STEPS: dict[type, Callable[[ConsumerGroupReplay, ConsumerGroup, Any, Any], None]] = {
    r.ConsumerGroupMetadataKey: ConsumerGroupReplay._epoch,
    r.ConsumerGroupPartitionMetadataKey: ConsumerGroupReplay._subscription_metadata,
    r.ConsumerGroupMemberMetadataKey: ConsumerGroupReplay._member,
    r.ConsumerGroupTargetAssignmentMetadataKey: ConsumerGroupReplay._target_epoch,
    r.ConsumerGroupTargetAssignmentMemberKey: ConsumerGroupReplay._target,
    r.ConsumerGroupCurrentMemberAssignmentKey: ConsumerGroupReplay._assignment,
    r.ConsumerGroupRegularExpressionKey: ConsumerGroupReplay._regular_expression,
}
_STEPS_OF_SUBSCRIPTIONS = (ConsumerGroupReplay._member, ConsumerGroupReplay._regular_expression)
