"""The trace rows of responses to members of groups and to transactional producers.

own        a partition that a member has been assigned
commit     an offset that was committed          committed  one that was fetched, -1 for none
pending    an offset that counts once the transaction of its producer is committed
init, end  a producer id was given to a transactional id; a transaction was ended
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from uuid import UUID

from minicluster.clients.classic_member import assigned_partitions
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.uuids import ZERO_UUID, format_uuid

_NO_PARTITION = -1

Row = dict[str, Any]


def record_row(
    kind: str, topic: str, topic_id: UUID, part: int, offset: int | None, value: str | None
) -> Row:
    """A row about one partition."""
    return {
        "f": kind,
        "topic": topic or None,
        "topic_id": None if topic_id == ZERO_UUID else format_uuid(topic_id),
        "part": part,
        "offset": offset,
        "value": value,
    }


def group_rows(request: Any, response: Any) -> Iterator[Row]:
    """The rows of one response; none of another kind, or of one with an error."""
    rows = _ROWS.get(type(request))
    return iter(()) if rows is None else rows(request, response)


def _synced(request: Any, response: Any) -> Iterator[Row]:
    if response.error_code != ErrorCode.NONE:
        return
    try:
        places = assigned_partitions(response.assignment)
    except ProtocolError:  # of another type than consumers
        return
    for topic, index in places:
        yield record_row("own", topic, ZERO_UUID, index, None, None) | {
            "group_id": request.group_id,
            "member_id": request.member_id,
            "instance_id": request.group_instance_id,
            "generation": request.generation_id,
        }


def _beaten(request: Any, response: Any) -> Iterator[Row]:
    if response.error_code != ErrorCode.NONE or response.assignment is None:
        return
    for topic in response.assignment.topic_partitions:
        for index in topic.partitions:
            yield record_row("own", "", topic.topic_id, index, None, None) | {
                "group_id": request.group_id,
                "member_id": response.member_id,
                "instance_id": request.instance_id,
                "generation": response.member_epoch,
            }


def _committed(request: Any, response: Any) -> Iterator[Row]:
    for row in _offsets("commit", request, response):
        yield row | {
            "member_id": request.member_id,
            "generation": request.generation_id_or_member_epoch,
        }


def _pending(request: Any, response: Any) -> Iterator[Row]:
    for row in _offsets("pending", request, response):
        yield row | {
            "transactional_id": request.transactional_id,
            "producer_id": request.producer_id,
            "producer_epoch": request.producer_epoch,
        }


def _offsets(kind: str, request: Any, response: Any) -> Iterator[Row]:
    """The offsets of a request that its response has accepted."""
    accepted = [
        (topic.name, _id_of(topic), partition.partition_index)
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE
    ]
    if not accepted:
        return
    sent = {
        (topic.name, _id_of(topic), partition.partition_index): partition.committed_offset
        for topic in request.topics
        for partition in topic.partitions
    }
    for place in accepted:
        if place in sent:
            yield record_row(kind, *place, sent[place], None) | {"group_id": request.group_id}


def _id_of(topic: Any) -> UUID:
    """The id by which a topic is named; some requests have names alone."""
    topic_id: UUID = getattr(topic, "topic_id", ZERO_UUID)
    return topic_id


def _fetched(request: Any, response: Any) -> Iterator[Row]:
    several = [(group.group_id, group.error_code, group.topics) for group in response.groups]
    groups = several or [(request.group_id, response.error_code, response.topics)]
    for group_id, error, topics in groups:
        for topic in topics if error == ErrorCode.NONE else ():
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.NONE:
                    index, offset = partition.partition_index, partition.committed_offset
                    place = topic.name, _id_of(topic), index
                    yield record_row("committed", *place, offset, None) | {
                        "group_id": group_id,
                        "stable": request.require_stable,
                    }


def _initialized(request: Any, response: Any) -> Iterator[Row]:
    if response.error_code == ErrorCode.NONE and request.transactional_id is not None:
        yield _without_partition("init") | {
            "transactional_id": request.transactional_id,
            "producer_id": response.producer_id,
            "producer_epoch": response.producer_epoch,
        }


def _ended(request: Any, response: Any) -> Iterator[Row]:
    if response.error_code == ErrorCode.NONE:
        yield _without_partition("end") | {
            "transactional_id": request.transactional_id,
            "producer_id": request.producer_id,
            "producer_epoch": request.producer_epoch,
            "committed": request.committed,
        }


def _without_partition(kind: str) -> Row:
    return record_row(kind, "", ZERO_UUID, _NO_PARTITION, None, None)


_ROWS: Mapping[type, Callable[[Any, Any], Iterator[Row]]] = {
    m.SyncGroupRequest: _synced,
    m.ConsumerGroupHeartbeatRequest: _beaten,
    m.OffsetCommitRequest: _committed,
    m.OffsetFetchRequest: _fetched,
    m.TxnOffsetCommitRequest: _pending,
    m.InitProducerIdRequest: _initialized,
    m.EndTxnRequest: _ended,
}
