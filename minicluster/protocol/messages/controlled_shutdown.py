"""ControlledShutdown (api key 7).

A broker requests a ZooKeeper controller to move its leaders away.

Gone in Kafka 4.0; KRaft brokers request it by BrokerHeartbeat.

Versions: 0-3, flexible from 3.
    1: fields as in version 0.
    2: broker_epoch.
    3: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=7, kind="request", versions="0-3", flexible="3+")
class ControlledShutdownRequest(s.Message):
    broker_id: int = s.int32("0+", default=0, entity="brokerId")
    broker_epoch: int = s.int64("2+", default=-1, ignorable=True)


@s.message(api_key=7, kind="response", versions="0-3", flexible="3+")
class ControlledShutdownResponse(s.Message):
    class RemainingPartition(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partition_index: int = s.int32("0+", default=0)

    error_code: int = s.int16("0+", default=0)
    remaining_partitions: tuple[RemainingPartition, ...] = s.array(
        "RemainingPartition", "0+", default=()
    )


API = api(
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    kafka_3_9="0-3",
    kafka_4_3="none",
)
