"""Consumer groups in ``__consumer_offsets`` (KIP-848).

Versions: every key and every value 0.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s


@s.message(api_key=3, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupMetadataKey(s.Message):
    """The key of a consumer group."""

    group_id: str = s.string("0", default="")


@s.message(api_key=3, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupMetadataValue(s.Message):
    """The group epoch and the hash of the topics that the group subscribes to."""

    epoch: int = s.int32("0+", default=0)
    metadata_hash: int = s.int64("0+", default=0, tag=0)


@s.message(api_key=4, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupPartitionMetadataKey(s.Message):
    """The key of a group's topics, up to Kafka 4.0."""

    group_id: str = s.string("0", default="")


@s.message(api_key=4, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupPartitionMetadataValue(s.Message):
    """The topics of a group with their partitions, up to Kafka 4.0."""

    @s.struct
    class PartitionMetadata(s.Struct):
        partition: int = s.int32("0+", default=0)
        racks: tuple[str, ...] = s.array("string", "0+", default=())

    @s.struct
    class TopicMetadata(s.Struct):
        topic_id: UUID = s.uuid("0+")
        topic_name: str = s.string("0+", default="")
        num_partitions: int = s.int32("0+", default=0)
        partition_metadata: tuple[ConsumerGroupPartitionMetadataValue.PartitionMetadata, ...] = (
            s.array("PartitionMetadata", "0+", default=())
        )

    topics: tuple[TopicMetadata, ...] = s.array("TopicMetadata", "0+", default=())


@s.message(api_key=5, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupMemberMetadataKey(s.Message):
    """The key of a member."""

    group_id: str = s.string("0", default="")
    member_id: str = s.string("0", default="")


@s.message(api_key=5, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupMemberMetadataValue(s.Message):
    """A member and its subscription."""

    @s.struct
    class ClassicProtocol(s.Struct):
        name: str = s.string("0+", default="")
        metadata: bytes = s.bytes_("0+", default=b"")

    @s.struct
    class ClassicMemberMetadata(s.Struct):
        session_timeout_ms: int = s.int32("0+", default=0)
        supported_protocols: tuple[ConsumerGroupMemberMetadataValue.ClassicProtocol, ...] = s.array(
            "ClassicProtocol", "0+", default=()
        )

    instance_id: str | None = s.string("0+", default="", nullable="0+")
    rack_id: str | None = s.string("0+", default="", nullable="0+")
    client_id: str = s.string("0+", default="")
    client_host: str = s.string("0+", default="")
    subscribed_topic_names: tuple[str, ...] = s.array("string", "0+", default=())
    subscribed_topic_regex: str | None = s.string("0+", default="", nullable="0+")
    rebalance_timeout_ms: int = s.int32("0+", default=-1)
    server_assignor: str | None = s.string("0+", default="", nullable="0+")
    classic_member_metadata: ClassicMemberMetadata | None = s.nested(
        "ClassicMemberMetadata", "0+", default=None, nullable="0+", tag=0
    )


@s.message(api_key=6, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMetadataKey(s.Message):
    """The key of the epoch of the target assignment."""

    group_id: str = s.string("0", default="")


@s.message(api_key=6, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMetadataValue(s.Message):
    """The group epoch that the target assignment was made for."""

    assignment_epoch: int = s.int32("0+", default=0)
    assignment_timestamp: int = s.int64("0+", default=0, tag=0, ignorable=True)


@s.message(api_key=7, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupTargetAssignmentMemberKey(s.Message):
    """The key of a member's target assignment."""

    group_id: str = s.string("0", default="")
    member_id: str = s.string("0", default="")


@s.message(api_key=7, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupTargetAssignmentMemberValue(s.Message):
    """The partitions that a member is to have."""

    @s.struct
    class TopicPartition(s.Struct):
        topic_id: UUID = s.uuid("0+")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    topic_partitions: tuple[TopicPartition, ...] = s.array("TopicPartition", "0+", default=())


@s.message(api_key=8, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupCurrentMemberAssignmentKey(s.Message):
    """The key of a member's current assignment."""

    group_id: str = s.string("0", default="")
    member_id: str = s.string("0", default="")


@s.message(api_key=8, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupCurrentMemberAssignmentValue(s.Message):
    """The partitions that a member has, and those that it still has to give up."""

    @s.struct
    class TopicPartitions(s.Struct):
        topic_id: UUID = s.uuid("0+")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())
        assignment_epochs: tuple[int, ...] | None = s.array(
            "int32", "0+", default=None, nullable="0+", tag=0
        )

    member_epoch: int = s.int32("0+", default=0)
    previous_member_epoch: int = s.int32("0+", default=0)
    state: int = s.int8("0+", default=0)
    assigned_partitions: tuple[TopicPartitions, ...] = s.array("TopicPartitions", "0+", default=())
    partitions_pending_revocation: tuple[TopicPartitions, ...] = s.array(
        "TopicPartitions", "0+", default=()
    )


@s.message(api_key=16, kind="coordinator-key", versions="0", flexible="none")
class ConsumerGroupRegularExpressionKey(s.Message):
    """The key of a resolved regular expression."""

    group_id: str = s.string("0", default="")
    regular_expression: str = s.string("0", default="")


@s.message(api_key=16, kind="coordinator-value", versions="0", flexible="0+")
class ConsumerGroupRegularExpressionValue(s.Message):
    """The topics that a regular expression matches."""

    topics: tuple[str, ...] = s.array("string", "0+", default=())
    version: int = s.int64("0+", default=0)
    timestamp: int = s.int64("0+", default=0)
