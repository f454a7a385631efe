"""The answer that says one error about everything that a request asked for.

Source:  the getErrorResponse methods of Kafka's requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m


def error_response(request: Any, error: ErrorCode, version: int) -> Any:
    """The response to a request that failed as a whole, as this version can carry it."""
    name = type(request).__name__
    if name == "ElectLeadersRequest":
        return _elect_leaders(request, error, version)
    per_item = _PER_ITEM.get(name)
    if per_item is not None:
        return per_item(request, error)
    response = getattr(m, type(request).__name__.removesuffix("Request") + "Response")
    return response(error_code=error)


def _create_topics(request: Any, error: ErrorCode) -> Any:
    kind = m.CreateTopicsResponse
    return kind(
        topics=tuple(
            kind.CreatableTopicResult(name=topic.name, error_code=error) for topic in request.topics
        )
    )


def _delete_topics(request: Any, error: ErrorCode) -> Any:
    kind = m.DeleteTopicsResponse
    named = [kind.DeletableTopicResult(name=name, error_code=error) for name in request.topic_names]
    given = [
        kind.DeletableTopicResult(name=topic.name, topic_id=topic.topic_id, error_code=error)
        for topic in request.topics
    ]
    return kind(responses=(*named, *given))


def _configs(request: Any, error: ErrorCode) -> Any:
    kind = m.IncrementalAlterConfigsResponse
    return kind(
        responses=tuple(
            kind.AlterConfigsResourceResponse(
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
                error_code=error,
            )
            for resource in request.resources
        )
    )


def _elect_leaders(request: Any, error: ErrorCode, version: int) -> Any:
    kind = m.ElectLeadersResponse
    return kind(
        error_code=error if version >= 1 else ErrorCode.NONE,
        replica_election_results=tuple(
            kind.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=tuple(
                    kind.PartitionResult(partition_id=index, error_code=error)
                    for index in topic.partitions
                ),
            )
            for topic in request.topic_partitions or ()
        ),
    )


def _create_partitions(request: Any, error: ErrorCode) -> Any:
    kind = m.CreatePartitionsResponse
    return kind(
        results=tuple(
            kind.CreatePartitionsTopicResult(name=topic.name, error_code=error)
            for topic in request.topics
        )
    )


def _produce(request: Any, error: ErrorCode) -> Any:
    kind = m.ProduceResponse
    return kind(
        responses=tuple(
            kind.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=tuple(
                    kind.PartitionProduceResponse(
                        index=data.index, error_code=error, base_offset=-1
                    )
                    for data in topic.partition_data
                ),
            )
            for topic in request.topic_data
        )
    )


def _list_offsets(request: Any, error: ErrorCode) -> Any:
    kind = m.ListOffsetsResponse
    return kind(
        topics=tuple(
            kind.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    kind.ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, error_code=error
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        )
    )


_PER_ITEM: dict[str, Callable[[Any, ErrorCode], Any]] = {
    "CreateTopicsRequest": _create_topics,
    "DeleteTopicsRequest": _delete_topics,
    "IncrementalAlterConfigsRequest": _configs,
    "CreatePartitionsRequest": _create_partitions,
    "ProduceRequest": _produce,
    "ListOffsetsRequest": _list_offsets,
}
