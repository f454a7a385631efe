"""What members subscribe to: topics by name, and regular expressions, resolved to topics.

The counts say by how many members, and by how many expressions, each topic is named.

Source:  SubscriptionCount, ConsumerGroup.subscriptionType,
         ModernGroup.computeSubscribedTopicNames; TopicRegexResolver,
         Utils.throwIfRegularExpressionIsInvalid.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from minicluster.coordinator.regular_expressions import compiled
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.metadata.image.metadata_image import MetadataImage


@dataclass(frozen=True, slots=True)
class SubscriptionCount:
    """The subscriptions to one topic."""

    by_name: int = 0
    by_regex: int = 0

    def __bool__(self) -> bool:
        return bool(self.by_name or self.by_regex)


NONE = SubscriptionCount()
Counts = dict[str, SubscriptionCount]


def add_names(counts: Counts, topics: Iterable[str], change: int) -> None:
    """Count the topics of one member, or with -1 count them no more."""
    for topic in topics:
        before = counts.get(topic, NONE)
        _put(counts, topic, SubscriptionCount(max(before.by_name + change, 0), before.by_regex))


def add_matches(counts: Counts, topics: Iterable[str], change: int) -> None:
    """Count the topics that one expression matches, or with -1 count them no more."""
    for topic in topics:
        before = counts.get(topic, NONE)
        _put(counts, topic, SubscriptionCount(before.by_name, max(before.by_regex + change, 0)))


def _put(counts: Counts, topic: str, count: SubscriptionCount) -> None:
    if count:
        counts[topic] = count
    else:
        counts.pop(topic, None)


def add_one(counts: dict[str, int], key: str | None, change: int) -> None:
    """Add to one counter; a counter of zero is left out, and an empty key is none."""
    if not key:
        return
    count = counts.get(key, 0) + change
    if count > 0:
        counts[key] = count
    else:
        counts.pop(key, None)


def is_homogeneous(
    regexes: Mapping[str, int], topics: Mapping[str, SubscriptionCount], members: int
) -> bool:
    """All members subscribe to the same topics: all by name, or all by one expression."""
    if not regexes:
        return all(count.by_name == members for count in topics.values())
    if next(iter(regexes.values())) != members:
        return False
    return all(count == SubscriptionCount(0, 1) for count in topics.values())


# --- regular expressions --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ResolvedRegularExpression:
    """The topics that an expression matches.

    Units:   version is the offset of the metadata, time_ms the time of the match.
    """

    topics: frozenset[str]
    version: int
    time_ms: int


UNRESOLVED = ResolvedRegularExpression(frozenset(), -1, -1)


def validate(expression: str) -> None:
    """Compile an expression.

    Errors:  INVALID_REGULAR_EXPRESSION.
    """
    try:
        compiled(expression)
    except OperationError as refusal:
        raise OperationError(
            refusal.error,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: "
            f"{refusal.message}.",
        ) from refusal


def resolve(
    expressions: Iterable[str], image: MetadataImage, version: int, now_ms: int
) -> dict[str, ResolvedRegularExpression]:
    """The topics of each expression; a topic matches with its whole name."""
    names = [topic.name for topic in image.topics]
    return {
        expression: ResolvedRegularExpression(
            frozenset(name for name in names if compiled(expression).fullmatch(name)),
            version,
            now_ms,
        )
        for expression in expressions
    }
