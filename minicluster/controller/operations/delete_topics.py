"""DeleteTopics (20): topics by id, as the screening of the request has found them.

Versions:  1-6 in 4.x, from 0 on in 3.9; topics come by name below 6, by name or id from 6 on.
"""

from __future__ import annotations

from uuid import UUID

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import MAX_RECORDS_PER_USER_OP
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from minicluster.protocol.records import RemoveTopicRecord, VersionedRecord


def delete_topics(
    state: ClusterState, request: DeleteTopicsRequest, version: int, now_ms: int
) -> Decision:
    """Delete topics; each succeeds or fails by itself, all records are one batch.

    Errors:  per topic: UNKNOWN_TOPIC_ID, UNKNOWN_SERVER_ERROR for those that the batch has no room
             for.
    Source:  ReplicationControlManager.deleteTopics.
    """
    deleted: list[UUID] = []
    results = []
    for topic in request.topics:
        error = ErrorCode.NONE
        if state.image.topics.get(topic.topic_id) is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID
        elif len(deleted) == MAX_RECORDS_PER_USER_OP:
            error = ErrorCode.UNKNOWN_SERVER_ERROR
        else:
            deleted.append(topic.topic_id)
        results.append(
            DeleteTopicsResponse.DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=error, error_message=None
            )
        )
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
