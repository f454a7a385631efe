"""The trace rows of what Kafka's clients were returned (``client_record``), response by response.

They are made as the response leaves: from the response itself, and from what was taken of a
Produce as it was sent (``sent_batches``). The live rules take one row for each batch that is read,
without its values, where the trace has as many rows as it keeps; no row of a Produce.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any
from uuid import UUID

from minicluster.actors.recording.group_records import Row, group_rows, record_row
from minicluster.actors.recording.rpc_rows import RpcRow
from minicluster.actors.recording.sent_batches import Sent
from minicluster.actors.recording.values import value_text
from minicluster.clients.reader import visible_batches
from minicluster.log.batch import RecordBatch
from minicluster.log.errors import InvalidBatch
from minicluster.log.records import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    TxnOffsetCommitRequest,
)
from minicluster.protocol.uuids import ZERO_UUID, format_uuid
from minicluster.replica.requests import fetch

JUDGED_AT_THE_END = frozenset(
    {OffsetCommitRequest, OffsetFetchRequest, ProduceRequest, TxnOffsetCommitRequest}
)
"""Requests whose rows no live rule takes."""
LATEST = -1  # ListOffsets: the timestamp that means the end of the partition

Entry = tuple[int, str | None, RecordBatch]  # offset, value, batch
Entries = Callable[[Any], Iterator[Entry]]


def client_rows(
    of: RpcRow,
    sent: Sent,
    response: Any,
    topic_ids: Mapping[str, UUID],
    *,
    of_batches: bool = False,
) -> Iterator[Row]:
    """The rows of one response: records that were acknowledged or read, and high watermarks.

    A topic that is named has the id that the broker had under the name when it responded: later
    topics may have the name as well.

    Shapes:  sent: by a Produce. response: with its records. topic_ids: by name, as its broker had
             them. of_batches: of each batch that was read its last record alone, without the value,
             so that nothing is decompressed. Without ``received_seq``, which is not known yet.
    """
    request = of.request
    if isinstance(request, ProduceRequest):
        rows = _sent(request, sent, response)
    elif isinstance(request, FetchRequest):
        rows = _fetched(request, response, _last_records if of_batches else _records)
    elif isinstance(request, ListOffsetsRequest):
        rows = _listed(request, response)
    else:
        rows = group_rows(request, response)
    of_the_exchange = {
        "rpc": of.id,
        "client_id": of.client_id,
        "connection": of.connection,
        "broker": of.dst,
        "resp_seq": of.resp_seq,
        "send_seq": of.seq,
    }
    return _completed(rows, of_the_exchange, topic_ids)


def _completed(
    rows: Iterator[Row], of_the_exchange: Row, topic_ids: Mapping[str, UUID]
) -> Iterator[Row]:
    ids = cache(lambda name: format_uuid(topic_ids[name]) if name in topic_ids else None)
    for row in rows:  # ten thousand of a large commit
        if row["topic_id"] is None and row["topic"] is not None:
            row["topic_id"] = ids(row["topic"])
        row |= of_the_exchange
        yield row


def _sent(request: ProduceRequest, sent: Sent, response: Any) -> Iterator[Row]:
    """Records that were acknowledged; the offset of a duplicate may be unknown (-1)."""
    for topic in response.responses:
        for partition in topic.partition_responses:
            place, offset = (topic.name, topic.topic_id, partition.index), partition.base_offset
            if partition.error_code != ErrorCode.NONE or offset < 0:
                continue
            for batch in sent.get(place, ()):
                of_batch = record_row("send", *place, None, None) | {
                    "acks": request.acks,
                    "producer_id": batch.producer_id,
                    "producer_epoch": batch.producer_epoch,
                }
                for value in batch.values:
                    yield {**of_batch, "offset": offset, "value": value}
                    offset += 1


def _fetched(request: FetchRequest, response: Any, entries: Entries) -> Iterator[Row]:
    """Records that a consumer read; a follower reads beyond the high watermark."""
    if request.replica_id >= 0 or request.replica_state.replica_id >= 0:
        return
    shown = [
        (topic, partition)
        for topic in response.responses
        for partition in topic.partitions
        if partition.error_code == ErrorCode.NONE
    ]
    if not shown:
        return
    wanted = {
        (topic.topic, topic.topic_id, partition.partition): partition.fetch_offset
        for topic in request.topics
        for partition in topic.partitions
    }
    for topic, partition in shown:
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
        visible = {batch.base_offset for batch in seen}
        for offset, value, batch in entries(partition.records):
            yield (
                record_row("read", *place, offset, value)
                | returned
                | {
                    "leader_epoch": batch.leader_epoch,
                    "batch_offset": batch.base_offset,
                    "visible": batch.base_offset in visible,
                    "producer_id": batch.producer_id,
                    "producer_epoch": batch.producer_epoch,
                    "sequence": batch.sequence_at(offset),
                }
            )


def _listed(request: ListOffsetsRequest, response: Any) -> Iterator[Row]:
    """The end of a partition as a consumer sees it that reads uncommitted transactions."""
    if request.replica_id != fetch.CONSUMER or request.isolation_level:
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
    for batch in _batches(records):
        try:
            for record in batch.records:
                value = None if batch.is_control else value_text(record.value)
                yield record.offset, value, batch
        except InvalidBatch:
            return


def _last_records(records: Any) -> Iterator[Entry]:
    """The last record of each batch."""
    for batch in _batches(records):
        yield batch.last_offset, None, batch


def _batches(records: Any) -> tuple[RecordBatch, ...]:
    try:
        return Records.of(records).batches
    except InvalidBatch:
        return ()
