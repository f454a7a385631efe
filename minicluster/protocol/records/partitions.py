"""Records about topics and their partitions.

In a change, null (or -2 for the leader, -1 for the recovery state) means "as before".

Versions: TopicRecord 0, RemoveTopicRecord 0, PartitionRecord 0-2, PartitionChangeRecord 0-2,
          ClearElrRecord 0.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=2, kind="metadata", versions="0", flexible="0+")
class TopicRecord(s.Message):
    """A topic has been made."""

    name: str = s.string("0+", default="", entity="topicName")
    topic_id: UUID = s.uuid("0+", default=ZERO_UUID)


@s.message(api_key=9, kind="metadata", versions="0", flexible="0+")
class RemoveTopicRecord(s.Message):
    """A topic is gone, and its partitions with it."""

    topic_id: UUID = s.uuid("0+", default=ZERO_UUID)


@s.message(api_key=3, kind="metadata", versions="0-2", flexible="0+")
class PartitionRecord(s.Message):
    """A partition as a whole."""

    partition_id: int = s.int32("0+", default=-1)
    topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
    replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
    isr: tuple[int, ...] = s.array("int32", "0+", default=())
    removing_replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
    adding_replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
    leader: int = s.int32("0+", default=-1, entity="brokerId")
    leader_recovery_state: int = s.int8("0+", default=0, tag=0)
    leader_epoch: int = s.int32("0+", default=-1)
    partition_epoch: int = s.int32("0+", default=-1)
    directories: tuple[UUID, ...] = s.array("uuid", "1+", default=())
    eligible_leader_replicas: tuple[int, ...] | None = s.array(
        "int32", "2+", default=None, nullable="2+", tag=1, entity="brokerId"
    )
    last_known_elr: tuple[int, ...] | None = s.array(
        "int32", "2+", default=None, nullable="2+", tag=2, entity="brokerId"
    )


@s.message(api_key=5, kind="metadata", versions="0-2", flexible="0+")
class PartitionChangeRecord(s.Message):
    """The changed fields of a partition."""

    partition_id: int = s.int32("0+", default=-1)
    topic_id: UUID = s.uuid("0+", default=ZERO_UUID)
    isr: tuple[int, ...] | None = s.array(
        "int32", "0+", default=None, nullable="0+", tag=0, entity="brokerId"
    )
    leader: int = s.int32("0+", default=-2, tag=1, entity="brokerId")
    replicas: tuple[int, ...] | None = s.array(
        "int32", "0+", default=None, nullable="0+", tag=2, entity="brokerId"
    )
    removing_replicas: tuple[int, ...] | None = s.array(
        "int32", "0+", default=None, nullable="0+", tag=3, entity="brokerId"
    )
    adding_replicas: tuple[int, ...] | None = s.array(
        "int32", "0+", default=None, nullable="0+", tag=4, entity="brokerId"
    )
    leader_recovery_state: int = s.int8("0+", default=-1, tag=5)
    directories: tuple[UUID, ...] | None = s.array("uuid", "1+", default=None, nullable="1+", tag=8)
    eligible_leader_replicas: tuple[int, ...] | None = s.array(
        "int32", "2+", default=None, nullable="2+", tag=6, entity="brokerId"
    )
    last_known_elr: tuple[int, ...] | None = s.array(
        "int32", "2+", default=None, nullable="2+", tag=7, entity="brokerId"
    )


@s.message(api_key=28, kind="metadata", versions="0", flexible="0+")
class ClearElrRecord(s.Message):
    """A topic, or every topic, has forgotten its eligible leader replicas (KIP-966)."""

    topic_name: str = s.string("0+", default="", entity="topicName")
