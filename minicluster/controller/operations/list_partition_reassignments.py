"""ListPartitionReassignments (46): the partitions that are being reassigned.

Versions:  0.
"""

from __future__ import annotations

from minicluster.controller.deciding.decision import Decision
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol.messages import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Ongoing = ListPartitionReassignmentsResponse.OngoingPartitionReassignment
OngoingTopic = ListPartitionReassignmentsResponse.OngoingTopicReassignment


def list_partition_reassignments(
    state: ClusterState,
    request: ListPartitionReassignmentsRequest,
    version: int,
    committed: MetadataImage,
    now_ms: int,
) -> Decision:
    """List the reassignments of all topics, or of those in the request, as far as committed.

    Source:  ReplicationControlManager.listPartitionReassignments (at the last stable offset).
    """
    topics: list[OngoingTopic] = []
    if request.topics is None:
        for topic in _reassigned(state, committed):
            topics += _ongoing(topic, _candidates(state, topic))
    else:
        for requested in request.topics:
            named = committed.topics.named(requested.name)
            if named is not None:
                topics += _ongoing(named, requested.partition_indexes)
    return Decision(
        response=ListPartitionReassignmentsResponse(error_message=None, topics=tuple(topics))
    )


def _reassigned(state: ClusterState, committed: MetadataImage) -> list[TopicImage]:
    """Topics that may have partitions under way, by name.

    The index includes what is not committed yet, which makes a topic differ.
    """
    known, now = committed.topics.by_id, state.image.topics.by_id
    found = [known[i] for i in state.indexes.reassigning.topics() if known.get(i) is now.get(i)]
    if committed is not state.image:
        found += [topic for topic_id, topic in known.items() if now.get(topic_id) is not topic]
    return sorted(found, key=lambda topic: topic.name)


def _candidates(state: ClusterState, topic: TopicImage) -> tuple[int, ...]:
    if state.image.topics.get(topic.id) is topic:
        return state.indexes.reassigning.of_topic(topic.id)
    return tuple(index for index, _ in topic.items())


def _ongoing(topic: TopicImage, indexes: tuple[int, ...]) -> list[OngoingTopic]:
    found = [
        Ongoing(
            partition_index=index,
            replicas=partition.replicas,
            adding_replicas=partition.adding_replicas,
            removing_replicas=partition.removing_replicas,
        )
        for index in indexes
        if (partition := topic.partitions.get(index)) is not None and partition.is_reassigning
    ]
    return [OngoingTopic(name=topic.name, partitions=tuple(found))] if found else []
