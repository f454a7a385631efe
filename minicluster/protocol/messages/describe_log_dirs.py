"""DescribeLogDirs (api key 35): the content of a broker's log directories.

Versions: 0-5, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
    3: fields as in version 2.
    4: response total_bytes, usable_bytes.
    5: response is_cordoned.
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api


@s.message(api_key=35, kind="request", versions="0-5", flexible="2+")
class DescribeLogDirsRequest(s.Message):
    class DescribableLogDirTopic(s.Struct):
        topic: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[int, ...] = s.array("int32", "0+", default=())

    topics: tuple[DescribableLogDirTopic, ...] | None = s.array(
        "DescribableLogDirTopic", "0+", default=(), nullable="0+"
    )


@s.message(api_key=35, kind="response", versions="0-5", flexible="2+")
class DescribeLogDirsResponse(s.Message):
    class DescribeLogDirsPartition(s.Struct):
        partition_index: int = s.int32("0+", default=0)
        partition_size: int = s.int64("0+", default=0)
        offset_lag: int = s.int64("0+", default=0)
        is_future_key: bool = s.boolean("0+", default=False)

    class DescribeLogDirsTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        partitions: tuple[DescribeLogDirsResponse.DescribeLogDirsPartition, ...] = s.array(
            "DescribeLogDirsPartition", "0+", default=()
        )

    class DescribeLogDirsResult(s.Struct):
        error_code: int = s.int16("0+", default=0)
        log_dir: str = s.string("0+", default="")
        topics: tuple[DescribeLogDirsResponse.DescribeLogDirsTopic, ...] = s.array(
            "DescribeLogDirsTopic", "0+", default=()
        )
        total_bytes: int = s.int64("4+", default=-1, ignorable=True)
        usable_bytes: int = s.int64("4+", default=-1, ignorable=True)
        is_cordoned: bool = s.boolean("5+", default=False, ignorable=True)

    throttle_time_ms: int = s.int32("0+", default=0)
    error_code: int = s.int16("3+", default=0, ignorable=True)
    results: tuple[DescribeLogDirsResult, ...] = s.array("DescribeLogDirsResult", "0+", default=())


API = api(
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    kafka_3_9="0-4",
    kafka_4_3="1-5",
)
