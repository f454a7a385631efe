"""The bytes in which members of the classic protocol subscribe, and get their assignment.

Source:  ConsumerProtocol; Utils.toConsumerProtocolAssignment, toTopicPartitionMap,
         toTopicPartitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from minicluster.coordinator.group.consumer.group import Partitions, TopicHash
from minicluster.java_order import hash_map_order
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.codec import decode_prefix, encode
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.messages import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from minicluster.values import Value

_LATEST = 3


class OwnedTopic(Value):
    """The partitions that a member reports of a topic."""

    topic_id: UUID
    partitions: tuple[int, ...]


def _version(metadata: bytes, kind: str) -> int:
    if len(metadata) < 2:
        raise ProtocolError(kind, "version", "too short", offset=0)
    version = int.from_bytes(metadata[:2], "big", signed=True)
    if version < 0:
        raise ProtocolError(kind, "version", f"{version} is not a version", offset=0)
    # A newer version only adds fields, so it is read as the newest that is known.
    return min(version, _LATEST)


def subscription_of(metadata: bytes) -> ConsumerProtocolSubscription:
    """The subscription of a member.

    Errors:  ProtocolError.
    """
    version = _version(metadata, "ConsumerProtocolSubscription")
    return decode_prefix(ConsumerProtocolSubscription, metadata, version, 2)[0]


def assignment_of(data: bytes) -> ConsumerProtocolAssignment:
    """The assignment of a member.

    Errors:  ProtocolError.
    """
    version = _version(data, "ConsumerProtocolAssignment")
    return decode_prefix(ConsumerProtocolAssignment, data, version, 2)[0]


def assignment_bytes(
    partitions: Mapping[UUID, Iterable[int]], metadata: bytes, image: MetadataImage
) -> bytes:
    """An assignment in the version of a member's own metadata.

    Errors:  ProtocolError.
    """
    version = _version(metadata, "ConsumerProtocolSubscription")
    topics = ((image.topics.get(topic_id), indexes) for topic_id, indexes in partitions.items())
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=tuple(
            ConsumerProtocolAssignment.TopicPartition(
                topic=topic.name, partitions=tuple(sorted(indexes))
            )
            for topic, indexes in topics
            if topic is not None
        )
    )
    return version.to_bytes(2, "big") + encode(assignment, version)


def partitions_by_id(
    assignment: ConsumerProtocolAssignment, image: MetadataImage, topic_hash: TopicHash
) -> Partitions:
    """The partitions of an assignment whose topics exist."""
    indexes = {
        topic.id: frozenset(item.partitions)
        for item in assignment.assigned_partitions
        if (topic := image.topics.named(item.topic)) is not None
    }
    return {topic_id: indexes[topic_id] for topic_id in hash_map_order(indexes, topic_hash)}


def owned_topics(topics: Iterable[Any], image: MetadataImage) -> list[OwnedTopic]:
    """The owned partitions of a subscription whose topics exist."""
    return [
        OwnedTopic(topic.id, tuple(item.partitions))
        for item in topics
        if (topic := image.topics.named(item.topic)) is not None
    ]
