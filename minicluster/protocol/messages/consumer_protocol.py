"""The bytes that classic consumer groups carry in JoinGroup and SyncGroup.

A 16-bit version precedes either.

ConsumerProtocolSubscription: Versions: 0-3, none flexible; Kafka 3.9 has 0-3, Kafka 4.3 has 0-3.
ConsumerProtocolAssignment: Versions: 0-3, none flexible; Kafka 3.9 has 0-3, Kafka 4.3 has 0-3.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(kind="data", versions="0-3", flexible="none")
class ConsumerProtocolSubscription(s.Message):
    """The subscription of a member."""

    class TopicPartition(s.Struct):
        topic: str = s.string("1+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "1+", default=())

    topics: tuple[str, ...] = s.array("string", "0+", default=())
    user_data: bytes | None = s.bytes_("0+", default=None, nullable="0+")
    owned_partitions: tuple[TopicPartition, ...] = s.array(
        "TopicPartition", "1+", default=(), ignorable=True
    )
    generation_id: int = s.int32("2+", default=-1, ignorable=True)
    rack_id: str | None = s.string("3+", default=None, nullable="3+", ignorable=True)


@s.message(kind="data", versions="0-3", flexible="none")
class ConsumerProtocolAssignment(s.Message):
    """The assignment of a member."""

    class TopicPartition(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    assigned_partitions: tuple[TopicPartition, ...] = s.array("TopicPartition", "0+", default=())
    user_data: bytes | None = s.bytes_("0+", default=None, nullable="0+")
