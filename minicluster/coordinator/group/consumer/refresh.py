"""When the expressions of a group are matched against the topics again.

The match runs beside the requests, as in Kafka, so its topics come with a later heartbeat.

Source:  GroupMetadataManager.maybeUpdateRegularExpressions, handleRegularExpressionsResult.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.coordinator.group.consumer.group import ConsumerGroup
from minicluster.coordinator.group.consumer.member import ConsumerGroupMember
from minicluster.coordinator.group.consumer.rebalance import METADATA_REFRESH_INTERVAL_MS
from minicluster.coordinator.group.consumer.records import (
    group_epoch,
    regular_expression,
    regular_expression_tombstone,
)
from minicluster.coordinator.group.consumer.subscription import (
    UNRESOLVED,
    ResolvedRegularExpression,
    add_matches,
    add_one,
    resolve,
    validate,
)
from minicluster.coordinator.group.state.group_shard import GroupShard
from minicluster.coordinator.runtime.shard import Result

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
) -> RegexUpdate:
    """Take over a member's expression, and match all of the group again where it is time.

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
        expressions = dict(counts)
        add_one(expressions, before, -1)
        add_one(expressions, after, 1)
        _maybe_refresh(shard, group, list(expressions), now_ms, is_needed=is_needed)
    return update


def _maybe_refresh(
    shard: GroupShard,
    group: ConsumerGroup,
    expressions: Sequence[str],
    now_ms: int,
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
        resolved = resolve(expressions, shard.image, shard.metadata_offset(), at_ms)
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
