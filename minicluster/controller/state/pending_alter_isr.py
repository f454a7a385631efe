"""ISR changes whose response has left and that are still to be decided (KIP-497): soft state.

They can be lost with the controller; a leader that finds nothing of its change in the metadata
proposes it again.
"""

from __future__ import annotations

from collections import deque

from minicluster.values import Value


class AlterIsrReceived(Value, kw_only=True):
    """A leader's proposal, checked and not yet decided. A soft change."""

    broker_id: int
    broker_epoch: int
    topic: str
    partition_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    version: int


class AlterIsrDecided(Value):
    """The oldest proposal has been decided, for or against. A soft change."""

    proposal: AlterIsrReceived


PendingAlterIsrChange = AlterIsrReceived | AlterIsrDecided


class PendingAlterIsr:
    """The proposals that wait, the oldest first."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[AlterIsrReceived] = deque()

    def next_proposal(self) -> AlterIsrReceived | None:
        """The oldest proposal, or None."""
        return self._waiting[0] if self._waiting else None

    def apply(self, change: PendingAlterIsrChange) -> None:
        """Take a soft change."""
        if isinstance(change, AlterIsrReceived):
            self._waiting.append(change)
        elif self._waiting and self._waiting[0] is change.proposal:
            self._waiting.popleft()
