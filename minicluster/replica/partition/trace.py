"""The rows that one partition leaves in the table ``partition_event`` of the trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minicluster.effects import Trace
from minicluster.log import RecordBatch
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.replica_state import ReplicaState

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
    replica_log = partition.replica_log
    high_watermark = replica_log.high_watermark
    row = partition.blank_trace_row.copy()
    row["kind"] = kind
    row["leader_epoch"] = partition.leader_epoch
    row["partition_epoch"] = partition.partition_epoch
    row["hw_old"] = high_watermark if hw_old is None else hw_old
    row["hw_new"] = high_watermark
    row["leo"] = replica_log.log.end_offset
    row["offset"] = offset
    row["error"] = error
    if kind == "append":
        row["epochs"] = _epochs(appended, -1 if offset is None else offset)
    elif kind in _BEGINS:
        row["epochs"] = [number for entry in replica_log.log.epochs.entries for number in entry]
    if (kind in _LEADS or kind == "append") and partition.is_leader:
        state = partition.isr_state
        row["isr"] = state.isr
        row["maximal_isr"] = state.maximal_isr
        if kind != "append":
            row["min_isr"] = partition.effective_min_isr
            row["follower_leos"] = _fetch_states(partition.remote_replicas)
    context.effects.append(Trace("partition_event", row))


def _fetch_states(replicas: Mapping[int, ReplicaState]) -> str:
    """The fetch states of a leader's followers as JSON, which is written at each acknowledgement:
    Python's encoder takes six times as long.
    """
    states = [
        f'"{broker}": [{replica.log_end_offset}, {replica.leader_epoch}, '
        f"{'null' if replica.broker_epoch is None else replica.broker_epoch}]"
        for broker, replica in replicas.items()
    ]
    return f"{{{', '.join(states)}}}"


def _epochs(appended: Sequence[RecordBatch], last_offset: int) -> list[int]:
    """Each leader epoch of the batches, and the offset from which on they have it."""
    found: list[int] = []
    for batch in appended:
        if batch.base_offset > last_offset:
            break
        if not found or found[-2] != batch.leader_epoch:
            found += (batch.leader_epoch, batch.base_offset)
    return found
