"""StopReplica (api key 5): a ZooKeeper controller stops or deletes replicas on a broker.

Gone in Kafka 4.0.

Versions: 0-4, flexible from 2.
    1: broker_epoch, topics, name, partition_indexes; without ungrouped_partitions, topic_name,
        partition_index.
    2: flexible.
    3: topic_states, topic_name, partition_states, partition_index, …; without
        delete_partitions, topics, name, partition_indexes.
    4: is_kraft_controller.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=5, kind="request", versions="0-4", flexible="2+")
class StopReplicaRequest(s.Message):
    class StopReplicaPartitionV0(s.Struct):
        topic_name: str = s.string("0", default="", entity="topicName")
        partition_index: int = s.int32("0", default=0)

    class StopReplicaTopicV1(s.Struct):
        name: str = s.string("1-2", default="", entity="topicName")
        partition_indexes: tuple[int, ...] = s.array("int32", "1-2", default=())

    class StopReplicaPartitionState(s.Struct):
        partition_index: int = s.int32("3+", default=0)
        leader_epoch: int = s.int32("3+", default=-1)
        delete_partition: bool = s.boolean("3+", default=False)

    class StopReplicaTopicState(s.Struct):
        topic_name: str = s.string("3+", default="", entity="topicName")
        partition_states: tuple[StopReplicaRequest.StopReplicaPartitionState, ...] = s.array(
            "StopReplicaPartitionState", "3+", default=()
        )

    controller_id: int = s.int32("0+", default=0, entity="brokerId")
    is_kraft_controller: bool = s.boolean("4+", default=False, json="isKRaftController")
    controller_epoch: int = s.int32("0+", default=0)
    broker_epoch: int = s.int64("1+", default=-1, ignorable=True)
    delete_partitions: bool = s.boolean("0-2", default=False)
    ungrouped_partitions: tuple[StopReplicaPartitionV0, ...] = s.array(
        "StopReplicaPartitionV0", "0", default=()
    )
    topics: tuple[StopReplicaTopicV1, ...] = s.array("StopReplicaTopicV1", "1-2", default=())
    topic_states: tuple[StopReplicaTopicState, ...] = s.array(
        "StopReplicaTopicState", "3+", default=()
    )


@s.message(api_key=5, kind="response", versions="0-4", flexible="2+")
class StopReplicaResponse(s.Message):
    class StopReplicaPartitionError(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    error_code: int = s.int16("0+", default=0)
    partition_errors: tuple[StopReplicaPartitionError, ...] = s.array(
        "StopReplicaPartitionError", "0+", default=()
    )


API = api(
    StopReplicaRequest,
    StopReplicaResponse,
    kafka_3_9="0-4",
    kafka_4_3="none",
    error=ErrorShape(
        {
            "partition_errors": Each(
                (
                    "ungrouped_partitions",
                    "topics.partition_indexes",
                    "topic_states.partition_states",
                ),
                plain="partition_index",
                copies={"topic_name": "name"},
            )
        }
    ),
)
