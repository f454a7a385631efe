"""The parts of a Produce that the trace and the checks need, taken once, as it is sent.

Its response may come when the request has long been folded into the hash and its body is gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from minicluster.actors.recording.values import value_text
from minicluster.log.errors import InvalidBatch
from minicluster.log.records import Records
from minicluster.protocol.messages import ProduceRequest
from minicluster.values import dataclass

Place = tuple[str, UUID, int]  # topic name, topic id, partition


@dataclass(frozen=True, slots=True)
class SentBatch:
    """A batch without its records.

    Shapes:  values: of its records as ``values.value_text`` has them, None for a marker; empty
             where the records cannot be read; None where no row will show them.
    """

    count: int
    producer_id: int
    producer_epoch: int
    values: tuple[str | None, ...] | None


Sent = Mapping[Place, tuple[SentBatch, ...]]


def sent_batches(request: ProduceRequest, *, with_values: bool) -> Sent:
    """The batches of a Produce, by the places that they are sent to.

    Shapes:  with_values: a row of the trace is to show each record.
    """
    return {
        (topic.name, topic.topic_id, partition.index): _batches(partition.records, with_values)
        for topic in request.topic_data
        for partition in topic.partition_data
    }


def _batches(records: Any, with_values: bool) -> tuple[SentBatch, ...]:
    try:
        batches = Records.of(records).batches
    except InvalidBatch:
        return ()
    sent = []
    readable = with_values
    for batch in batches:
        values: tuple[str | None, ...] | None = () if with_values else None
        if readable:
            try:
                records_inside = batch.records
            except InvalidBatch:
                readable = False  # nothing behind it has a place that is known
            else:
                is_control = batch.is_control
                values = tuple(
                    None if is_control else value_text(record.value) for record in records_inside
                )
        sent.append(SentBatch(batch.count, batch.producer_id, batch.producer_epoch, values))
    return tuple(sent)
