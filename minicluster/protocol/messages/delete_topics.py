"""DeleteTopics (api key 20): a client deletes topics at the controller.

KIP-516 (v6) allows to name them by id.

Versions: 0-6, flexible from 4.
    1: response throttle_time_ms.
    2: on a quota violation the broker responds before it throttles (KIP-219).
    3: TOPIC_DELETION_DISABLED is a possible error (KIP-322).
    4: flexible.
    5: response error_message.
    6: topics, name, topic_id; without topic_names; response topic_id; response name may be
        null.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.api import api
from minicluster.protocol.error_shape import Each, ErrorShape, Text
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=20, kind="request", versions="0-6", flexible="4+")
class DeleteTopicsRequest(s.Message):
    class DeleteTopicState(s.Struct):
        name: str | None = s.string("6+", default=None, nullable="6+", entity="topicName")
        topic_id: UUID = s.uuid("6+", default=ZERO_UUID)

    topics: tuple[DeleteTopicState, ...] = s.array("DeleteTopicState", "6+", default=())
    topic_names: tuple[str, ...] = s.array(
        "string", "0-5", default=(), ignorable=True, entity="topicName"
    )
    timeout_ms: int = s.int32("0+", default=0)


@s.message(api_key=20, kind="response", versions="0-6", flexible="4+")
class DeleteTopicsResponse(s.Message):
    class DeletableTopicResult(s.Struct):
        name: str | None = s.string("0+", default="", nullable="6+", entity="topicName")
        topic_id: UUID = s.uuid("6+", default=ZERO_UUID, ignorable=True)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("5+", default=None, nullable="5+", ignorable=True)

    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    responses: tuple[DeletableTopicResult, ...] = s.array("DeletableTopicResult", "0+", default=())


API = api(
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    kafka_3_9="0-6",
    kafka_4_3="1-6",
    forwardable=True,
    error=ErrorShape(
        {"responses": Each(("topic_names", "topics"), plain="name", text=Text.DEFAULT)}
    ),
)
