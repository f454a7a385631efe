"""The records of a consumer group in ``__consumer_offsets``.

Source:  GroupCoordinatorRecordHelpers, ConsumerGroup.createGroupTombstoneRecords,
         createConsumerGroupRecords.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.member import (
    ConsumerGroupMember,
    PartitionEpochs,
    Partitions,
)
from minicluster.coordinator.group.consumer.regular_expressions import ResolvedRegularExpression
from minicluster.java_order import java_set_order
from minicluster.protocol.coordinator_records import consumer_group as r
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord as Record


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
