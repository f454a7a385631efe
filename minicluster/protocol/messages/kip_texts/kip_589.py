"""AlterReplicaState of KIP-589: a broker reports offline replicas to the controller.

It never shipped; KIP-858 reports offline directories in BrokerHeartbeat instead. Error codes are
32 bits wide here, unlike anywhere else.

Versions: 0, flexible. Left out: the text's second names (NewState, Reason) for EventType and
EventReason.
"""

from __future__ import annotations

from minicluster.protocol import schema as s

EVENT_OFFLINE = 1
"""The only event type that the text defines."""

UNKNOWN_EVENT_TYPE = 1 << 16
"""The error of any other event type. The text gives it no number; this one is ours, and only the
32 bits of this response can hold it, so it is not a code of any release."""


@s.message(kind="request", versions="0", flexible="0+")
class AlterReplicaStateRequest(s.Message):
    class PartitionData(s.Struct):
        partition_id: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[AlterReplicaStateRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=0)
    event_type: int = s.int8("0+", default=EVENT_OFFLINE)
    event_reason: str = s.string("0+", default="")
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())


@s.message(kind="response", versions="0", flexible="0+")
class AlterReplicaStateResponse(s.Message):
    class PartitionData(s.Struct):
        partition_id: int = s.int32("0+", default=0)
        error_code: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[AlterReplicaStateResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    error_code: int = s.int32("0+", default=0)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())
