"""ListPartitionReassignments (46): the partitions that are being reassigned.

Versions:  0.
"""

from __future__ import annotations

from minicluster.controller.api import ControllerApi
from minicluster.controller.decision import Decision
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from minicluster.security.acls import Operation

Ongoing = ListPartitionReassignmentsResponse.OngoingPartitionReassignment
OngoingTopic = ListPartitionReassignmentsResponse.OngoingTopicReassignment


def list_partition_reassignments(
    state: ClusterState,
    request: ListPartitionReassignmentsRequest,
    version: int,
    committed: MetadataImage,
    now_ms: int,
) -> Decision:
    """List the reassignments of all topics, or of those in the request.

    Topics are looked up as far as committed, and without names partitions as well: one that only
    began is not in the list, and one that only ended is not either. Whatever is shown of a
    partition is its newest state, committed or not.

    Source:  ReplicationControlManager.listPartitionReassignments (at the last stable offset),
             getOngoingPartitionReassignment (at the latest).
    """
    latest = state.image.topics
    if request.topics is None:
        known = committed.topics
        wanted = [
            (known.get(topic_id), state.indexes.reassigning.of_topic(topic_id))
            for topic_id in state.indexes.reassigning.topics()
        ]
        listed = [(topic, _reassigned(topic, indexes)) for topic, indexes in wanted if topic]
        listed.sort(key=lambda item: item[0].name)
    else:
        named = [(committed.topics.named(asked.name), asked) for asked in request.topics]
        listed = [(topic, asked.partition_indexes) for topic, asked in named if topic]
    topics = [
        ongoing
        for known_topic, indexes in listed
        if (topic := latest.get(known_topic.id)) is not None
        for ongoing in _ongoing(topic, indexes)
    ]
    return Decision(
        response=ListPartitionReassignmentsResponse(error_message=None, topics=tuple(topics))
    )


def _reassigned(topic: TopicImage, indexes: tuple[int, ...]) -> tuple[int, ...]:
    """Those of some partitions that this image of their topic has under way."""
    return tuple(
        index
        for index in indexes
        if (partition := topic.partitions.get(index)) is not None and partition.is_reassigning
    )


def _ongoing(topic: TopicImage, indexes: tuple[int, ...]) -> list[OngoingTopic]:
    ongoing = [
        Ongoing(
            partition_index=index,
            replicas=topic.partitions[index].replicas,
            adding_replicas=topic.partitions[index].adding_replicas,
            removing_replicas=topic.partitions[index].removing_replicas,
        )
        for index in _reassigned(topic, indexes)
    ]
    return [OngoingTopic(name=topic.name, partitions=tuple(ongoing))] if ongoing else []


API = ControllerApi(
    ListPartitionReassignmentsRequest,
    lambda call: list_partition_reassignments(
        call.state, call.request, call.version, call.committed, call.now_ms
    ),
    reads=True,
    right=Operation.DESCRIBE,
)
