"""Requests that wait for the image which makes this broker their coordinator.

Brokers publish an image within some milliseconds of each other. A client that one of them has told
of a coordinator may be there before the coordinator's own image. Kafka responds NOT_COORDINATOR,
and clients look again. Here the request is taken with the image, as if the network had been slow.

    not the leader by its own image ──▶ the leader by the newest image of any broker? ──no──▶ served
                                             └──yes──▶ waits ──own image, or LIMIT_MS──▶ served

What is served there gets the coordinator's own response. So NOT_COORDINATOR is what a broker says
that no image at least as new as its own names, and of one that still waits for its image at the
limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.effects import CancelTimer, Effect, SetTimer
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import Message
from minicluster.protocol import messages as m
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, partition_of

TIMER = "early-requests"
LIMIT_MS = 1_000

Keys = Callable[[Any], tuple[str | None, ...]]


def _group_id(request: Any) -> tuple[str]:
    return (request.group_id,)


def _transactional_id(request: Any) -> tuple[str | None]:
    return (request.transactional_id,)


def _ids_of_offset_fetch(request: m.OffsetFetchRequest) -> tuple[str, ...]:
    return (request.group_id, *(group.group_id for group in request.groups))


def _ids_of_add_partitions(request: m.AddPartitionsToTxnRequest) -> tuple[str, ...]:
    several = (each.transactional_id for each in request.transactions)
    return (request.v3_and_below_transactional_id, *several)


_GROUPS: Mapping[type[Message], Keys] = {
    m.ConsumerGroupDescribeRequest: lambda request: request.group_ids,
    m.ConsumerGroupHeartbeatRequest: _group_id,
    m.DeleteGroupsRequest: lambda request: request.groups_names,
    m.DescribeGroupsRequest: lambda request: request.groups,
    m.HeartbeatRequest: _group_id,
    m.JoinGroupRequest: _group_id,
    m.LeaveGroupRequest: _group_id,
    m.OffsetCommitRequest: _group_id,
    m.OffsetDeleteRequest: _group_id,
    m.OffsetFetchRequest: _ids_of_offset_fetch,
    m.SyncGroupRequest: _group_id,
    m.TxnOffsetCommitRequest: _group_id,
}
_TRANSACTIONS: Mapping[type[Message], Keys] = {
    m.AddOffsetsToTxnRequest: _transactional_id,
    m.AddPartitionsToTxnRequest: _ids_of_add_partitions,
    m.DescribeTransactionsRequest: lambda request: request.transactional_ids,
    m.EndTxnRequest: _transactional_id,
    m.InitProducerIdRequest: _transactional_id,
}


def is_early(
    broker_id: int,
    request: Any,
    image: MetadataImage,
    newest: Callable[[], MetadataImage | None],
) -> bool:
    """True for a request that a newer image sends to this broker, and its own image does not.

    Shapes:  newest: an image that is newer than ``image``; None: there is none.
    """
    others = [
        (topic, key)
        for topic, key in _needed(request)
        if not _coordinates(broker_id, image, topic, key)
    ]
    if not others:
        return False
    newer = newest()
    return newer is not None and any(
        _coordinates(broker_id, newer, topic, key) for topic, key in others
    )


def _needed(request: Any) -> Iterator[tuple[str, str]]:
    """The internal topics and the keys in them that a request is about."""
    kind = type(request)
    for topic, table in ((GROUP_METADATA_TOPIC, _GROUPS), (TRANSACTION_STATE_TOPIC, _TRANSACTIONS)):
        if kind in table:
            yield from ((topic, key) for key in table[kind](request) if key)


def _coordinates(broker_id: int, image: MetadataImage, topic_name: str, key: str) -> bool:
    topic = image.topics.named(topic_name)
    if not topic:
        return False
    partition = topic.partitions.get(partition_of(key, len(topic.partitions)))
    return partition is not None and partition.leader == broker_id


@dataclass(frozen=True, slots=True)
class _Early:
    token: Any
    request: Any
    until_ms: int


class EarlyRequests:
    """The requests that wait, oldest first."""

    def __init__(self) -> None:
        self._waiting: list[_Early] = []

    def wait(self, token: Any, request: Any, now_ms: int) -> list[Effect]:
        """Hold a request until the image comes."""
        is_first = not self._waiting
        self._waiting.append(_Early(token, request, now_ms + LIMIT_MS))
        return [SetTimer(TIMER, now_ms + LIMIT_MS)] if is_first else []

    def take(self, is_still_early: Callable[[Any], bool]) -> tuple[list[Any], list[Effect]]:
        """The tokens of those that another image has ended the wait for, and the timer's effect."""
        return self._take([each for each in self._waiting if not is_still_early(each.request)])

    def on_timer(self, now_ms: int) -> tuple[list[Any], list[Effect]]:
        """The tokens of those that have waited long enough."""
        return self._take([each for each in self._waiting if each.until_ms <= now_ms])

    def _take(self, over: list[_Early]) -> tuple[list[Any], list[Effect]]:
        if not self._waiting:
            return [], []
        self._waiting = [each for each in self._waiting if each not in over]
        timer = SetTimer(TIMER, self._waiting[0].until_ms) if self._waiting else CancelTimer(TIMER)
        return [each.token for each in over], [timer]
