"""The fold of a consumer group's records.

Tombstones of what is not there are ignored: compaction may have removed what they ended.

Source:  GroupMetadataManager.replay, getOrMaybeCreatePersistedConsumerGroup.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from minicluster.coordinator.group.classic.group import ClassicGroup
from minicluster.coordinator.group.consumer.group import UNASSIGNED_EPOCH, ConsumerGroup, TopicHash
from minicluster.coordinator.group.consumer.member import (
    LEAVE_GROUP_MEMBER_EPOCH,
    ConsumerGroupMember,
    MemberState,
    PartitionEpochs,
)
from minicluster.coordinator.group.consumer.regular_expressions import ResolvedRegularExpression
from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.java_order import hash_map_order
from minicluster.protocol.coordinator_records import consumer_group as r
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.schema import Message

Groups = TimelineDict[str, ClassicGroup | ConsumerGroup]


class ConsumerGroupReplay:
    """The groups of a shard, as their records change them."""

    def __init__(self, groups: Groups, timeline: Timeline, topic_hash: TopicHash) -> None:
        self._groups = groups
        self._timeline = timeline
        self._topic_hash = topic_hash

    def replay(self, key: Message, value: Any) -> None:
        """Apply a record; one that is not of a consumer group is ignored.

        Errors:  ProtocolError for records that do not follow from one another.
        """
        step = _STEPS.get(type(key))
        group = None if step is None else self._group(key, is_needed=value is not None)
        if step is not None and group is not None:
            step(self, group, key, value)

    def _group(self, key: Any, *, is_needed: bool) -> ConsumerGroup | None:
        found = self._groups.get(key.group_id)
        if isinstance(found, ConsumerGroup):
            return found
        if found is not None and not found.is_simple:
            raise _damaged(key, f"group {key.group_id} is not a consumer group")
        if not is_needed:
            return None
        # A group that only has offsets has no record of its own, so nothing has ended it.
        made = ConsumerGroup(key.group_id, self._timeline, self._topic_hash)
        self._groups[key.group_id] = made
        return made

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
