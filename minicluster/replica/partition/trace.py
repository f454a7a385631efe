"""The rows that one partition leaves in the table ``partition_event`` of the trace."""

from __future__ import annotations

import json

from minicluster.effects import Trace
from minicluster.replica.partition.partition import Partition

_LEADS = frozenset(
    {"become_leader", "isr_pending", "isr_commit", "isr_revert", "hw", "ack", "stop"}
)


def trace(
    partition: Partition,
    kind: str,
    *,
    offset: int | None = None,
    hw_old: int | None = None,
    error: str | None = None,
) -> None:
    """Record an event with the partition's state after it.

    Shapes:  rows of a leader's events also hold ISR, maximal ISR and the fetch state of its
             followers: {broker: [log end, leader epoch in which it was learned, broker epoch]}.
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
