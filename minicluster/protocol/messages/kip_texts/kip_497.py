"""AlterIsr as KIP-497 specifies it: a change of an ISR, from a leader to the controller.

The controller responds on receipt and writes afterwards, so the response carries no
outcome; that reaches the leader as a LeaderAndIsr. The text has neither an api key nor flexible
versions. INVALID_ISR_VERSION of the text has the code of INVALID_UPDATE_VERSION.

Versions: 0, not flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(kind="request", versions="0", flexible="none")
class AlterIsrRequest(s.Message):
    class PartitionData(s.Struct):
        partition_id: int = s.int32("0+", default=0)
        leader: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)
        isr: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        current_zk_version: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[AlterIsrRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=0)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())


@s.message(kind="response", versions="0", flexible="none")
class AlterIsrResponse(s.Message):
    class PartitionData(s.Struct):
        partition_id: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class TopicData(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[AlterIsrResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    error_code: int = s.int16("0+", default=0)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())
