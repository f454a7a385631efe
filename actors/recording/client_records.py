"""The trace rows of what Kafka's clients were returned (``client_record``), response by response.

They are derived from the exchanges when the trace is read or saved, so a client pays nothing. The
online checks take one row for each batch, without its values, as the response leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from minicluster.actors.recording.exchange import Exchange
from minicluster.log.batch import RecordBatch
from minicluster.log.errors import InvalidBatch
from minicluster.log.records import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest, ListOffsetsRequest, ProduceRequest
from minicluster.protocol.uuids import ZERO_UUID, format_uuid
from minicluster.replica.requests.read_from_log import CONSUMER

LATEST = -1  # ListOffsets: the timestamp that means the end of the partition

Row = dict[str, Any]
Entry = tuple[int, int, int, str | None]  # index in the request, offset, leader epoch, value
Entries = Callable[[Any], Iterator[Entry]]


def client_rows(exchange: Exchange, *, of_batches: bool = False) -> Iterator[Row]:
    """The rows of one response: records that were acknowledged or read, and high watermarks.

    Shapes:  of_batches: of each batch its last record alone, without the value, so that nothing is
             decompressed.
    """
    entries = _last_records if of_batches else _records
    request = exchange.request
    if isinstance(request, ProduceRequest):
        rows = _sent(request, exchange.response, entries)
    elif isinstance(request, FetchRequest):
        rows = _fetched(request, exchange.response, entries)
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


def _sent(request: ProduceRequest, response: Any, entries: Entries) -> Iterator[Row]:
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
            for index, _, _, value in entries(sent.get(place)):
                yield _row("send", *place, partition.base_offset + index, value) | {
                    "acks": request.acks
                }


def _fetched(request: FetchRequest, response: Any, entries: Entries) -> Iterator[Row]:
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
            for _, offset, leader_epoch, value in entries(partition.records):
                yield (
                    _row("read", *place, offset, value) | returned | {"leader_epoch": leader_epoch}
                )


def _listed(request: ListOffsetsRequest, response: Any) -> Iterator[Row]:
    """The end of a partition as a consumer sees it that reads uncommitted transactions."""
    if request.replica_id != CONSUMER or request.isolation_level:
        return  # another id receives the log's end, that of a debugging consumer as well
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


def _records(records: Any) -> Iterator[Entry]:
    """Every record, with its value as ``replica_log`` has it."""
    index = 0
    for batch in _batches(records):
        try:
            for record in batch.records:
                value = (record.value or b"").decode("utf-8", "backslashreplace")
                yield index, record.offset, batch.leader_epoch, value
                index += 1
        except InvalidBatch:
            return


def _last_records(records: Any) -> Iterator[Entry]:
    """The last record of each batch."""
    index = -1
    for batch in _batches(records):
        index += batch.count
        yield index, batch.last_offset, batch.leader_epoch, None


def _batches(records: Any) -> tuple[RecordBatch, ...]:
    try:
        return Records.of(records).batches
    except InvalidBatch:
        return ()
