"""The rows that one partition leaves in the table ``partition_event`` of the trace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from minicluster.effects import Effect, Trace
from minicluster.protocol.uuids import format_uuid
from minicluster.trace import TABLES

if TYPE_CHECKING:
    from minicluster.replica.partition.state import PartitionState

_TABLE = "partition_event"
_LEADS = frozenset(
    {"become_leader", "isr_pending", "isr_commit", "isr_revert", "hw", "ack", "stop"}
)


class PartitionTracer:
    """Writes rows for one partition of one incarnation of a broker; silent if switched off."""

    __slots__ = ("_blank", "_on")

    def __init__(self, partition: PartitionState, *, incarnation: str, on: bool) -> None:
        self._on = on
        self._blank: Mapping[str, Any] = {
            **dict.fromkeys(TABLES[_TABLE]),
            "broker": partition.broker_id,
            "incarnation": incarnation,
            "topic": partition.topic,
            "topic_id": format_uuid(partition.topic_id),
            "part": partition.partition,
        }

    def row(
        self,
        out: list[Effect],
        partition: PartitionState,
        kind: str,
        *,
        offset: int | None = None,
        hw_old: int | None = None,
        leader_epoch: int | None = None,
        error: str | None = None,
    ) -> None:
        """Note an event with the partition's state after it.

        Shapes:  rows of a leader's events also hold ISR, maximal ISR and what it knows of its
                 followers: {broker: [log end, leader epoch of that knowledge, broker epoch]}.
        """
        if not self._on:
            return
        row = dict(self._blank)
        row["kind"] = kind
        row["leader_epoch"] = partition.leader_epoch if leader_epoch is None else leader_epoch
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
                    str(broker): [f.log_end_offset, f.leader_epoch, f.broker_epoch]
                    for broker, f in partition.followers.items()
                }
            )
        out.append(Trace(_TABLE, row))
