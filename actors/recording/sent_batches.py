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
from minicluster.values import Value

Place = tuple[str, UUID, int]  # topic name, topic id, partition


class SentBatch(Value):
    """A batch without its records.

    Shapes:  values: of its records as ``values.value_text`` has them, None for a marker; empty
             where the records cannot be read.
    """

    producer_id: int
    producer_epoch: int
    values: tuple[str | None, ...]


Sent = Mapping[Place, tuple[SentBatch, ...]]


def sent_batches(request: ProduceRequest) -> Sent:
    """The batches of a Produce, by the places that they are sent to."""
    return {
        (topic.name, topic.topic_id, partition.index): _batches(partition.records)
        for topic in request.topic_data
        for partition in topic.partition_data
    }


def _batches(records: Any) -> tuple[SentBatch, ...]:
    try:
        batches = Records.of(records).batches
    except InvalidBatch:
        return ()
    sent = []
    readable = True
    for batch in batches:
        values: tuple[str | None, ...] = ()
        if readable:
            is_control = batch.is_control
            try:
                # Not ``batch.records``, which the batch keeps: its log would hold them twice.
                values = tuple(
                    None if is_control else value_text(value)
                    for _, _, _, value, _ in batch.fields()
                )
            except InvalidBatch:
                readable = False  # nothing behind it has a place that is known
        sent.append(SentBatch(batch.producer_id, batch.producer_epoch, values))
    return tuple(sent)
