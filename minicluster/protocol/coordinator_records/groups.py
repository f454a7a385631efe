"""The records of ``__consumer_offsets``: classic groups, consumer groups, committed offsets."""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.uuids import ZERO_UUID

# Classic groups in ``__consumer_offsets``.
#
# Versions: GroupMetadataKey 0, GroupMetadataValue 0-4: 1 has the rebalance timeout, 2 the time of
#           the last change of state, 3 static members (KIP-345), 4 is flexible (KIP-915).


@s.message(api_key=2, kind="coordinator-key", versions="0", flexible="none")
class GroupMetadataKey(s.Message):
    """The key of a classic group."""

    group: str = s.string("0", default="")


@s.message(api_key=2, kind="coordinator-value", versions="0-4", flexible="4+")
class GroupMetadataValue(s.Message):
    """A generation of a classic group with its members and their assignments."""

    class MemberMetadata(s.Struct):
        member_id: str = s.string("0+", default="")
        group_instance_id: str | None = s.string("3+", default=None, nullable="3+", ignorable=True)
        client_id: str = s.string("0+", default="")
        client_host: str = s.string("0+", default="")
        rebalance_timeout: int = s.int32("1+", default=-1, ignorable=True)
        session_timeout: int = s.int32("0+", default=0)
        subscription: bytes = s.bytes_("0+", default=b"")
        assignment: bytes = s.bytes_("0+", default=b"")

    protocol_type: str = s.string("0+", default="")
    generation: int = s.int32("0+", default=0)
    protocol: str | None = s.string("0+", default="", nullable="0+")
    leader: str | None = s.string("0+", default="", nullable="0+")
    current_state_timestamp: int = s.int64("2+", default=-1, ignorable=True)
    members: tuple[MemberMetadata, ...] = s.array("MemberMetadata", "0+", default=())


# Consumer groups in ``__consumer_offsets`` (KIP-848).
#
# Versions: every key and every value 0.


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

    class PartitionMetadata(s.Struct):
        partition: int = s.int32("0+", default=0)
        racks: tuple[str, ...] = s.array("string", "0+", default=())

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

    class ClassicProtocol(s.Struct):
        name: str = s.string("0+", default="")
        metadata: bytes = s.bytes_("0+", default=b"")

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
        "ClassicMemberMetadata", "0+", nullable="0+", tag=0
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


# Committed offsets in ``__consumer_offsets``.
#
# Versions: LegacyOffsetCommitKey 0, LegacyOffsetCommitValue 0-4, OffsetCommitKey 0,
#           OffsetCommitValue 0-4: 1 alone has an expiry, 3 the leader epoch, 4 the topic id.


@s.message(api_key=0, kind="coordinator-key", versions="0", flexible="none")
class LegacyOffsetCommitKey(s.Message):
    """The key of an offset, as Kafka 0.8 wrote it."""

    group: str = s.string("0", default="")
    topic: str = s.string("0", default="")
    partition: int = s.int32("0", default=0)


@s.message(api_key=0, kind="coordinator-value", versions="0", flexible="none")
class LegacyOffsetCommitValue(s.Message):
    """An offset, as Kafka 0.8 wrote it."""

    offset: int = s.int64("0", default=0)
    metadata: str = s.string("0", default="")
    commit_timestamp: int = s.int64("0", default=0)


@s.message(api_key=1, kind="coordinator-key", versions="0", flexible="none")
class OffsetCommitKey(s.Message):
    """The key of a committed offset."""

    group: str = s.string("0", default="")
    topic: str = s.string("0", default="")
    partition: int = s.int32("0", default=0)


@s.message(api_key=1, kind="coordinator-value", versions="0-4", flexible="4+")
class OffsetCommitValue(s.Message):
    """A committed offset; none: it is gone."""

    offset: int = s.int64("0+", default=0)
    leader_epoch: int = s.int32("3+", default=-1, ignorable=True)
    metadata: str = s.string("0+", default="")
    commit_timestamp: int = s.int64("0+", default=0)
    expire_timestamp: int = s.int64("1", default=-1, ignorable=True)
    topic_id: UUID = s.uuid("4+", default=ZERO_UUID, tag=0, ignorable=True)
