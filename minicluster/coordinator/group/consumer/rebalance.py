"""The three steps of every rebalance: group epoch, target assignment, a member's assignment.

Source:  GroupMetadataManager.updateSubscriptionMetadata, maybeUpdateTargetAssignment,
         maybeReconcile.
"""

from __future__ import annotations

from typing import Any

from minicluster.coordinator.group.consumer.current_assignment import Owned, Reconciliation
from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.leaving import (
    cancel_rebalance_timeout,
    schedule_rebalance_timeout,
)
from minicluster.coordinator.group.consumer.member import (
    ConsumerGroupMember,
    MemberState,
    Partitions,
)
from minicluster.coordinator.group.consumer.records import (
    current_assignment,
    group_epoch,
    subscription_metadata_tombstone,
)
from minicluster.coordinator.group.consumer.subscription import (
    Counts,
    add_matches,
    add_names,
    add_one,
    is_homogeneous,
)
from minicluster.coordinator.group.consumer.target_assignment import (
    new_target_assignment,
    subscribed_topic_ids,
)
from minicluster.coordinator.group.state.group_shard import GroupShard

METADATA_REFRESH_INTERVAL_MS = (1 << 31) - 1


class Rebalance:
    """One member's request on its way through its group, with the records that it makes."""

    def __init__(
        self,
        shard: GroupShard,
        group: ConsumerGroup,
        old: ConsumerGroupMember,
        new: ConsumerGroupMember,
        records: list[Any],
    ) -> None:
        self.shard = shard
        self.group = group
        self.old = old
        self.new = new
        self.records = records
        self.epoch = group.group_epoch
        self.is_homogeneous = is_homogeneous(
            group.subscribed_regexes, group.subscribed_topics, len(group.members)
        )

    def update_group_epoch(self, now_ms: int, *, is_raised: bool) -> None:
        """Raise the group epoch, or do so if the topics are not any more what they were.

        Source:  GroupMetadataManager.updateSubscriptionMetadata.
        """
        shard, group, old, new = self.shard, self.group, self.old, self.new
        regexes = dict(group.subscribed_regexes)
        add_one(regexes, old.subscribed_regex, -1)
        add_one(regexes, new.subscribed_regex, 1)
        topics = self._subscribed_topics()
        metadata_hash = shard.topic_hashes.of_group(topics, shard.image)
        members = len(group.members)
        members += new.member_id not in group.members and (
            new.instance_id not in group.static_members
        )
        self.is_homogeneous = is_homogeneous(regexes, topics, members)
        if is_raised or metadata_hash != group.metadata_hash:
            self.epoch += 1
            self.records.append(group_epoch(group.group_id, self.epoch, metadata_hash))
        group.set_metadata_refresh(now_ms + METADATA_REFRESH_INTERVAL_MS, self.epoch)
        if group.has_subscription_metadata:
            self.records.append(subscription_metadata_tombstone(group.group_id))

    def _subscribed_topics(self) -> Counts:
        """The topics with this member changed.

        Source:  ConsumerGroup.computeSubscribedTopicNames.
        """
        group, old, new = self.group, self.old, self.new
        counts = dict(group.subscribed_topics)
        add_names(counts, old.subscribed_topics, -1)
        add_names(counts, new.subscribed_topics, 1)
        expression = old.subscribed_regex
        if expression and expression != new.subscribed_regex:
            resolved = group.resolved_regexes.get(expression)
            if resolved is not None and group.subscribed_regexes.get(expression) == 1:
                add_matches(counts, resolved.topics, -1)
        return counts

    def update_target_assignment(self, now_ms: int) -> tuple[int, Partitions]:
        """The epoch of the target assignment and this member's; a new one for a newer group epoch.

        Source:  GroupMetadataManager.maybeUpdateTargetAssignment.
        """
        group = self.group
        interval_ms = self.shard.consumer_config(group.group_id).assignment_interval_ms
        made_ms = group.assignment_time_ms
        is_too_soon = bool(made_ms and interval_ms) and now_ms < made_ms + interval_ms
        if group.assignment_epoch >= self.epoch or is_too_soon:
            return group.assignment_epoch, group.target_of_instance(self.new)
        partitions = new_target_assignment(
            self.shard,
            group,
            self.epoch,
            self.old,
            self.new,
            self.records,
            now_ms,
            is_homogeneous=self.is_homogeneous,
        )
        return self.epoch, partitions

    def reconcile(
        self,
        target_epoch: int,
        target: Partitions,
        owned: Owned,
        now_ms: int,
        *,
        has_subscription_changed: bool,
    ) -> None:
        """Take the member a step towards its target assignment.

        Source:  GroupMetadataManager.maybeReconcile.
        """
        shard, group, member = self.shard, self.group, self.new
        if not has_subscription_changed and member.is_reconciled_to(target_epoch):
            return
        self.new = Reconciliation(
            member=member,
            target_epoch=target_epoch,
            target=target,
            subscribed=frozenset(subscribed_topic_ids(group, member, shard.image)),
            has_subscription_changed=has_subscription_changed,
            owned=owned,
            partition_epoch=group.current_partition_epoch,
            topic_hash=shard.topic_hash,
        ).next_member()
        if self.new == member:
            return
        self.records.append(current_assignment(group.group_id, self.new))
        if self.new.uses_classic_protocol:
            return  # its joins and syncs have time-outs instead
        if self.new.state is MemberState.UNREVOKED_PARTITIONS:
            schedule_rebalance_timeout(shard, group.group_id, self.new, now_ms)
        else:
            cancel_rebalance_timeout(shard, group.group_id, self.new.member_id)
