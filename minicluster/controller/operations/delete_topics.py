"""DeleteTopics (20).

Versions:  1-6 in 4.x, from 0 on in 3.9; topics come by name below 6, by name or id from 6 on.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import ApiError
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from minicluster.protocol.records import RemoveTopicRecord, VersionedRecord
from minicluster.protocol.uuids import ZERO_UUID

Result = DeleteTopicsResponse.DeletableTopicResult


def delete_topics(
    state: ClusterState, request: DeleteTopicsRequest, version: int, now_ms: int
) -> Decision:
    """Delete topics; each succeeds or fails by itself, all records are one batch.

    Errors:  per topic: INVALID_REQUEST for no or two keys and for a duplicate, UNKNOWN_TOPIC_ID,
             UNKNOWN_TOPIC_OR_PARTITION.
    Source:  ControllerApis.deleteTopics; ReplicationControlManager.deleteTopics.
    """
    keys: list[tuple[str | None, UUID]] = [(name, ZERO_UUID) for name in request.topic_names]
    keys += [(topic.name, topic.topic_id) for topic in request.topics]
    found: dict[UUID, None] = {}
    results = []
    for name, topic_id in keys:
        topic, error = _resolve(state, name, topic_id)
        if topic is not None and topic.id in found:
            error = ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic.")
            topic = None
        if topic is not None:
            found[topic.id] = None
        results.append(
            Result(
                name=name if topic is None else topic.name,
                topic_id=topic_id if topic is None else topic.id,
                error_code=error.error,
                error_message=error.message,
            )
        )
    in_pieces = state.faults.z23_deletion_in_pieces and len(found) > 1
    return Decision(
        records=tuple(
            VersionedRecord(RemoveTopicRecord(topic_id=topic_id), 0) for topic_id in found
        ),
        response=DeleteTopicsResponse(responses=tuple(results)),
        atomic=not in_pieces,
        fault_hits=("Z23",) if in_pieces else (),
    )


def _resolve(
    state: ClusterState, name: str | None, topic_id: UUID
) -> tuple[TopicImage | None, ApiError]:
    if (name is None) == (topic_id == ZERO_UUID):
        which = "Neither topic name nor id" if name is None else "Both topic name and id"
        return None, ApiError(ErrorCode.INVALID_REQUEST, f"{which} were specified.")
    topics = state.image.topics
    topic = topics.get(topic_id) if name is None else topics.named(name)
    if topic is not None:
        return topic, ApiError()
    if name is None:
        return None, ApiError(ErrorCode.UNKNOWN_TOPIC_ID)
    return None, ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
