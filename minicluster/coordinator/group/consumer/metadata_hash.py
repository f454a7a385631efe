"""The hash of the topics that a group subscribes to: another hash is another rebalance.

It covers ids, partitions and the racks of replicas, so a topic that grows or moves changes it. It
is written to the log, so the bytes are Kafka's: XXH3 of 64 bits.

Source:  Utils.computeGroupHash, computeTopicHash; hash4j.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

import xxhash

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.topics import TopicImage

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
