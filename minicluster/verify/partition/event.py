"""An event of a replica: a row of ``partition_event``, as the folds of its partition take it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.verify.histories.fetch_states import (
    NEVER_FETCHED,
    FetchState,
    FetchStates,
    parsed,
)
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import Row

Ids = tuple[int, ...]
Place = tuple[str, int]  # topic id as the trace has it, partition


class PartitionEvent:
    """One event; its fields are columns of the table (``minicluster/trace.py``).

    Shapes:  isr, maximal_isr: None where the replica does not lead. hw_new: after the event, if it
             is known. error: of a rejected proposal.
    """

    __slots__ = (
        "_known", "broker", "epochs", "error", "hw_new", "hw_old", "incarnation", "isr", "kind",
        "leader_epoch", "leo", "maximal_isr", "min_isr", "offset", "part", "partition_epoch",
        "seq", "topic", "topic_id",
    )  # fmt: skip

    def __init__(self, row: Row) -> None:
        cell: Callable[[str], Any] = row.get
        self.seq: int = row["seq"]
        self.broker: int = row["broker"]
        self.incarnation: str | None = cell("incarnation")
        self.topic: str = row["topic"]
        self.topic_id: str = row["topic_id"]
        self.part: int = row["part"]
        self.kind: str = row["kind"]
        self.leader_epoch: int = cell("leader_epoch")
        self.partition_epoch: int = cell("partition_epoch")
        self.isr = _ids(cell("isr"))
        self.maximal_isr = _ids(cell("maximal_isr"))
        self.min_isr: int | None = cell("min_isr")
        self.hw_old: int = cell("hw_old")
        self.hw_new: int = cell("hw_new")
        self.leo: int = cell("leo")
        self.offset: int = cell("offset")
        self.error: str | None = cell("error")
        self.epochs = _ids(cell("epochs"))
        self._known: str | None = cell("follower_leos")

    @property
    def place(self) -> Place:
        """The partition."""
        return self.topic_id, self.part

    @property
    def followers(self) -> FetchStates | None:
        """What a leader knows of its followers, by their broker ids; None: not recorded."""
        return None if self._known is None else parsed(self._known)

    def fetch_state(self, member: int) -> FetchState:
        """The last fetch of a follower, as its leader knows it."""
        return (self.followers or {}).get(member, NEVER_FETCHED)

    @property
    def joining(self) -> Ids:
        """The replicas that a leader proposes to add to its ISR."""
        members, isr = self.maximal_isr or (), self.isr or ()
        return tuple(dict.fromkeys(member for member in members if member not in isr))

    def is_led_as(self, committed: CommittedPartition) -> bool:
        """The broker leads in the committed state, in the leader epoch of the event."""
        leadership = committed.after.leader, committed.leader_epoch
        return leadership == (self.broker, self.leader_epoch)


def _ids(numbers: list[int] | None) -> Ids | None:
    return None if numbers is None else tuple(numbers)
