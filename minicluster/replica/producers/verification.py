"""The verification of a transaction by its coordinator, before the first batch is appended.

A guard is made when the verification begins, and must still be there when the batch comes to be
appended. A marker in between removes it, so no batch is appended to a transaction that has ended.

Source:  KIP-890; VerificationStateEntry, VerificationGuard.
"""

from __future__ import annotations

from dataclasses import field, replace

from minicluster.lazy_dataclass import dataclass


class VerificationGuard:
    """One verification; it equals nothing but itself."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class VerificationStateEntry:
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
