"""The checks of CreateTopics and CreatePartitions that any controller does.

Source:  ControllerApis.createTopics, createPartitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from minicluster.controller.screening.screened import Screened
from minicluster.java_order import hash_map_order, string_hash
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from minicluster.protocol.topics import METADATA_TOPIC

TopicResult = CreateTopicsResponse.CreatableTopicResult
PartitionsResult = CreatePartitionsResponse.CreatePartitionsTopicResult

DUPLICATE = "Duplicate topic name."


def screen_create_topics(request: CreateTopicsRequest) -> Screened:
    """Refuse names that come twice, and the metadata topic.

    Errors:  INVALID_REQUEST per topic, behind the results of all others.
    """
    duplicates = _duplicates(topic.name for topic in request.topics)
    refused = [_refused_topic(name, DUPLICATE) for name in duplicates]
    names = {topic.name for topic in request.topics}
    if METADATA_TOPIC in names and METADATA_TOPIC not in duplicates:
        message = f"Creation of internal topic {METADATA_TOPIC} is prohibited."
        refused.append(_refused_topic(METADATA_TOPIC, message))
    out = {*duplicates, METADATA_TOPIC}
    left = replace(request, topics=tuple(t for t in request.topics if t.name not in out))
    return Screened(left, lambda made: replace(made, topics=(*made.topics, *refused)))


def screen_create_partitions(request: CreatePartitionsRequest) -> Screened:
    """Refuse names that come twice; the others come in the order of a hash set of all names.

    Errors:  INVALID_REQUEST per topic, ahead of the results of all others.
    """
    duplicates = _duplicates(topic.name for topic in request.topics)
    refused = [
        PartitionsResult(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message=DUPLICATE)
        for name in duplicates
    ]
    by_name = {topic.name: topic for topic in request.topics}
    order = hash_map_order(by_name, string_hash)
    left = replace(request, topics=tuple(by_name[n] for n in order if n not in duplicates))
    return Screened(left, lambda made: replace(made, results=(*refused, *made.results)))


def _duplicates(names: Iterable[str]) -> list[str]:
    """The names that come twice, in the order of Kafka's hash set."""
    times = Counter(names)
    return hash_map_order((name for name, count in times.items() if count > 1), string_hash)


def _refused_topic(name: str, message: str) -> TopicResult:
    return TopicResult(name=name, error_code=ErrorCode.INVALID_REQUEST, error_message=message)
