"""The transactional ids of one partition, folded from its records.

Source:  TransactionStateManager.TxnMetadataCacheEntry, loadTransactionMetadata.
"""

from __future__ import annotations

from minicluster.coordinator.runtime.timeline import Timeline
from minicluster.coordinator.runtime.timers import ShardTimers
from minicluster.coordinator.transaction.state.transaction import Transaction
from minicluster.coordinator.transaction.state.transaction_metadata import transaction_of
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol.coordinator_records.framing import TRANSACTION_RECORDS, CoordinatorRecord
from minicluster.protocol.coordinator_records.transaction import (
    TransactionLogKey,
    TransactionLogValue,
)


class TransactionShard:
    """All transactions of a partition by their transactional id.

    A record is replayed from the log alone: while this broker leads, a transition is completed when
    its record is committed.
    """

    record_types = TRANSACTION_RECORDS

    def __init__(self, partition: int, timeline: Timeline, timers: ShardTimers) -> None:
        self.partition = partition
        self.transactions: dict[str, Transaction] = {}

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int, epoch: int) -> None:
        """Apply a record of the log."""
        key, value = record.key, record.value
        if not isinstance(key, TransactionLogKey):
            return
        if isinstance(value, TransactionLogValue):
            self.transactions[key.transactional_id] = Transaction(transaction_of(key, value))
        else:
            self.transactions.pop(key.transactional_id, None)

    def replay_end_transaction(self, producer_id: int, epoch: int, *, committed: bool) -> None:
        """No transactional producer writes to the transaction log."""

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """The transactions of a partition do not depend on the image."""
