"""The markers of transactions whose outcome is decided.

Source:  PendingCompleteTxn, TxnMarkerEntry.
"""

from __future__ import annotations

from dataclasses import dataclass

from minicluster.coordinator.transaction.state.transaction import Transaction
from minicluster.coordinator.transaction.state.transaction_metadata import (
    TopicPartition,
    TransactionMetadata,
)
from minicluster.coordinator.transaction.state.transaction_shard import TransactionShard


@dataclass(frozen=True, slots=True, eq=False)
class PendingCompleteTxn:
    """A transaction that is completed with ``new`` once all of its markers are written."""

    shard: TransactionShard
    transaction: Transaction
    new: TransactionMetadata
    coordinator_epoch: int


@dataclass(frozen=True, slots=True, eq=False)
class TxnMarkerEntry:
    """The marker of one transaction for some partitions of one leader."""

    pending: PendingCompleteTxn
    producer_id: int
    producer_epoch: int
    committed: bool
    transaction_version: int
    partitions: tuple[TopicPartition, ...]
