"""LeaderAndIsr (api key 4): a ZooKeeper controller makes a broker leader or follower of partitions.

Gone in Kafka 4.0. KIP-497 sent the result of an ISR change by this request; KIP-704
(v6) adds the leader recovery state.

Versions: 0-7, flexible from 4.
    1: is_new.
    2: broker_epoch, topic_states, partition_states; without ungrouped_partition_states.
    3: adding_replicas, removing_replicas.
    4: flexible.
    5: type, topic_id; response topics, topic_id; response without topic_name.
    6: leader_recovery_state.
    7: is_kraft_controller.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=4, kind="request", versions="0-7", flexible="4+")
class LeaderAndIsrRequest(s.Message):
    class LeaderAndIsrPartitionState(s.Struct):
        topic_name: str = s.string("0-1", default="", ignorable=True, entity="topicName")
        partition_index: int = s.int32("0+", default=0)
        controller_epoch: int = s.int32("0+", default=0)
        leader: int = s.int32("0+", default=0, entity="brokerId")
        leader_epoch: int = s.int32("0+", default=0)
        isr: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        partition_epoch: int = s.int32("0+", default=0)
        replicas: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")
        adding_replicas: tuple[int, ...] = s.array(
            "int32", "3+", default=(), ignorable=True, entity="brokerId"
        )
        removing_replicas: tuple[int, ...] = s.array(
            "int32", "3+", default=(), ignorable=True, entity="brokerId"
        )
        is_new: bool = s.boolean("1+", default=False, ignorable=True)
        leader_recovery_state: int = s.int8("6+", default=0)

    class LeaderAndIsrTopicState(s.Struct):
        topic_name: str = s.string("2+", default="", entity="topicName")
        topic_id: UUID = s.uuid("5+", default=ZERO_UUID, ignorable=True)
        partition_states: tuple[LeaderAndIsrRequest.LeaderAndIsrPartitionState, ...] = s.array(
            "LeaderAndIsrPartitionState", "2+", default=()
        )

    class LeaderAndIsrLiveLeader(s.Struct):
        broker_id: int = s.int32("0+", default=0, entity="brokerId")
        host_name: str = s.string("0+", default="")
        port: int = s.int32("0+", default=0)

    controller_id: int = s.int32("0+", default=0, entity="brokerId")
    is_kraft_controller: bool = s.boolean("7+", default=False, json="isKRaftController")
    controller_epoch: int = s.int32("0+", default=0)
    broker_epoch: int = s.int64("2+", default=-1, ignorable=True)
    type: int = s.int8("5+", default=0)
    ungrouped_partition_states: tuple[LeaderAndIsrPartitionState, ...] = s.array(
        "LeaderAndIsrPartitionState", "0-1", default=()
    )
    topic_states: tuple[LeaderAndIsrTopicState, ...] = s.array(
        "LeaderAndIsrTopicState", "2+", default=()
    )
    live_leaders: tuple[LeaderAndIsrLiveLeader, ...] = s.array(
        "LeaderAndIsrLiveLeader", "0+", default=()
    )


@s.message(api_key=4, kind="response", versions="0-7", flexible="4+")
class LeaderAndIsrResponse(s.Message):
    class LeaderAndIsrPartitionError(s.Struct):
        topic_name: str = s.string("0-4", default="", ignorable=True, entity="topicName")
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class LeaderAndIsrTopicError(s.Struct):
        topic_id: UUID = s.uuid("5+", default=ZERO_UUID)
        partition_errors: tuple[LeaderAndIsrResponse.LeaderAndIsrPartitionError, ...] = s.array(
            "LeaderAndIsrPartitionError", "5+", default=()
        )

    error_code: int = s.int16("0+", default=0)
    partition_errors: tuple[LeaderAndIsrPartitionError, ...] = s.array(
        "LeaderAndIsrPartitionError", "0-4", default=()
    )
    topics: tuple[LeaderAndIsrTopicError, ...] = s.array("LeaderAndIsrTopicError", "5+", default=())


API = api(
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    kafka_3_9="0-7",
    kafka_4_3="none",
    error=ErrorShape(
        {
            "partition_errors": Each(
                ("ungrouped_partition_states", "topic_states.partition_states")
            ),
            "topics": Each(
                ("topic_states",), inside={"partition_errors": Each(("partition_states",))}
            ),
        }
    ),
)
