"""The subscriptions of members: topics by name, and regular expressions, resolved to topics.

The counts say by how many members, and by how many expressions, each topic is named.

Source:  SubscriptionCount, ConsumerGroup.subscriptionType,
         ModernGroup.computeSubscribedTopicNames; TopicRegexResolver,
         Utils.throwIfRegularExpressionIsInvalid.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence

import xxhash

from minicluster.coordinator.regular_expressions import compiled
from minicluster.coordinator.runtime.shard import OperationError
from minicluster.java_order import hash_map_order, string_hash
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.topics import TopicImage
from minicluster.values import Value


class SubscriptionCount(Value):
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


class ResolvedRegularExpression(Value):
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
    except OperationError as rejection:
        raise OperationError(
            rejection.error,
            f"SubscribedTopicRegex `{expression}` is not a valid regular expression: "
            f"{rejection.message}.",
        ) from rejection


def resolve(
    expressions: Sequence[str], names: Sequence[str], version: int, now_ms: int
) -> dict[str, ResolvedRegularExpression]:
    """Which of the topics each expression matches, with its whole name.

    Source:  TopicRegexResolver.resolveRegularExpressions; the order is that of its map.
    """
    return {
        expression: ResolvedRegularExpression(
            frozenset(name for name in names if compiled(expression).fullmatch(name)),
            version,
            now_ms,
        )
        for expression in hash_map_order(expressions, string_hash, len(expressions))
    }


# The hash of the topics that a group subscribes to: another hash is another rebalance.
#
# It covers ids, partitions and the racks of replicas, so a topic that grows or moves changes it. It
# is written to the log, so the bytes are Kafka's: XXH3 of 64 bits.
#
# Source:  Utils.computeGroupHash, computeTopicHash; hash4j.


_MAGIC = b"\0"


class TopicHashes:
    """The hashes of topics, computed again once a topic has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[TopicImage, int]] = {}

    def of_group(self, topics: Iterable[str], image: MetadataImage) -> int:
        """The hash of those topics that exist; 0 where none does.

        Units:   a signed number of 64 bits.
        """
        hashes = [
            self._of_topic(topic, image)
            for name in sorted(topics)
            if (topic := image.topics.named(name)) is not None
        ]
        if not hashes:
            return 0
        return _digest(struct.pack(f"<{len(hashes)}q", *hashes))

    def _of_topic(self, topic: TopicImage, image: MetadataImage) -> int:
        known = self._known.get(topic.name)
        if known is not None and known[0] is topic:
            return known[1]
        value = topic_hash(topic, image)
        self._known[topic.name] = topic, value
        return value


def topic_hash(topic: TopicImage, image: MetadataImage) -> int:
    """The hash of one topic."""
    high, low = topic.id.int >> 64, topic.id.int & (1 << 64) - 1
    count = len(topic.partitions)
    parts = [_MAGIC, struct.pack("<QQ", high, low), _string(topic.name), struct.pack("<i", count)]
    brokers = image.cluster.brokers
    for index in range(count):
        parts.append(struct.pack("<i", index))
        partition = topic.partitions.get(index)
        replicas = () if partition is None else partition.replicas
        registered = (brokers.get(replica) for replica in replicas)
        racks = sorted(b.rack for b in registered if b is not None and b.rack is not None)
        parts += [struct.pack("<i", len(rack)) + _string(rack) for rack in racks]
    return _digest(b"".join(parts))


def _string(text: str) -> bytes:
    """The code units of a string, then their number."""
    units = text.encode("utf-16-le")
    return units + struct.pack("<i", len(units) // 2)


def _digest(data: bytes) -> int:
    unsigned = int(xxhash.xxh3_64_intdigest(data))
    return unsigned - (1 << 64) if unsigned >= 1 << 63 else unsigned
