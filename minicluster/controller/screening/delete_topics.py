"""The checks of DeleteTopics that any controller does, and the ids of the topics.

Source:  ControllerApis.deleteTopics; ReplicationControlManager.findTopicIds, findTopicNames.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from uuid import UUID

from minicluster.controller.errors import ApiError, Refused
from minicluster.controller.screening.screened import Screened
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash, uuid_hash
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from minicluster.protocol.uuids import ZERO_UUID

Result = DeleteTopicsResponse.DeletableTopicResult
State = DeleteTopicsRequest.DeleteTopicState

DELETE_TOPIC_ENABLE = "delete.topic.enable"
TWO_KEYS = "The provided topic name maps to an ID that was already supplied."
_HAS_DELETION_DISABLED_ERROR = 3


def screen_delete_topics(
    state: ClusterState, request: DeleteTopicsRequest, version: int, committed: MetadataImage
) -> Screened:
    """Refuse what names no topic, several keys of one, or a key twice; the rest goes by id.

    Names and ids are looked up in what is committed. Kafka shuffles the results.
    Errors:  per topic: INVALID_REQUEST for no or two keys, a duplicate, and a name and an id of one
             topic; UNKNOWN_TOPIC_OR_PARTITION for a name, UNKNOWN_TOPIC_ID for an id.
             Refused with TOPIC_DELETION_DISABLED where no topic may be deleted.
    """
    _refuse_if_disabled(state, version)
    refused: list[Result] = []
    names = Counter(request.topic_names)
    ids: Counter[UUID] = Counter()
    for topic in request.topics:
        if topic.name is not None and topic.topic_id != ZERO_UUID:
            two = _invalid("You may not specify both topic name and topic id.")
            refused.append(_result(topic.name, topic.topic_id, two))
        elif topic.name is not None:
            names[topic.name] += 1
        elif topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] += 1
        else:
            none = _invalid("Neither topic name nor id were specified.")
            refused.append(_result(None, ZERO_UUID, none))
    found = _found_by_id(ids, committed, refused)
    _find_by_name(names, ids, committed, found, refused)
    order = hash_map_order(found, uuid_hash)
    left = replace(
        request,
        topic_names=(),
        topics=tuple(State(name=None, topic_id=topic_id) for topic_id in order),
    )

    def complete(made: DeleteTopicsResponse) -> DeleteTopicsResponse:
        named = (replace(result, name=found[result.topic_id]) for result in made.responses)
        return replace(made, responses=(*refused, *named))

    return Screened(left, complete)


def _refuse_if_disabled(state: ClusterState, version: int) -> None:
    if state.settings.static_config.get(DELETE_TOPIC_ENABLE, "true").strip().lower() != "false":
        return
    if version < _HAS_DELETION_DISABLED_ERROR:
        raise Refused(ErrorCode.INVALID_REQUEST)
    raise Refused(ErrorCode.TOPIC_DELETION_DISABLED)


def _found_by_id(
    ids: Counter[UUID], committed: MetadataImage, refused: list[Result]
) -> dict[UUID, str]:
    found: dict[UUID, str] = {}
    for topic_id in hash_map_order(ids, uuid_hash):
        topic = committed.topics.get(topic_id)
        if ids[topic_id] > 1:
            refused.append(_result(None, topic_id, _invalid("Duplicate topic id.")))
        elif topic is None:
            unknown = ApiError.of_code(ErrorCode.UNKNOWN_TOPIC_ID)
            refused.append(_result(None, topic_id, unknown))
        else:
            found[topic_id] = topic.name
    return found


def _find_by_name(
    names: Counter[str],
    ids: Counter[UUID],
    committed: MetadataImage,
    found: dict[UUID, str],
    refused: list[Result],
) -> None:
    """Add the topics of names; one whose id was supplied is not deleted by either key."""
    for name in hash_map_order(names, string_hash):
        topic = committed.topics.named(name)
        if names[name] > 1:
            refused.append(_result(name, ZERO_UUID, _invalid("Duplicate topic name.")))
        elif topic is None:
            unknown = ApiError.of_code(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            refused.append(_result(name, ZERO_UUID, unknown))
        elif topic.id in ids:
            found.pop(topic.id, None)
            refused.append(_result(name, topic.id, _invalid(TWO_KEYS)))
        else:
            found[topic.id] = name


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _result(name: str | None, topic_id: UUID, error: ApiError) -> Result:
    return Result(name=name, topic_id=topic_id, error_code=error.error, error_message=error.message)
