"""The committed offsets of a group, as one of its members fetches and commits them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from minicluster.clients.client import BACKOFF_MS, COORDINATOR_ERRORS, GROUP, Client, TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    OffsetCommitRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from minicluster.values import Value

_FETCH_VERSION = 9
_COMMIT_VERSION = 9
_NO_OFFSET = -1
_TRIED_AGAIN = COORDINATOR_ERRORS | {
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
    ErrorCode.REQUEST_TIMED_OUT,
}


class Membership(Value):
    """A member as it commits: generation of a classic group, or member epoch (KIP-848)."""

    group: str
    member_id: str
    generation: int
    is_consumer: bool = False


def _topics(
    topic_kind: Any, partition_kind: Any, offsets: Mapping[TopicPartition, int]
) -> tuple[Any, ...]:
    """The topics of either commit request."""
    return tuple(
        topic_kind(
            name=topic,
            partitions=tuple(
                partition_kind(partition_index=index, committed_offset=offsets[topic, index])
                for index in indexes
            ),
        )
        for topic, indexes in _by_topic(offsets).items()
    )


def _by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    topics: dict[str, list[int]] = {}
    for topic, index in sorted(places):
        topics.setdefault(topic, []).append(index)
    return topics


def fetch_offsets(
    client: Client,
    member: Membership,
    places: Iterable[TopicPartition],
    then: Callable[[dict[TopicPartition, int] | None, int], None],
    now_ms: int,
) -> None:
    """Fetch committed offsets, once no transaction holds one open; 0 where there is none.

    The coordinator answers UNSTABLE_OFFSET_COMMIT while a transaction of the group is open
    (KIP-447): it may still commit, and the next owner of a partition must not transform again what
    it has transformed.

    Shapes:  ``then`` takes None where the member has left the group.
    """
    kind = OffsetFetchRequest
    group = kind.OffsetFetchRequestGroup(
        group_id=member.group,
        member_id=member.member_id if member.is_consumer else None,
        member_epoch=member.generation if member.is_consumer else -1,
        topics=tuple(
            kind.OffsetFetchRequestTopics(name=topic, partition_indexes=tuple(indexes))
            for topic, indexes in _by_topic(places).items()
        ),
    )
    request = kind(groups=(group,), require_stable=True)
    timer = client.new_timer("offsets")

    def on_end(response: Any | None, at_ms: int) -> None:
        if response is None:
            client.forget_coordinators()
            client.after(timer, BACKOFF_MS, again, at_ms)
            return
        group_offsets = response.groups[0]
        offsets: dict[TopicPartition, int] = {}
        errors = {group_offsets.error_code}
        for topic in group_offsets.topics:
            for partition in topic.partitions:
                errors.add(partition.error_code)
                offset = partition.committed_offset
                offsets[topic.name, partition.partition_index] = max(offset, 0)
        errors.discard(ErrorCode.NONE)
        if errors & _TRIED_AGAIN:
            if errors & COORDINATOR_ERRORS:
                client.forget_coordinators()
            client.after(timer, BACKOFF_MS, again, at_ms)
        else:
            then(None if errors else offsets, at_ms)

    def again(at_ms: int) -> None:
        client.with_coordinator(
            member.group,
            GROUP,
            lambda node, later_ms: client.send(node, request, _FETCH_VERSION, on_end),
            at_ms,
        )

    again(now_ms)


def first_error(response: Any | None) -> ErrorCode:
    """The first error of a response to a commit, NETWORK_EXCEPTION without one."""
    if response is None:
        return ErrorCode.NETWORK_EXCEPTION
    codes = [partition.error_code for topic in response.topics for partition in topic.partitions]
    return ErrorCode.for_code(next((code for code in codes if code), 0))


def transactional_commit(
    transactional_id: str,
    producer: tuple[int, int],
    member: Membership,
    offsets: Mapping[TopicPartition, int],
) -> TxnOffsetCommitRequest:
    """The request that writes offsets in a transaction.

    Shapes:  producer: id and epoch.
    """
    kind = TxnOffsetCommitRequest
    return kind(
        transactional_id=transactional_id,
        group_id=member.group,
        producer_id=producer[0],
        producer_epoch=producer[1],
        generation_id=member.generation,
        member_id=member.member_id,
        topics=_topics(
            kind.TxnOffsetCommitRequestTopic, kind.TxnOffsetCommitRequestPartition, offsets
        ),
    )


def commit_offsets(
    client: Client,
    member: Membership,
    offsets: Mapping[TopicPartition, int],
    then: Callable[[ErrorCode, int], None],
    now_ms: int,
) -> None:
    """Commit offsets; ``then`` takes the first error, NETWORK_EXCEPTION without a response."""
    kind = OffsetCommitRequest
    request = kind(
        group_id=member.group,
        generation_id_or_member_epoch=member.generation,
        member_id=member.member_id,
        topics=_topics(kind.OffsetCommitRequestTopic, kind.OffsetCommitRequestPartition, offsets),
    )

    def on_end(response: Any | None, at_ms: int) -> None:
        error = first_error(response)
        if response is None or error in COORDINATOR_ERRORS:
            client.forget_coordinators()
        then(error, at_ms)

    client.with_coordinator(
        member.group,
        GROUP,
        lambda node, at_ms: client.send(node, request, _COMMIT_VERSION, on_end),
        now_ms,
    )
