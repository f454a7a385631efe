"""Promises of responses about the state, besides those of the log rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m

Change = tuple[int, PartitionRegistration | None]
"""A partition number and the state that it had right after the request was handled."""


def changed_partitions(request: Any, image: MetadataImage) -> tuple[Change, ...]:
    """The partitions that an AlterPartition names, in their present state."""
    if not isinstance(request, m.AlterPartitionRequest):
        return ()
    return tuple(
        (part.partition_index, _partition(image, topic, part.partition_index))
        for topic in request.topics
        for part in topic.partitions
    )


_MAY_BE_WRITTEN = (
    ErrorCode.NOT_CONTROLLER,  # a deposed controller has records of unknown outcome
    ErrorCode.NEW_LEADER_ELECTED,  # a leader that its own proposal has just deposed (B9)
    ErrorCode.FENCED_LEADER_EPOCH,  # the same, in versions 0 and 1
)


def response_problems(
    request: Any, response: Any, expected: tuple[Change, ...], records_written: int
) -> Iterator[tuple[str, str]]:
    """The promises that a response breaks: a rule and the reason.

    E42: no response ever reports a failure of the controller. A6: a request that is refused as a
    whole changes nothing. B5: the response to an accepted proposal has the state and the epochs
    that it led to.
    """
    errors = list(_errors(response))
    if ErrorCode.UNKNOWN_SERVER_ERROR in errors:
        yield "E42", f"{type(request).__name__} gets UNKNOWN_SERVER_ERROR"
    refused = bool(errors) and all(errors) and not any(e in _MAY_BE_WRITTEN for e in errors)
    if refused and records_written:
        yield "A6", f"{type(request).__name__} is refused and yet writes {records_written} records"
    if not isinstance(response, m.AlterPartitionResponse):
        return
    responses = [part for topic in response.topics for part in topic.partitions]
    for part, (index, state) in zip(responses, expected, strict=False):
        if part.error_code != ErrorCode.NONE or state is None:
            continue
        reported = (part.leader_id, part.leader_epoch, part.partition_epoch, tuple(part.isr))
        holds = (state.leader, state.leader_epoch, state.partition_epoch, state.isr)
        if part.partition_index != index or reported != holds:
            yield "B5", f"partition {index}: the response has {reported}, the image {holds}"


def _partition(
    image: MetadataImage, topic: m.AlterPartitionRequest.TopicData, index: int
) -> PartitionRegistration | None:
    found = image.topics.get(topic.topic_id)
    return None if found is None else found.partitions.get(index)


def _errors(response: Any) -> Iterator[int]:
    """The error codes of a response: those of its items, or where it has none, its own."""
    items = [item for name in _ITEMS for item in getattr(response, name, ())]
    top = getattr(response, "error_code", None)
    if top or (top is not None and not items):
        yield top
    for item in items:
        yield from _errors(item)


_ITEMS = (
    "topics",
    "responses",
    "results",
    "replica_election_results",
    "partition_result",
    "partitions",
    "directories",
)
"""The fields of responses that hold their items, at any level."""
