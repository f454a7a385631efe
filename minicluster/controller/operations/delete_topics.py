"""DeleteTopics (20).

Versions:  1-6 in 4.x, from 0 on in 3.9; topics come by name below 6, by name or id from 6 on.
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import ApiError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.topics import TopicImage
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from minicluster.protocol.records import RemoveTopicRecord, VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID

Key = tuple[str | None, UUID]
"""A topic's name, or None; its id, or zero."""

TWO_KEYS = "The provided topic name maps to an ID that was already supplied."


def delete_topics(
    state: ClusterState, request: DeleteTopicsRequest, version: int, now_ms: int
) -> Decision:
    """Delete topics; each succeeds or fails by itself, all records are one batch.

    Errors:  per topic: INVALID_REQUEST for no or two keys, a duplicate, and a name and an id of one
             topic; UNKNOWN_TOPIC_OR_PARTITION for a name, UNKNOWN_TOPIC_ID for an id.
    Source:  ControllerApis.deleteTopics; ReplicationControlManager.deleteTopics.
    """
    keys: list[Key] = [(name, ZERO_UUID) for name in request.topic_names]
    keys += [(topic.name, topic.topic_id) for topic in request.topics]
    found = {key: _resolve(state, key, times) for key, times in Counter(keys).items()}
    keys_of = Counter(topic.id for topic, _ in found.values() if topic is not None)
    deleted: list[UUID] = []
    results = []
    for key, (topic, error) in found.items():
        if topic is None:
            results.append(_result(key, error))
        elif keys_of[topic.id] == 1:
            deleted.append(topic.id)
            results.append(_result((topic.name, topic.id), ApiError()))
        elif key[0] is not None:  # one result for both keys, and neither deletes the topic
            results.append(_result((topic.name, topic.id), _invalid(TWO_KEYS)))
    return Decision(
        records=tuple(
            VersionedRecord(RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in deleted
        ),
        response=DeleteTopicsResponse(responses=tuple(results)),
        atomic=deleted_at_once(state, deleted),
    )


@step
def deleted_at_once(state: ClusterState, deleted: list[UUID]) -> bool:
    """The topics of one request go in one batch: no reader sees some of them only."""
    return True


def _resolve(state: ClusterState, key: Key, times: int) -> tuple[TopicImage | None, ApiError]:
    name, topic_id = key
    if name is None and topic_id == ZERO_UUID:
        return None, _invalid("Neither topic name nor id were specified.")
    if name is not None and topic_id != ZERO_UUID:
        return None, _invalid("You may not specify both topic name and topic id.")
    if times > 1:
        return None, _invalid(f"Duplicate topic {'id' if name is None else 'name'}.")
    topics = state.image.topics
    topic = topics.get(topic_id) if name is None else topics.named(name)
    if topic is not None:
        return topic, ApiError()
    if name is None:
        return None, ApiError.of_code(ErrorCode.UNKNOWN_TOPIC_ID)
    return None, ApiError.of_code(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _result(key: Key, error: ApiError) -> DeleteTopicsResponse.DeletableTopicResult:
    return DeleteTopicsResponse.DeletableTopicResult(
        name=key[0], topic_id=key[1], error_code=error.error, error_message=error.message
    )
