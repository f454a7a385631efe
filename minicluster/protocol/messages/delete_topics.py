"""DeleteTopics (api key 20): a client asks the controller to delete topics.

KIP-516 (v6) allows to name them by id.

Versions: 0-6, flexible from 4; Kafka 3.9 has 0-6, Kafka 4.3 has 1-6.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.protocol import schema as s
from minicluster.protocol.uuids import ZERO_UUID


@s.message(api_key=20, kind="request", versions="0-6", flexible="4+")
class DeleteTopicsRequest(s.Message):
    """What DeleteTopics asks."""

    @s.struct
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
    """What DeleteTopics answers."""

    @s.struct
    class DeletableTopicResult(s.Struct):
        name: str | None = s.string("0+", default="", nullable="6+", entity="topicName")
        topic_id: UUID = s.uuid("6+", default=ZERO_UUID, ignorable=True)
        error_code: int = s.int16("0+", default=0)
        error_message: str | None = s.string("5+", default=None, nullable="5+", ignorable=True)

    throttle_time_ms: int = s.int32("1+", default=0, ignorable=True)
    responses: tuple[DeletableTopicResult, ...] = s.array("DeletableTopicResult", "0+", default=())
