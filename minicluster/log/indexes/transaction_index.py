"""The transactions of a log that were aborted, in the order of their markers (KIP-98).

Kafka keeps one file per segment; an entry lies in the file of the segment that holds its marker.
Here the log keeps one index, which loses entries as the files of those segments would.

Source:  TransactionIndex, AbortedTxn; LocalLog.collectAbortedTransactions.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """One aborted transaction.

    Shapes:  last_offset: that of its marker. last_stable_offset: the one right after the marker was
             appended, whatever the high watermark was.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one log; their last offsets ascend."""

    __slots__ = ("_aborted",)

    def __init__(self) -> None:
        self._aborted: list[AbortedTransaction] = []

    def __iter__(self) -> Iterator[AbortedTransaction]:
        return iter(self._aborted)

    def append(self, aborted: AbortedTransaction) -> None:
        """Add a transaction; one that the index has already, read from the log anew, is ignored."""
        if not self._aborted or aborted.last_offset > self._aborted[-1].last_offset:
            self._aborted.append(aborted)

    def collect(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """The transactions with records at or above the start and below the end (exclusive).

        The search ends at the first marker after which all below the end was decided.
        """
        found = []
        for aborted in self._aborted[self._position(start_offset) :]:
            if aborted.first_offset < end_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= end_offset:
                break
        return found

    def truncate(self, offset: int) -> None:
        """Drop the transactions whose marker lies at or above an offset."""
        del self._aborted[self._position(offset) :]

    def delete_before(self, offset: int) -> None:
        """Drop the transactions whose marker lies below an offset."""
        del self._aborted[: self._position(offset)]

    def replace_below(self, offset: int, aborted: Iterable[AbortedTransaction]) -> None:
        """Put the transactions that compaction has left in place of those below an offset."""
        self._aborted[: self._position(offset)] = aborted

    def _position(self, offset: int) -> int:
        return bisect_left(self._aborted, offset, key=lambda aborted: aborted.last_offset)
