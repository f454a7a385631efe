"""A rebalance of a consumer group, from its cause to a member's assignment (KIP-848).

There is no barrier at which all members stop. Three epochs follow one another instead:

================  ==========================  ====================================================
epoch             becomes                     because
================  ==========================  ====================================================
group epoch       + 1                         a member has joined, left, or subscribes to other
                                              topics; an expression matches other topics; a
                                              subscribed topic has changed
assignment epoch  the group epoch, with a     a heartbeat finds it behind the group epoch
                  new target assignment
member epoch      the assignment epoch        the member has given up what is not in its target
================  ==========================  ====================================================

A heartbeat takes up to three steps, in this order: a new group epoch, a new target assignment for
it, and the next step of the member towards its part of the target (``assignment.Reconciliation``).

**Invariant:** a partition has at most one owner: it is free for a member only when no other one
has it, neither assigned nor to be revoked. So revocation comes before assignment::

    A                                       B
    epoch 1: {0, 1}
                                            joins: group epoch 2, target A {0}, B {1}
                                            epoch 2: {}, UNRELEASED_PARTITIONS, 1 is A's
    epoch 1: {0}, to revoke {1},
    UNREVOKED_PARTITIONS
    reports {0} -> epoch 2: {0}, STABLE
                                            epoch 2: {1}, STABLE

A stays in epoch 1 until it has given up partition 1. It commits its last offsets in that epoch,
and only then B reads from them. If A takes longer than its rebalance timeout in that epoch, it is
removed, as it is after its session timeout; its later requests get UNKNOWN_MEMBER_ID.

The member epoch also fences: a heartbeat of any other epoch is FENCED_MEMBER_EPOCH, but for 0
(the member begins again), and for the previous epoch of a member that reports nothing beyond its
assignment: it has lost a response, and need not give up everything for that.

Source:  KIP-848; GroupMetadataManager.consumerGroupHeartbeat.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from minicluster.coordinator.group.consumer.assignment import (
    Owned,
    Reconciliation,
    names_no_topic,
    new_target_assignment,
    subscribed_topic_ids,
)
from minicluster.coordinator.group.consumer.group import (
    ConsumerGroup,
    ConsumerGroupMember,
    MemberState,
    Partitions,
)
from minicluster.coordinator.group.consumer.leaving import (
    cancel_rebalance_timeout,
    schedule_rebalance_timeout,
)
from minicluster.coordinator.group.consumer.records import (
    current_assignment,
    group_epoch,
    regular_expression,
    regular_expression_tombstone,
    subscription_metadata_tombstone,
)
from minicluster.coordinator.group.consumer.subscription import (
    UNRESOLVED,
    Counts,
    ResolvedRegularExpression,
    add_matches,
    add_names,
    add_one,
    is_homogeneous,
    resolve,
    validate,
)
from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import Result

# When the expressions of a group are matched against the topics again.
#
# The match runs beside the requests, as in Kafka, so its topics come with a later heartbeat.
#
# Source:  GroupMetadataManager.maybeUpdateRegularExpressions, handleRegularExpressionsResult.


REFRESH_MIN_INTERVAL_MS = 10_000
_NEVER = -(1 << 63)


class RegexUpdate(enum.Enum):
    """The change of a member's expression by a request."""

    NO_CHANGE = enum.auto()
    UPDATED = enum.auto()
    UPDATED_AND_RESOLVED = enum.auto()

    @property
    def is_updated(self) -> bool:
        """The member has another expression, or none any more."""
        return self is not RegexUpdate.NO_CHANGE


def update_regular_expression(
    shard: GroupShard,
    group: ConsumerGroup,
    old: ConsumerGroupMember,
    new: ConsumerGroupMember,
    records: list[Any],
    now_ms: int,
    may_describe: Callable[[str], bool],
) -> RegexUpdate:
    """Take over a member's expression, and match all of the group again where it is time.

    Topics that this member may not describe are matched by no expression, until the next time.

    Errors:  INVALID_REGULAR_EXPRESSION.
    """
    before, after = old.subscribed_regex, new.subscribed_regex
    counts = group.subscribed_regexes
    update = RegexUpdate.NO_CHANGE
    is_needed = False
    if before != after:
        update = RegexUpdate.UPDATED
        if before and counts.get(before) == 1:
            records.append(regular_expression_tombstone(group.group_id, before))
        if after and not counts.get(after):
            validate(after)
            is_needed = True
        elif (after and after in group.resolved_regexes) or (before and not after):
            update = RegexUpdate.UPDATED_AND_RESOLVED
    if is_needed or counts:
        expressions = group.regexes_with(before, after)
        _maybe_refresh(shard, group, expressions, now_ms, may_describe, is_needed=is_needed)
    return update


def _maybe_refresh(
    shard: GroupShard,
    group: ConsumerGroup,
    expressions: Sequence[str],
    now_ms: int,
    may_describe: Callable[[str], bool],
    *,
    is_needed: bool,
) -> None:
    key = f"{group.group_id}-regex"
    last = next(iter(group.resolved_regexes.values()), None)
    last_ms = _NEVER if last is None else last.time_ms
    if key in shard.timers or now_ms <= last_ms + REFRESH_MIN_INTERVAL_MS:
        return
    is_needed |= len(expressions) != len(group.resolved_regexes)
    is_needed |= (0 if last is None else last.version) < shard.offset_of_new_topics
    is_needed |= now_ms > last_ms + shard.config.regex_refresh_interval_ms
    if not is_needed or not expressions:
        return
    group_id = group.group_id

    def match(at_ms: int) -> Result:
        names = [topic.name for topic in shard.image.topics if may_describe(topic.name)]
        resolved = resolve(expressions, names, shard.metadata_offset(), at_ms)
        return _take_over(shard, group_id, resolved, at_ms)

    shard.schedule(key, now_ms, match)


def _take_over(
    shard: GroupShard,
    group_id: str,
    resolved: Mapping[str, ResolvedRegularExpression],
    now_ms: int,
) -> Result:
    group = shard.groups.get(group_id)
    if not isinstance(group, ConsumerGroup):
        return Result()
    topics = dict(group.subscribed_topics)
    is_changed = False
    records = []
    for expression, now in resolved.items():
        if not group.subscribed_regexes.get(expression):
            continue
        before = group.resolved_regexes.get(expression, UNRESOLVED)
        if before.topics != now.topics:
            is_changed = True
            add_matches(topics, before.topics, -1)
            add_matches(topics, now.topics, 1)
        records.append(regular_expression(group_id, expression, now))
    metadata_hash = shard.topic_hashes.of_group(topics, shard.image)
    if is_changed or metadata_hash != group.metadata_hash:
        epoch = group.group_epoch + 1
        records.append(group_epoch(group_id, epoch, metadata_hash))
        group.set_metadata_refresh(now_ms + METADATA_REFRESH_INTERVAL_MS, epoch)
    return Result(records=tuple(records))


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
        self.is_homogeneous = group.is_homogeneous

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
            names_no_topic=names_no_topic(group, member),
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
