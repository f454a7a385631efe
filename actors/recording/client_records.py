"""The trace rows of what Kafka's clients were returned (``client_record``), response by response.

They are derived from the exchanges when the trace is read or saved, so a client pays nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from minicluster.actors.recording.exchange import Exchange
from minicluster.log.errors import InvalidBatch
from minicluster.log.records import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest, ListOffsetsRequest, ProduceRequest
from minicluster.protocol.uuids import ZERO_UUID, format_uuid

LATEST = -1  # ListOffsets: the timestamp that means the end of the partition

Row = dict[str, Any]


def client_rows(exchange: Exchange) -> Iterator[Row]:
    """The rows of one response: records that were acknowledged or read, and high watermarks."""
    request = exchange.request
    if isinstance(request, ProduceRequest):
        rows = _sent(request, exchange.response)
    elif isinstance(request, FetchRequest):
        rows = _fetched(request, exchange.response)
    elif isinstance(request, ListOffsetsRequest):
        rows = _listed(request, exchange.response)
    else:
        return
    of_the_exchange = {
        "rpc": exchange.id,
        "client_id": exchange.client_id,
        "connection": exchange.connection,
        "broker": exchange.dst,
        "resp_seq": exchange.resp_seq,
    }
    for row in rows:
        yield {**of_the_exchange, **row}


def _sent(request: ProduceRequest, response: Any) -> Iterator[Row]:
    """Records that were acknowledged; the offset of a duplicate may be unknown (-1)."""
    sent = {
        (topic.name, topic.topic_id, partition.index): partition.records
        for topic in request.topic_data
        for partition in topic.partition_data
    }
    for topic in response.responses:
        for partition in topic.partition_responses:
            place = topic.name, topic.topic_id, partition.index
            if partition.error_code != ErrorCode.NONE or partition.base_offset < 0:
                continue
            for index, (_, _, value) in enumerate(_values(sent.get(place))):
                yield _row("send", *place, partition.base_offset + index, value) | {
                    "acks": request.acks
                }


def _fetched(request: FetchRequest, response: Any) -> Iterator[Row]:
    """Records that a consumer read; a follower reads beyond the high watermark."""
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        return
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.error_code != ErrorCode.NONE:
                continue
            place = topic.topic, topic.topic_id, partition.partition_index
            returned = {"high_watermark": partition.high_watermark}
            yield _row("fetch", *place, None, None) | returned
            for offset, leader_epoch, value in _values(partition.records):
                yield (
                    _row("read", *place, offset, value) | returned | {"leader_epoch": leader_epoch}
                )


def _listed(request: ListOffsetsRequest, response: Any) -> Iterator[Row]:
    """The end of a partition as a consumer sees it that reads uncommitted transactions."""
    if request.replica_id >= 0 or request.isolation_level:
        return
    wanted = {
        (topic.name, partition.partition_index)
        for topic in request.topics
        for partition in topic.partitions
        if partition.timestamp == LATEST
    }
    for topic in response.topics:
        for partition in topic.partitions:
            place = topic.name, partition.partition_index
            if partition.error_code == ErrorCode.NONE and place in wanted and partition.offset >= 0:
                yield _row("list", topic.name, ZERO_UUID, partition.partition_index, None, None) | {
                    "high_watermark": partition.offset,
                    "leader_epoch": partition.leader_epoch,
                }


def _row(
    kind: str, topic: str, topic_id: UUID, part: int, offset: int | None, value: str | None
) -> Row:
    return {
        "f": kind,
        "topic": topic or None,
        "topic_id": None if topic_id == ZERO_UUID else format_uuid(topic_id),
        "part": part,
        "offset": offset,
        "value": value,
    }


def _values(records: Any) -> Iterator[tuple[int, int, str]]:
    """Offset, leader epoch and value of each record, as ``replica_log`` has the values."""
    try:
        for batch in Records.of(records).batches:
            for record in batch.records:
                value = (record.value or b"").decode("utf-8", "backslashreplace")
                yield record.offset, batch.leader_epoch, value
    except InvalidBatch:
        return
