"""DescribeProducers (61): the idempotent producers that a replica's log remembers (KIP-664).

Versions: 0.
Source:   KafkaApis.handleDescribeProducersRequest, ReplicaManager.activeProducerState.
"""

from __future__ import annotations

from typing import Any

from minicluster.java_order import hash_map_order
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses.texts import TEXTS
from minicluster.protocol.messages import DescribeProducersResponse
from minicluster.protocol.topics import invalid_name_reason
from minicluster.replica.errors import ReplicaError
from minicluster.replica.producers.states import ProducerStateEntry
from minicluster.replica.replica_manager_state import ReplicaManagerState

NO_TRANSACTION = -1  # as the start of one


def handle_describe_producers(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Describe the producers of partitions that this broker leads or follows.

    Errors:  per partition INVALID_TOPIC_EXCEPTION, UNKNOWN_TOPIC_OR_PARTITION,
             NOT_LEADER_OR_FOLLOWER, KAFKA_STORAGE_ERROR.
    """
    kind = DescribeProducersResponse
    topics = tuple(
        kind.TopicResponse(
            name=topic.name,
            partitions=tuple(_partition(state, topic.name, i) for i in topic.partition_indexes),
        )
        for topic in request.topics
    )
    state.respond(token, kind(topics=topics))


def _partition(state: ReplicaManagerState, topic: str, index: int) -> Any:
    kind = DescribeProducersResponse.PartitionResponse
    reason = invalid_name_reason(topic)
    if reason is not None:
        return kind(
            partition_index=index,
            error_code=ErrorCode.INVALID_TOPIC_EXCEPTION,
            error_message=f"Topic name is invalid: {reason}",
        )
    if state.image.topics.named(topic) is None:  # a replica's own rejection has no message
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return kind(partition_index=index, error_code=code, error_message=TEXTS[code])
    try:
        producers = state.partition_named(topic, index).replica_log.producers
    except ReplicaError as rejection:
        return kind(partition_index=index, error_code=rejection.error)
    by_id = {entry.producer_id: entry for entry in producers}
    return kind(
        partition_index=index,
        active_producers=tuple(
            DescribeProducersResponse.ProducerState(
                producer_id=producer_id,
                producer_epoch=by_id[producer_id].epoch,
                last_sequence=by_id[producer_id].last_sequence,
                last_timestamp=by_id[producer_id].last_timestamp,
                coordinator_epoch=by_id[producer_id].coordinator_epoch,
                current_txn_start_offset=_start_offset(by_id[producer_id]),
            )
            for producer_id in hash_map_order(by_id, _long_hash)
        ),
    )


def _start_offset(entry: ProducerStateEntry) -> int:
    offset = entry.current_txn_first_offset
    return NO_TRANSACTION if offset is None else offset


def _long_hash(value: int) -> int:
    """Java's hash code of a long."""
    return (value ^ value >> 32) & 0xFFFF_FFFF
