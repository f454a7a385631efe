"""DeleteTopics (20): topics by id, as the screening of the request has found them.

Versions:  1-6 in 4.x, from 0 on in 3.9; topics come by name below 6, by name or id from 6 on.
           5: a client's quota is strict (KIP-599).
"""

from __future__ import annotations

from uuid import UUID

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.errors import MAX_RECORDS_PER_USER_OP, Refused
from minicluster.controller.mutation_quotas import MutationQuota
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import DeleteTopicsRequest, DeleteTopicsResponse
from minicluster.protocol.records import RemoveTopicRecord, VersionedRecord


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
        except Refused as refused:
            error = refused.error
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


def _delete_topic(
    state: ClusterState, topic_id: UUID, deleted: list[UUID], quota: MutationQuota
) -> None:
    topic = state.image.topics.get(topic_id)
    if topic is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_ID)
    quota.record(len(topic))
    if len(deleted) == MAX_RECORDS_PER_USER_OP:
        raise Refused(ErrorCode.UNKNOWN_SERVER_ERROR)
    deleted.append(topic_id)


@step
def deleted_at_once(state: ClusterState, deleted: list[UUID]) -> bool:
    """The topics of one request go in one batch: no reader sees some of them only."""
    return True
