"""The metadata of one transactional id, as a record of the transaction log holds it.

Source:  TransactionMetadata, TransactionState, TransactionLog.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from minicluster.java_order import hash_map_order, topic_partition_hash
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord
from minicluster.protocol.coordinator_records.transaction import (
    TransactionLogKey,
    TransactionLogValue,
)

TopicPartition = tuple[str, int]
MAX_EPOCH = (1 << 15) - 1
NO_TIMEOUT_MS = (1 << 31) - 1  # of a transaction in two-phase commit
NOT_STARTED_MS = -1
_TAGS_FROM_LEVEL = 1
_EPOCH_BUMP_FROM_LEVEL = 2


class TransactionState(enum.Enum):
    """Shapes: values are the numbers in the log.

    Source:  TransactionState.
    """

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def state_name(self) -> str:
        """The name that DescribeTransactions and ListTransactions have."""
        return self.name.title().replace("_", "")


S = TransactionState
COMPLETED = frozenset({S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT})
"""No transaction is open: another may begin, and the transactional id may expire."""
PREPARED = frozenset({S.PREPARE_COMMIT, S.PREPARE_ABORT})
"""The outcome is decided, and markers are on their way."""
VALID_PREVIOUS_STATES: Mapping[TransactionState, frozenset[TransactionState]] = {
    S.EMPTY: COMPLETED,
    S.ONGOING: COMPLETED | {S.ONGOING},
    S.PREPARE_COMMIT: frozenset({S.ONGOING}),
    S.PREPARE_ABORT: COMPLETED | {S.ONGOING, S.PREPARE_EPOCH_FENCE},
    S.COMPLETE_COMMIT: frozenset({S.PREPARE_COMMIT}),
    S.COMPLETE_ABORT: frozenset({S.PREPARE_ABORT}),
    S.DEAD: COMPLETED,
    S.PREPARE_EPOCH_FENCE: frozenset({S.ONGOING}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """One transactional id.

    Shapes:  partitions in the order of their arrival; client_transaction_version: the
             transaction.version that the client's requests imply, 2 is KIP-890's.
    Units:   *_ms milliseconds since the epoch, but timeout_ms; start_ms is -1 where no transaction
             has begun.
    """

    transactional_id: str
    producer_id: int
    prev_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: tuple[TopicPartition, ...] = ()
    start_ms: int = NOT_STARTED_MS
    last_update_ms: int
    client_transaction_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """No client gets the greatest epoch, so that every producer can be fenced."""
        return is_epoch_exhausted(self.producer_epoch)

    @property
    def is_two_phase_commit(self) -> bool:
        """An external coordinator decides the transaction, which never times out (KIP-939)."""
        return self.timeout_ms == NO_TIMEOUT_MS


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """The next epoch is the greatest one."""
    return producer_epoch >= MAX_EPOCH - 1


def supports_epoch_bump(transaction_version: int) -> bool:
    """The end of a transaction bumps the epoch (KIP-890, transaction.version 2)."""
    return transaction_version >= _EPOCH_BUMP_FROM_LEVEL


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partitions by topic, both in the order in which Java walks over a set of partitions."""
    topics: dict[str, list[int]] = {}
    for topic, partition in hash_map_order(partitions, topic_partition_hash):
        topics.setdefault(topic, []).append(partition)
    return topics


def transaction_record(
    metadata: TransactionMetadata, transaction_version: int
) -> CoordinatorRecord:
    """The record of a transactional id, at a level of transaction.version.

    Source:  TransactionLog.valueToBytes.
    """
    partitions = None
    if metadata.state is not TransactionState.EMPTY:
        partitions = tuple(
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=tuple(ids))
            for topic, ids in by_topic(metadata.partitions).items()
        )
    has_tags = transaction_version >= _TAGS_FROM_LEVEL
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        previous_producer_id=metadata.prev_producer_id if has_tags else NO_PRODUCER_ID,
        next_producer_id=metadata.next_producer_id if has_tags else NO_PRODUCER_ID,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state.value,
        transaction_partitions=partitions,
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_transaction_version if has_tags else 0,
    )
    key = TransactionLogKey(transactional_id=metadata.transactional_id)
    return CoordinatorRecord(key, value, 1 if has_tags else 0)


def transaction_of(key: TransactionLogKey, value: TransactionLogValue) -> TransactionMetadata:
    """The metadata that a record holds; the last epoch of the producer is in none.

    Source:  TransactionLog.read.
    """
    state = TransactionState(value.transaction_status)
    partitions = value.transaction_partitions or ()
    return TransactionMetadata(
        transactional_id=key.transactional_id,
        producer_id=value.producer_id,
        prev_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=tuple((p.topic, index) for p in partitions for index in p.partition_ids),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
    )


def tombstone(transactional_id: str) -> CoordinatorRecord:
    """The record that deletes a transactional id."""
    return CoordinatorRecord(TransactionLogKey(transactional_id=transactional_id))
