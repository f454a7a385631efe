"""Recovery of a leader from its unclean election (KIP-704).

An unclean election may have lost the end of a transaction, and nobody will write it any more. By
KIP-704's text the leader aborts such transactions itself, stays RECOVERING until it has, and takes
no replica into the ISR before it has reported that to the controller. As shipped it does nothing.

Source:  KIP-704, "Leader recovery"; the shape of a marker: EndTransactionMarker.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from minicluster.log import Record, RecordBatch
from minicluster.log.batch import CONTROL_BIT, TRANSACTIONAL_BIT
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.trace import trace

_MARKER_VERSION = 0
_ABORT = 0
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
NO_COORDINATOR_EPOCH = -1

Producer = tuple[int, int]


def abort_open_transactions(partition: Partition, now_ms: int) -> None:
    """Append an abort marker for each open transaction."""
    for producer in open_transactions(partition.log.batches):
        marker = abort_marker(producer, partition.leader_epoch, now_ms)
        placed = partition.replica_log.append_as_leader(
            marker, partition.leader_epoch, partition.log_config, now_ms
        )
        trace(partition, "append", offset=placed.last_offset)


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
    """The control batch that aborts a producer's transaction."""
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
