"""DeleteTopics (20) of a broker on ZooKeeper.

Versions:  0-6; before 3, a cluster that does not delete topics responds INVALID_REQUEST.
Source:    ZkAdminManager.deleteTopics, KafkaApis.handleDeleteTopicsRequest.
"""

from __future__ import annotations

from minicluster.java_order import scala_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.values import replace
from minicluster.zookeeper.broker.admin_state import AdminState
from minicluster.zookeeper.process import Process
from minicluster.zookeeper.server.operations import Code, Create, Exists
from minicluster.zookeeper.znodes import paths

Result = DeleteTopicsResponse.DeletableTopicResult
DeleteTopicState = DeleteTopicsRequest.DeleteTopicState
DELETION_DISABLED_SINCE = 3
AUTHORIZATION_FAILED = ErrorCode.TOPIC_AUTHORIZATION_FAILED


def delete_topics(
    state: AdminState, request: DeleteTopicsRequest, version: int
) -> Process[DeleteTopicsResponse]:
    """Mark topics for deletion; a topic that is marked already counts as deleted by this request.

    They are marked in the order of the Scala set of their names. Of a topic that comes twice the
    first result alone has what became of it.

    Errors:  per topic; INVALID_REQUEST for all where one has both a name and an id. Kafka takes a
             topic with neither for one that the client may not delete.
    """
    topics = request.topics or tuple(DeleteTopicState(name=name) for name in request.topic_names)
    refusal = _refusal(state, topics, version)
    results = [_result(state, topic, refusal) for topic in topics]
    first: dict[str, int] = {}  # the place of a topic's first result
    for place, result in enumerate(results):
        if result.name is not None and result.error_code == ErrorCode.NONE:
            first.setdefault(result.name, place)
    for name in scala_map_order(first, string_hash):
        code = yield from _delete(name)
        results[first[name]] = replace(results[first[name]], error_code=code)
    return DeleteTopicsResponse(responses=tuple(results))


def _result(state: AdminState, topic: DeleteTopicState, refusal: ErrorCode) -> Result:
    """The result of a topic before its deletion is requested; for one that is not, the last."""
    name, code = topic.name, refusal
    if code is ErrorCode.NONE:
        if topic.topic_id != ZERO_UUID:
            name = state.controller.context.topic_names.get(topic.topic_id)
        if name is None:
            nameless = topic.topic_id == ZERO_UUID
            code = AUTHORIZATION_FAILED if nameless else ErrorCode.UNKNOWN_TOPIC_ID
        elif state.image.topics.named(name) is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Result(name=name, topic_id=topic.topic_id, error_code=code, error_message=None)


def _refusal(state: AdminState, topics: tuple[DeleteTopicState, ...], version: int) -> ErrorCode:
    if not state.controller.settings.delete_topic_enable:
        if version < DELETION_DISABLED_SINCE:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.TOPIC_DELETION_DISABLED
    if any(topic.name is not None and topic.topic_id != ZERO_UUID for topic in topics):
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE


def _delete(name: str) -> Process[ErrorCode]:
    (existing,) = yield (Exists(paths.topic(name)),)
    if not existing.ok:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (created,) = yield (Create(paths.delete_topic(name)),)
    is_requested = created.ok or created.code is Code.NODEEXISTS
    return ErrorCode.NONE if is_requested else ErrorCode.UNKNOWN_SERVER_ERROR
