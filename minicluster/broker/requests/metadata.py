"""Topics as a broker has published them: Metadata, and DescribeTopicPartitions page by page."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeVar

from minicluster.broker.api_state import ApiState
from minicluster.java_order import (
    SCALA_IN_ORDER_MAX,
    scala_map_order,
    scala_trie_order,
    string_hash,
    uuid_hash,
)
from minicluster.metadata.authorized_operations import NOT_REQUESTED, ON_CLUSTER, ON_TOPIC
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    MetadataRequest,
    MetadataResponse,
)
from minicluster.protocol.topics import INTERNAL_TOPICS, invalid_name_reason
from minicluster.protocol.uuids import ZERO_UUID

# Metadata (3): brokers, topics and partitions as published.
#
# Versions:  0-13. In 0 no topic means all topics; later null does. A partition's error for a leader
#            without the client's listener is LISTENER_NOT_FOUND from 6 on, and version 0 leaves
#            out replicas that clients cannot reach. Leader epochs from 7 on, authorized operations
#            from 8 on (of the cluster up to 10), topic ids from 10 on and as a key from 12 on.

TOPIC_IDS = 12
_LISTENER_NOT_FOUND = 6
_CLUSTER_OPERATIONS = range(8, 11)
_TOPIC_OPERATIONS = 8

K = TypeVar("K")
Topic = MetadataResponse.MetadataResponseTopic
PartitionMetadata = MetadataResponse.MetadataResponsePartition


def metadata(
    state: ApiState,
    request: MetadataRequest,
    version: int,
    created: Collection[str],
) -> MetadataResponse:
    """Brokers that clients can reach, and the requested topics.

    Shapes:  created: the topics that are not there, and created because of this request.
    Errors:  per topic UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_TOPIC_EXCEPTION; per
             partition LEADER_NOT_AVAILABLE and the like. INVALID_REQUEST for everything where the
             version has no topic ids and the request has one; UNKNOWN_SERVER_ERROR where a topic
             has neither id nor name, and none has an id.
    Source:  KafkaApis.handleTopicMetadataRequest, KRaftMetadataCache.getTopicMetadata,
             ZkMetadataCache.getTopicMetadata.
    """
    named = None if request.topics is None else list(request.topics)
    if named is not None:
        is_bad = any(item.name is None or item.topic_id != ZERO_UUID for item in named)
        if is_bad and version < TOPIC_IDS:
            return _failed(request, ErrorCode.INVALID_REQUEST, version)
        if is_bad and not _has_ids(named):
            # Topic.validate(null) throws.
            return _failed(request, ErrorCode.UNKNOWN_SERVER_ERROR, version)
    if named is None or (version == 0 and not named):
        topics = [_topic(state, topic, version) for topic in state.image.topics]
    else:
        topics = _requested(state, named, version, created)
    if request.include_topic_authorized_operations and version >= _TOPIC_OPERATIONS:
        topics = [_with_operations(topic) for topic in topics]
    of_cluster = request.include_cluster_authorized_operations and version in _CLUSTER_OPERATIONS
    return MetadataResponse(
        brokers=tuple(
            MetadataResponse.MetadataResponseBroker(
                node_id=broker.id, host=endpoint.host, port=endpoint.port, rack=broker.rack
            )
            for broker in state.image.cluster.brokers.values()
            if not broker.fenced and (endpoint := state.endpoint(broker)) is not None
        ),
        cluster_id=state.config.cluster_id,
        controller_id=state.controller_id(),
        cluster_authorized_operations=ON_CLUSTER if of_cluster else NOT_REQUESTED,
        topics=tuple(topics),
    )


def _failed(request: MetadataRequest, error: ErrorCode, version: int) -> MetadataResponse:
    rejection: MetadataResponse = error_response(request, error, version=version)
    return rejection


def _has_ids(items: Iterable[Any]) -> bool:
    return any(item.topic_id != ZERO_UUID for item in items)


def missing_topics(state: ApiState, request: MetadataRequest, version: int) -> list[str]:
    """The topics that the request may create: named, with a valid name, and not there."""
    if request.topics is None or not request.allow_auto_topic_creation:
        return []
    names = dict.fromkeys(item.name for item in request.topics)
    if _has_ids(request.topics) or None in names:
        return []
    return [
        name
        for name in names
        if name is not None
        and state.image.topics.named(name) is None
        and invalid_name_reason(name) is None
    ]


def _requested(
    state: ApiState, items: Sequence[Any], version: int, created: Collection[str]
) -> list[Topic]:
    """The topics in Kafka's order: unknown ids, then those that are there, then the others.

    Each part has the order of a Scala set. Those that are about to be created come last. One topic
    id makes the names of all items count for nothing.
    """
    topics = state.image.topics
    ids = list(dict.fromkeys(item.topic_id for item in items))
    if ids != [ZERO_UUID]:
        return _by_id(state, ids, version)
    names = list(dict.fromkeys(item.name or "" for item in items))
    in_order = _in_set_order(names, names, string_hash)
    existing = [topic for name in in_order if (topic := topics.named(name)) is not None]
    missing = [name for name in names if topics.named(name) is None and name not in created]
    missing = _in_set_order(missing, names, string_hash)
    missing += scala_map_order(created, string_hash)
    return [
        *(_topic(state, topic, version) for topic in existing),
        *(_no_such_name(name) for name in missing),
    ]


def _by_id(state: ApiState, ids: Sequence[uuid.UUID], version: int) -> list[Topic]:
    topics = state.image.topics
    wanted = [topic_id for topic_id in ids if topic_id != ZERO_UUID]
    unknown = [topic_id for topic_id in wanted if topics.get(topic_id) is None]
    existing = {topic.name: topic for i in wanted if (topic := topics.get(i)) is not None}
    return [
        *(
            _no_topic(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
            for topic_id in _in_set_order(unknown, ids, uuid_hash)
        ),
        *(
            _topic(state, existing[name], version)
            for name in _in_set_order(list(existing), ids, string_hash)
        ),
    ]


def _in_set_order(part: list[K], whole: Sequence[Any], hash_of: Callable[[K], int]) -> list[K]:
    """A part of an immutable Scala set: a set of up to four keeps the order of arrival."""
    return part if len(whole) <= SCALA_IN_ORDER_MAX else scala_trie_order(part, hash_of)


def _no_such_name(name: str) -> Topic:
    if invalid_name_reason(name) is not None:
        return _no_topic(ErrorCode.INVALID_TOPIC_EXCEPTION, name, ZERO_UUID)
    return _no_topic(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, ZERO_UUID)


def _no_topic(error: ErrorCode, name: str | None, topic_id: uuid.UUID) -> Topic:
    return Topic(
        error_code=error,
        name=name,
        topic_id=topic_id,
        is_internal=name in INTERNAL_TOPICS,
        partitions=(),
    )


def _with_operations(topic: Topic) -> Topic:
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_ID:
        return topic
    return Topic(
        error_code=topic.error_code,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=topic.partitions,
        topic_authorized_operations=ON_TOPIC,
    )


def _topic(state: ApiState, topic: TopicImage, version: int) -> Topic:
    return Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=state.shown_id(topic),
        is_internal=topic.name in INTERNAL_TOPICS,
        partitions=tuple(
            _partition(state, topic.name, index, partition, version)
            for index, partition in topic.items()
        ),
    )


def _partition(
    state: ApiState, topic: str, index: int, partition: PartitionRegistration, version: int
) -> PartitionMetadata:
    leader = state.image.cluster.broker(partition.leader)
    reachable = leader is not None and state.endpoint(leader) is not None
    replicas, isr = partition.replicas, partition.isr
    if version == 0:
        replicas, isr = _reachable(state, replicas), _reachable(state, isr)
    if reachable:
        complete = len(replicas) == len(partition.replicas) and len(isr) == len(partition.isr)
        error = ErrorCode.NONE if complete else ErrorCode.REPLICA_NOT_AVAILABLE
    elif leader is not None and version >= _LISTENER_NOT_FOUND:
        error = ErrorCode.LISTENER_NOT_FOUND
    else:
        error = ErrorCode.LEADER_NOT_AVAILABLE
    return PartitionMetadata(
        error_code=error,
        partition_index=index,
        leader_id=partition.leader if reachable else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=replicas,
        isr_nodes=isr,
        offline_replicas=(
            offline_replicas(state, partition)
            if state.on_zookeeper is None
            else state.on_zookeeper.offline_replicas(topic, index)
        ),
    )


def _reachable(state: ApiState, replicas: Iterable[int]) -> tuple[int, ...]:
    registered = ((replica, state.image.cluster.broker(replica)) for replica in replicas)
    return tuple(
        replica
        for replica, broker in registered
        if broker is not None and not broker.fenced and state.endpoint(broker) is not None
    )


def offline_replicas(state: ApiState, partition: PartitionRegistration) -> tuple[int, ...]:
    """The replicas on brokers that are fenced, unknown or out of reach, or in a failed directory.

    Source:  KRaftMetadataCache.getOfflineReplicas.
    """
    offline = []
    for replica, directory in zip(partition.replicas, partition.directories, strict=True):
        broker = state.image.cluster.broker(replica)
        if (
            broker is None
            or broker.fenced
            or state.endpoint(broker) is None
            or not broker.has_online_dir(directory)
        ):
            offline.append(replica)
    return tuple(offline)


# DescribeTopicPartitions (75): topics in the order of their names, some partitions at a time.
#
# Versions:  0 (KIP-966).


DescribedTopic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
DescribedPartition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition
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
        rejection: DescribeTopicPartitionsResponse = error_response(request, error, version=version)
        return rejection
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
                described.append(_unknown_topic(name))
            continue
        start = first_partition if name == first_topic else 0
        stop = min(len(topic.partitions), start + limit)
        partitions = tuple(
            _described_partition(state, index, topic.partitions[index])
            for index in range(start, stop)
        )
        described.append(
            DescribedTopic(
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


def _unknown_topic(name: str) -> DescribedTopic:
    valid = invalid_name_reason(name) is None
    return DescribedTopic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if valid
        else ErrorCode.INVALID_TOPIC_EXCEPTION,
        name=name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=ON_TOPIC,
    )


def _described_partition(
    state: ApiState, index: int, partition: PartitionRegistration
) -> DescribedPartition:
    leader = state.image.cluster.broker(partition.leader)
    reachable = leader is not None and state.endpoint(leader) is not None
    return DescribedPartition(
        partition_index=index,
        leader_id=partition.leader if reachable else -1,
        leader_epoch=partition.leader_epoch,
        replica_nodes=partition.replicas,
        isr_nodes=partition.isr,
        eligible_leader_replicas=partition.elr,
        last_known_elr=partition.last_known_elr,
        offline_replicas=offline_replicas(state, partition),
    )
