"""DescribeTopicPartitions (75): topics in the order of their names, some partitions at a time.

Versions:  0 (KIP-966).
"""

from __future__ import annotations

from typing import Any

from minicluster.broker.requests.metadata import offline_replicas
from minicluster.broker.state.api_state import ApiState
from minicluster.metadata.authorized_operations import ON_TOPIC
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from minicluster.protocol.topics import INTERNAL_TOPICS, invalid_name_reason

Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
Cursor = DescribeTopicPartitionsResponse.Cursor

LIMIT = "max.request.partition.size.limit"


def describe_topic_partitions(
    state: ApiState, request: DescribeTopicPartitionsRequest, version: int, now_ms: int
) -> DescribeTopicPartitionsResponse:
    """Topics and partitions from the cursor on, up to the limit.

    Shapes:  no topic means all topics; a cursor in the response has the next place.
    Errors:  per topic UNKNOWN_TOPIC_OR_PARTITION, INVALID_TOPIC_EXCEPTION; INVALID_REQUEST for a
             cursor before the first partition, and for one at a topic that is not requested;
             UNKNOWN_SERVER_ERROR for an empty name without a cursor.
    Source:  DescribeTopicPartitionsRequestHandler, KRaftMetadataCache.describeTopicResponse.
    """
    topics, cursor = state.image.topics, request.cursor
    all_topics = not request.topics
    names = [t.name for t in request.topics] or [topic.name for topic in topics]
    first_topic = "" if cursor is None else cursor.topic_name
    first_partition = 0 if cursor is None else cursor.partition_index
    is_left_out = cursor is not None and not all_topics and first_topic not in names
    # The empty name is that of no cursor, whose partition the handler then looks at: null.
    is_broken = cursor is None and "" in names
    if first_partition < 0 or is_left_out or is_broken:
        error = ErrorCode.UNKNOWN_SERVER_ERROR if is_broken else ErrorCode.INVALID_REQUEST
        refusal: DescribeTopicPartitionsResponse = error_response(request, error, version=version)
        return refusal
    limit = max(
        1, min(int(state.broker_levels.value(LIMIT) or 0), request.response_partition_limit)
    )
    described: list[Any] = []
    next_cursor = None
    for name in sorted(name for name in set(names) if name >= first_topic):
        if limit <= 0:
            next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        topic = topics.named(name)
        if topic is None:
            if not all_topics:
                described.append(_unknown(name))
            continue
        start = first_partition if name == first_topic else 0
        stop = min(len(topic.partitions), start + limit)
        partitions = tuple(
            _partition(state, index, topic.partitions[index]) for index in range(start, stop)
        )
        described.append(
            Topic(
                name=name,
                topic_id=topic.id,
                is_internal=name in INTERNAL_TOPICS,
                partitions=partitions,
                topic_authorized_operations=ON_TOPIC,
            )
        )
        limit -= len(partitions)
        if stop < len(topic.partitions):
            next_cursor = Cursor(topic_name=name, partition_index=stop)
            break
    return DescribeTopicPartitionsResponse(topics=tuple(described), next_cursor=next_cursor)


def _unknown(name: str) -> Topic:
    valid = invalid_name_reason(name) is None
    return Topic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if valid
        else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=ON_TOPIC,
    )


def _partition(state: ApiState, index: int, partition: PartitionRegistration) -> Partition:
    leader = state.image.cluster.broker(partition.leader)
    reachable = leader is not None and state.endpoint(leader) is not None
    return Partition(
        partition_index=index,
        leader_id=partition.leader if reachable else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=offline_replicas(state, partition),
    )
