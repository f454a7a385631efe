"""DeleteTopics (20): any controller turns names into ids, the active one deletes by id.

Versions:  1-6 in 4.x, from 0 on in 3.9; topics come by name below 6, by name or id from 6 on.
           3: TOPIC_DELETION_DISABLED.
           5: a client's quota is strict (KIP-599).
"""

from __future__ import annotations

from collections import Counter
from uuid import UUID

from minicluster.controller.api import Call, ControllerApi, Screened, is_late
from minicluster.controller.decision import Decision
from minicluster.controller.errors import MAX_RECORDS_PER_USER_OP, ApiError, Rejected
from minicluster.controller.mutation_quotas import MutationQuota
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.java_order import hash_map_order, string_hash, uuid_hash
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from minicluster.protocol.records import RemoveTopicRecord, VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.security.acls import Operation, ResourceType
from minicluster.security.screening import Access
from minicluster.values import Value, replace

Result = DeleteTopicsResponse.DeletableTopicResult
State = DeleteTopicsRequest.DeleteTopicState

DELETE_TOPIC_ENABLE = "delete.topic.enable"
TWO_KEYS = "The provided topic name maps to an ID that was already supplied."
_HAS_DELETION_DISABLED_ERROR = 3
_NOT_AUTHORIZED = ApiError.of_code(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def screen_delete_topics(call: Call) -> Screened:
    """Reject what names no topic, several keys of one, or a key twice; the rest goes by id.

    Names and ids are looked up in what is committed. Kafka shuffles the results.
    Errors:  per topic: INVALID_REQUEST for no or two keys, a duplicate, and a name and an id of one
             topic; UNKNOWN_TOPIC_OR_PARTITION for a name, UNKNOWN_TOPIC_ID for an id.
             Rejected with TOPIC_DELETION_DISABLED where no topic may be deleted, with
             REQUEST_TIMED_OUT where there is a topic to look up and no time for it.
    Source:  ControllerApis.deleteTopics; ReplicationControlManager.findTopicIds, findTopicNames.
    """
    request: DeleteTopicsRequest = call.request
    committed = call.committed
    _reject_if_disabled(call.state, call.version)
    rejected: list[Result] = []
    names = Counter(request.topic_names)
    ids: Counter[UUID] = Counter()
    for topic in request.topics:
        if topic.name is not None and topic.topic_id != ZERO_UUID:
            two = _invalid("You may not specify both topic name and topic id.")
            rejected.append(_result(topic.name, topic.topic_id, two))
        elif topic.name is not None:
            names[topic.name] += 1
        elif topic.topic_id != ZERO_UUID:
            ids[topic.topic_id] += 1
        else:
            none = _invalid("Neither topic name nor id were specified.")
            rejected.append(_result(None, ZERO_UUID, none))
    if is_late(call.request) and 1 in (*names.values(), *ids.values()):
        raise Rejected(ErrorCode.REQUEST_TIMED_OUT)  # the look-up has the deadline as well
    may = _Rights.of(call.access)
    names_by_id = _names_by_id(ids, committed, may, rejected)
    _add_by_name(names, ids, committed, may, names_by_id, rejected)
    order = hash_map_order(names_by_id, uuid_hash)
    left = replace(
        request,
        topic_names=(),
        topics=tuple(State(name=None, topic_id=topic_id) for topic_id in order),
    )

    def complete(response: DeleteTopicsResponse) -> DeleteTopicsResponse:
        named = (
            replace(result, name=names_by_id[result.topic_id]) for result in response.responses
        )
        return replace(response, responses=(*rejected, *named))

    return Screened(left, complete)


def _reject_if_disabled(state: ClusterState, version: int) -> None:
    if state.settings.static_config.get(DELETE_TOPIC_ENABLE, "true").strip().lower() != "false":
        return
    if version < _HAS_DELETION_DISABLED_ERROR:
        raise Rejected(ErrorCode.INVALID_REQUEST)
    raise Rejected(ErrorCode.TOPIC_DELETION_DISABLED)


class _Rights(Value):
    """Which topics somebody may delete, and of which he may know that they exist."""

    access: Access
    on_cluster: bool

    @classmethod
    def of(cls, access: Access) -> _Rights:
        return cls(access, access.may_on_cluster(Operation.DELETE))

    def delete(self, name: str) -> bool:
        return self.on_cluster or self.access.may(Operation.DELETE, ResourceType.TOPIC, name)

    def describe(self, name: str) -> bool:
        return self.on_cluster or self.access.may(Operation.DESCRIBE, ResourceType.TOPIC, name)


def _names_by_id(
    ids: Counter[UUID], committed: MetadataImage, may: _Rights, rejected: list[Result]
) -> dict[UUID, str]:
    names_by_id: dict[UUID, str] = {}
    for topic_id in hash_map_order(ids, uuid_hash):
        topic = committed.topics.get(topic_id)
        if ids[topic_id] > 1:
            rejected.append(_result(None, topic_id, _invalid("Duplicate topic id.")))
        elif topic is None:
            unknown = ApiError.of_code(ErrorCode.UNKNOWN_TOPIC_ID)
            rejected.append(_result(None, topic_id, unknown))
        elif not may.delete(topic.name):
            name = topic.name if may.describe(topic.name) else None
            rejected.append(_result(name, topic_id, _NOT_AUTHORIZED))
        else:
            names_by_id[topic_id] = topic.name
    return names_by_id


def _add_by_name(
    names: Counter[str],
    ids: Counter[UUID],
    committed: MetadataImage,
    may: _Rights,
    names_by_id: dict[UUID, str],
    rejected: list[Result],
) -> None:
    """Add the topics of names; one whose id was supplied is not deleted by either key."""
    for name in hash_map_order(names, string_hash):
        topic = committed.topics.named(name)
        if names[name] > 1:
            rejected.append(_result(name, ZERO_UUID, _invalid("Duplicate topic name.")))
        elif not may.describe(name):
            rejected.append(_result(name, ZERO_UUID, _NOT_AUTHORIZED))
        elif topic is None:
            unknown = ApiError.of_code(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            rejected.append(_result(name, ZERO_UUID, unknown))
        elif not may.delete(name):
            rejected.append(_result(name, ZERO_UUID, _NOT_AUTHORIZED))
        elif topic.id in ids:
            names_by_id.pop(topic.id, None)
            rejected.append(_result(name, topic.id, _invalid(TWO_KEYS)))
        else:
            names_by_id[topic.id] = name


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)


def _result(name: str | None, topic_id: UUID, error: ApiError) -> Result:
    return Result(name=name, topic_id=topic_id, error_code=error.error, error_message=error.message)


@step
def delete_topics(
    state: ClusterState,
    request: DeleteTopicsRequest,
    version: int,
    quota: MutationQuota,
    now_ms: int,
) -> Decision:
    """Delete topics; each succeeds or fails by itself, all records are one batch.

    Errors:  per topic: UNKNOWN_TOPIC_ID, THROTTLING_QUOTA_EXCEEDED, UNKNOWN_SERVER_ERROR for those
             that the batch has no room for.
    Source:  ReplicationControlManager.deleteTopics.
    """
    deleted: list[UUID] = []
    results = []
    for topic in request.topics:
        error = ErrorCode.NONE
        try:
            _delete_topic(state, topic.topic_id, deleted, quota)
        except Rejected as rejected:
            error = rejected.error
        results.append(
            Result(name=topic.name, topic_id=topic.topic_id, error_code=error, error_message=None)
        )
    return Decision(
        records=tuple(
            VersionedRecord(RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in deleted
        ),
        response=DeleteTopicsResponse(responses=tuple(results)),
        atomic=True,  # no reader of the log sees some of them only
    )


def _delete_topic(
    state: ClusterState, topic_id: UUID, deleted: list[UUID], quota: MutationQuota
) -> None:
    topic = state.image.topics.get(topic_id)
    if topic is None:
        raise Rejected(ErrorCode.UNKNOWN_TOPIC_ID)
    quota.record(len(topic))
    if len(deleted) == MAX_RECORDS_PER_USER_OP:
        raise Rejected(ErrorCode.UNKNOWN_SERVER_ERROR)
    deleted.append(topic_id)


API = ControllerApi(
    DeleteTopicsRequest,
    lambda call: delete_topics(call.state, call.request, call.version, call.quota, call.now_ms),
    screen=screen_delete_topics,
    items=("topics",),
    nothing=DeleteTopicsResponse(),
    quota_strict_since=5,
)
