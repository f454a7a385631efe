"""The trace rows of what Kafka's clients were returned (``client_record``), response by response.

They are derived from the exchanges when the trace is read or saved, so a client pays nothing. The
online checks take one row for each batch, without its values, as the response leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from minicluster.actors.recording.exchange import Exchange
from minicluster.actors.recording.group_records import Row, group_rows, record_row
from minicluster.clients.reader import visible_batches
from minicluster.log.batch import RecordBatch
from minicluster.log.errors import InvalidBatch
from minicluster.log.records import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchRequest, ListOffsetsRequest, ProduceRequest
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.requests.read_from_log import CONSUMER

LATEST = -1  # ListOffsets: the timestamp that means the end of the partition

Entry = tuple[int, int, str | None, RecordBatch]  # index in the request, offset, value, batch
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
        rows = group_rows(request, exchange.response)
    of_the_exchange = {
        "rpc": exchange.id,
        "client_id": exchange.client_id,
        "connection": exchange.connection,
        "broker": exchange.dst,
        "resp_seq": exchange.resp_seq,
        "send_seq": exchange.send_seq,
        "received_seq": exchange.received_seq,
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
            for index, _, value, batch in entries(sent.get(place)):
                yield record_row("send", *place, partition.base_offset + index, value) | {
                    "acks": request.acks,
                    "producer_id": batch.producer_id,
                    "producer_epoch": batch.producer_epoch,
                }


def _fetched(request: FetchRequest, response: Any, entries: Entries) -> Iterator[Row]:
    """Records that a consumer read; a follower reads beyond the high watermark."""
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        return
    wanted = {
        (topic.topic, topic.topic_id, partition.partition): partition.fetch_offset
        for topic in request.topics
        for partition in topic.partitions
    }
    for topic in response.responses:
        for partition in topic.partitions:
            if partition.error_code != ErrorCode.NONE:
                continue
            place = topic.topic, topic.topic_id, partition.partition_index
            returned = {
                "fetch_offset": wanted.get(place),
                "high_watermark": partition.high_watermark,
                "last_stable_offset": partition.last_stable_offset,
                "isolation": request.isolation_level,
            }
            yield record_row("fetch", *place, None, None) | returned
            if not partition.records:
                continue
            batches = _batches(partition.records)
            seen = visible_batches(batches, partition.aborted_transactions)
            shown = {batch.base_offset for batch in seen}
            for _, offset, value, batch in entries(partition.records):
                yield (
                    record_row("read", *place, offset, value)
                    | returned
                    | {
                        "leader_epoch": batch.leader_epoch,
                        "batch_offset": batch.base_offset,
                        "visible": batch.base_offset in shown,
                        "producer_id": batch.producer_id,
                        "producer_epoch": batch.producer_epoch,
                        "sequence": batch.sequence_at(offset),
                    }
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
                yield record_row("list", *place[:1], ZERO_UUID, place[1], None, None) | {
                    "high_watermark": partition.offset,
                    "leader_epoch": partition.leader_epoch,
                }


def _records(records: Any) -> Iterator[Entry]:
    """Every record, with its value as ``replica_log`` has it; a marker has none."""
    index = 0
    for batch in _batches(records):
        try:
            for record in batch.records:
                text = (record.value or b"").decode("utf-8", "backslashreplace")
                yield index, record.offset, None if batch.is_control else text, batch
                index += 1
        except InvalidBatch:
            return


def _last_records(records: Any) -> Iterator[Entry]:
    """The last record of each batch."""
    index = -1
    for batch in _batches(records):
        index += batch.count
        yield index, batch.last_offset, None, batch


def _batches(records: Any) -> tuple[RecordBatch, ...]:
    try:
        return Records.of(records).batches
    except InvalidBatch:
        return ()
