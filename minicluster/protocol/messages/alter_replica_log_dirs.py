"""AlterReplicaLogDirs (api key 34).

A client moves replicas between the log directories of a broker.

Versions: 0-2, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, partition_indexes


@s.message(api_key=34, kind="request", versions="0-2", flexible="2+")
class AlterReplicaLogDirsRequest(s.Message):
    class AlterReplicaLogDirTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    class AlterReplicaLogDir(s.Struct):
        path: str = s.string("0+", default="")
        topics: tuple[AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic, ...] = s.array(
            "AlterReplicaLogDirTopic", "0+", default=()
        )

    dirs: tuple[AlterReplicaLogDir, ...] = s.array("AlterReplicaLogDir", "0+", default=())


@s.message(api_key=34, kind="response", versions="0-2", flexible="2+")
class AlterReplicaLogDirsResponse(s.Message):
    class AlterReplicaLogDirPartitionResult(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        error_code: int = s.int16("0+", default=0)

    class AlterReplicaLogDirTopicResult(s.Struct):
        topic_name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult, ...] = (
            s.array("AlterReplicaLogDirPartitionResult", "0+", default=())
        )

    throttle_time_ms: int = s.int32("0+", default=0)
    results: tuple[AlterReplicaLogDirTopicResult, ...] = s.array(
        "AlterReplicaLogDirTopicResult", "0+", default=()
    )


API = api(
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    kafka_3_9="0-2",
    kafka_4_3="1-2",
    error=ErrorShape(
        {
            "results": Each(
                ("dirs.topics",),
                copies={"topic_name": "name"},
                inside={"partitions": partition_indexes()},
            )
        }
    ),
)
