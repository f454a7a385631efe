"""The verification of a transaction by its coordinator, before the first batch is appended.

A guard is made when the verification begins, and must still be there when the batch comes to be
appended. A marker in between removes it, so no batch is appended to a transaction that has ended.

Source:  KIP-890; VerificationStateEntry, VerificationGuard.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping

from msgspec import field

from minicluster.protocol import ErrorCode
from minicluster.values import Value, replace

TopicPartition = tuple[str, int]
Errors = Mapping[TopicPartition, ErrorCode]


class VerificationGuard:
    """One verification; it equals nothing but itself."""

    __slots__ = ()


class VerificationStateEntry(Value):
    """The verification of a producer's transaction that is under way.

    Shapes:  lowest_sequence: the lowest one that has come in this epoch; a higher one must not be
             appended before it. supports_epoch_bump: the batch came by transaction version 2.
    """

    created_ms: int
    lowest_sequence: int
    epoch: int
    supports_epoch_bump: bool
    guard: VerificationGuard = field(default_factory=VerificationGuard)

    def with_batch(self, sequence: int, epoch: int) -> VerificationStateEntry:
        """The entry after another batch that needs the verification.

        Source:  VerificationStateEntry.maybeUpdateLowestSequenceAndEpoch.
        """
        if epoch > self.epoch:
            return replace(self, lowest_sequence=sequence, epoch=epoch)
        if epoch == self.epoch and sequence < self.lowest_sequence:
            return replace(self, lowest_sequence=sequence)
        return self


Guards = Mapping[TopicPartition, VerificationGuard]
OnGuarded = Callable[[Errors, Guards, int], None]
"""Takes the partitions with an error, the guards, and the time."""


class TransactionSupportedOperation(enum.Enum):
    """The abilities of a client, by the version of its request.

    Source:  AddPartitionsToTxnManager.TransactionSupportedOperation.
    """

    DEFAULT_ERROR = enum.auto()
    GENERIC_ERROR_SUPPORTED = enum.auto()  # it has TRANSACTION_ABORTABLE
    ADD_PARTITION = enum.auto()  # transaction version 2: leaders add partitions

    @property
    def supports_epoch_bump(self) -> bool:
        """The epoch rises with each transaction, and its partitions are added by their leaders."""
        return self is TransactionSupportedOperation.ADD_PARTITION

    @classmethod
    def of_version(cls, version: int, generic_from: int) -> TransactionSupportedOperation:
        """The abilities behind a version; they begin with two neighbouring versions."""
        if version > generic_from:
            return cls.ADD_PARTITION
        return cls.GENERIC_ERROR_SUPPORTED if version == generic_from else cls.DEFAULT_ERROR


class TransactionToVerify(Value):
    """The partitions of one transactional producer."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    operation: TransactionSupportedOperation
