"""The rows that one partition leaves in the table ``partition_event`` of the trace."""

from __future__ import annotations

import json
from collections.abc import Sequence

from minicluster.effects import Trace
from minicluster.log import RecordBatch
from minicluster.replica.partition.partition import Partition

_LEADS = frozenset(
    {"become_leader", "isr_pending", "isr_commit", "isr_revert", "hw", "ack", "stop"}
)
_BEGINS = frozenset({"become_leader", "become_follower"})


def trace(
    partition: Partition,
    kind: str,
    *,
    offset: int | None = None,
    hw_old: int | None = None,
    error: str | None = None,
    appended: Sequence[RecordBatch] = (),
) -> None:
    """Record an event with the partition's state after it.

    Shapes:  rows of a leader's events also hold ISR, maximal ISR and the fetch state of its
             followers: {broker: [log end, leader epoch in which it was learned, broker epoch]}.
             appended: of an append; those above the offset were not appended.
    """
    context = partition.context
    if not context.config.traced:
        return
    row = dict(partition.blank_trace_row)
    row["kind"] = kind
    row["leader_epoch"] = partition.leader_epoch
    row["partition_epoch"] = partition.partition_epoch
    row["hw_old"] = partition.high_watermark if hw_old is None else hw_old
    row["hw_new"] = partition.high_watermark
    row["leo"] = partition.log_end_offset
    row["offset"] = offset
    row["error"] = error
    if kind == "append":
        row["epochs"] = _epochs(appended, -1 if offset is None else offset)
    elif kind in _BEGINS:
        row["epochs"] = [number for entry in partition.log.epochs.entries for number in entry]
    if partition.is_leader and kind == "append":
        state = partition.isr_state
        row["isr"] = state.isr
        row["maximal_isr"] = state.maximal_isr
    elif partition.is_leader and kind in _LEADS:
        state = partition.isr_state
        row["isr"] = state.isr
        row["maximal_isr"] = state.maximal_isr
        row["min_isr"] = partition.effective_min_isr
        row["follower_leos"] = json.dumps(
            {
                str(broker): [r.log_end_offset, r.leader_epoch, r.broker_epoch]
                for broker, r in partition.remote_replicas.items()
            }
        )
    context.effects.append(Trace("partition_event", row))


def _epochs(appended: Sequence[RecordBatch], last_offset: int) -> list[int]:
    """Each leader epoch of the batches, and the offset from which on they have it."""
    found: list[int] = []
    for batch in appended:
        if batch.base_offset > last_offset:
            break
        if not found or found[-2] != batch.leader_epoch:
            found += (batch.leader_epoch, batch.base_offset)
    return found
