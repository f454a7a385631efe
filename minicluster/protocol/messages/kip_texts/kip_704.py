"""AlterIsr as the text of KIP-704 has it: version 1 marks an unclean ISR.

The text's older state calls the flag ``is_unclean``; what shipped is ``leader_recovery_state`` of
AlterPartition v1. A leader clears the flag, with an ISR of itself alone or larger, and never sets
it.

Versions: 0-1, all flexible, under the api key 56 that AlterPartition has today.
"""

from __future__ import annotations

from minicluster.protocol import schema as s


@s.message(api_key=56, kind="request", versions="0-1", flexible="0+")
class AlterIsrRequest(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        leader_epoch: int = s.int32("0+", default=0)
        new_isr: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        new_is_unclean: bool = s.boolean("1+", default=False, ignorable=True)
        current_isr_version: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[AlterIsrRequest.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("0+", default=-1)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())


@s.message(api_key=56, kind="response", versions="0-1", flexible="0+")
class AlterIsrResponse(s.Message):
    class PartitionData(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)
        leader_id: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)
        isr: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        is_unclean: bool = s.boolean("1+", default=False, ignorable=True)
        current_isr_version: int = s.int32("0+", default=0)

    class TopicData(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[AlterIsrResponse.PartitionData, ...] = s.array(
            "PartitionData", "0+", default=()
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("0+", default=0)
    topics: tuple[TopicData, ...] = s.array("TopicData", "0+", default=())
