"""The transactions of a log while a compaction goes through it.

    data batch of an aborted transaction: its records go
    marker: it may go once no batch of its transaction is left, and then waits as tombstones do

Source:  CleanedTransactionMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable

from minicluster.log import RecordBatch
from minicluster.log.indexes.transaction_index import AbortedTransaction
from minicluster.replica.producers.markers import read_marker


class CleanedTransactions:
    """One pass over the batches of a log, in the order of their offsets.

    Shapes:  retained: the aborted transactions of which the pass has met a batch and the marker,
             for the index of the cleaned log.
    """

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = sorted(aborted, key=lambda a: a.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTransaction] = {}
        self._committed: set[int] = set()
        self._with_batches: set[int] = set()
        self.retained: list[AbortedTransaction] = []

    def may_go(self, batch: RecordBatch) -> bool:
        """Take the next batch: an aborted one, or a marker without any batch of its transaction."""
        while self._to_come and self._to_come[-1].first_offset <= batch.last_offset:
            aborted = self._to_come.pop()
            self._aborted.setdefault(aborted.producer_id, aborted)
        if batch.is_control:
            return self._may_marker_go(batch)
        if not batch.is_transactional:
            return False
        if batch.producer_id in self._aborted:
            self._with_batches.add(batch.producer_id)
            return True
        self._committed.add(batch.producer_id)
        return False

    def _may_marker_go(self, batch: RecordBatch) -> bool:
        marker = read_marker(batch)
        if marker is None:
            return True
        producer_id = batch.producer_id
        if marker.committed:
            had_batches = producer_id in self._committed
            self._committed.discard(producer_id)
            return not had_batches
        aborted = self._aborted.pop(producer_id, None)
        if aborted is None or producer_id not in self._with_batches:
            return True
        self._with_batches.discard(producer_id)
        self.retained.append(aborted)
        return False
