"""CreatePartitions (api key 37): a client adds partitions to topics.

Versions: 0-3, flexible from 2.
    1: on a quota violation the broker responds before it throttles (KIP-219).
    2: flexible.
    3: THROTTLING_QUOTA_EXCEEDED is a possible error (KIP-599).
"""

from __future__ import annotations

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape


@s.message(api_key=37, kind="request", versions="0-3", flexible="2+")
class CreatePartitionsRequest(s.Message):
    class CreatePartitionsAssignment(s.Struct):
        broker_ids: tuple[int, ...] = s.array("int32", "0+", default=(), entity="brokerId")

    class CreatePartitionsTopic(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        count: int = s.int32("0+", default=0)
        assignments: tuple[CreatePartitionsRequest.CreatePartitionsAssignment, ...] | None = (
            s.array("CreatePartitionsAssignment", "0+", default=(), nullable="0+")
        )

    topics: tuple[CreatePartitionsTopic, ...] = s.array("CreatePartitionsTopic", "0+", default=())
    timeout_ms: int = s.int32("0+", default=0)
    validate_only: bool = s.boolean("0+", default=False)


@s.message(api_key=37, kind="response", versions="0-3", flexible="2+")
class CreatePartitionsResponse(s.Message):
    class CreatePartitionsTopicResult(s.Struct):
        name: str = s.string("0+", default="", entity="topicName")
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("0+", default=None, nullable="0+")

    throttle_time_ms: int = s.int32("0+", default=0)
    results: tuple[CreatePartitionsTopicResult, ...] = s.array(
        "CreatePartitionsTopicResult", "0+", default=()
    )


API = api(
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    kafka_3_9="0-3",
    kafka_4_3="0-3",
    forwardable=True,
    error=ErrorShape({"results": Each(("topics",))}),
)
