"""DeleteTopics (20) of a broker on ZooKeeper.

Versions:  0-6; before 3, a cluster that does not delete topics responds INVALID_REQUEST.
Source:    ZkAdminManager.deleteTopics, KafkaApis.handleDeleteTopicsRequest.
"""

from __future__ import annotations

from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.zookeeper.broker.administration.admin_state import AdminState
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code, Create, Exists
from minicluster.zookeeper.znodes import paths

DeleteTopicState = DeleteTopicsRequest.DeleteTopicState
DELETION_DISABLED_SINCE = 3


def delete_topics(
    state: AdminState, request: DeleteTopicsRequest, version: int
) -> Process[DeleteTopicsResponse]:
    """Mark topics for deletion; a topic that is marked already counts as deleted by this request.

    Errors:  per topic; INVALID_REQUEST for all where one has both a name and an id.
    """
    topics = request.topics or tuple(DeleteTopicState(name=name) for name in request.topic_names)
    refusal = _refusal(state, topics, version)
    results = []
    for topic in topics:
        name, code = topic.name, refusal
        if code is ErrorCode.NONE:
            name = name or state.controller.context.topic_names.get(topic.topic_id)
            code = yield from _delete(state, name)
        results.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=name, topic_id=topic.topic_id, error_code=code, error_message=None
            )
        )
    return DeleteTopicsResponse(responses=tuple(results))


def _refusal(state: AdminState, topics: tuple[DeleteTopicState, ...], version: int) -> ErrorCode:
    if not state.controller.settings.delete_topic_enable:
        if version < DELETION_DISABLED_SINCE:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.TOPIC_DELETION_DISABLED
    if any(topic.name is not None and topic.topic_id != ZERO_UUID for topic in topics):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _delete(state: AdminState, name: str | None) -> Process[ErrorCode]:
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if state.image.topics.named(name) is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (existing,) = yield (Exists(paths.topic(name)),)
    if not existing.ok:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (created,) = yield (Create(paths.delete_topic(name)),)
    is_requested = created.ok or created.code is Code.NODEEXISTS
    return ErrorCode.NONE if is_requested else ErrorCode.UNKNOWN_SERVER_ERROR
