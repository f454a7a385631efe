"""What a leader that was elected uncleanly has to undo before it reports its recovery (KIP-704).

An unclean election may have lost the end of a transaction, and nobody will write it any more. As
KIP-704's text has it the leader aborts such transactions itself, stays RECOVERING until it has, and
takes no replica into the ISR before the controller has heard of it. As shipped it does none of it.

Source:  KIP-704, "Leader recovery"; the shape of a marker: EndTransactionMarker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from minicluster.log import Record, RecordBatch
from minicluster.log.batch import CONTROL_BIT, TRANSACTIONAL_BIT

_MARKER_VERSION = 0
_ABORT = 0
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
NO_COORDINATOR_EPOCH = -1

Producer = tuple[int, int]


def open_transactions(batches: Iterable[RecordBatch]) -> tuple[Producer, ...]:
    """The producers (id, epoch) whose transaction no marker ends, in order of its first batch."""
    undecided: dict[int, int] = {}
    for batch in batches:
        if not batch.is_transactional:
            continue
        if batch.is_control:
            undecided.pop(batch.producer_id, None)
        else:
            undecided[batch.producer_id] = batch.producer_epoch
    return tuple(undecided.items())


def abort_marker(producer: Producer, leader_epoch: int, now_ms: int) -> RecordBatch:
    """The control batch that aborts a producer's transaction; it goes to the end of the log."""
    producer_id, producer_epoch = producer
    marker = Record(
        0,
        now_ms,
        _KEY.pack(_MARKER_VERSION, _ABORT),
        _VALUE.pack(_MARKER_VERSION, NO_COORDINATOR_EPOCH),
    )
    return RecordBatch.of(
        [marker],
        leader_epoch=leader_epoch,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        attributes=CONTROL_BIT | TRANSACTIONAL_BIT,
    )
