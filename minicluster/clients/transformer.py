"""A consumer that transforms: what it reads it writes to another topic, and its offsets with that.

    records ──▶ a transaction of its producer with records and offsets ──committed──▶ reads on
                                                              `──aborted──▶ reads them again

Nothing is read while a transaction is open. A rebalance and an assignment wait for its end.

Source:  KIP-98, KIP-447: KafkaProducer.sendOffsetsToTransaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from minicluster.clients.client import Then, TopicPartition
from minicluster.clients.consumer import Consumer, ConsumerConfig
from minicluster.clients.offsets import Membership
from minicluster.clients.reader import ConsumedRecord
from minicluster.clients.transactional_producer import Transaction
from minicluster.effects import Effect


class BeginTransaction(Effect):
    """Hand a transaction to the producer; its end comes back as ``on_transaction_end``."""

    transaction: Transaction


class Transformer(Consumer):
    """One member of a group that transforms.

    Inputs:  as ``Consumer``, and ``on_transaction_end``.
    Shapes:  to: the other topic, and its number of partitions. records: those whose transactions
             are committed. The effects are those of ``Consumer``, and BeginTransaction.
    """

    def __init__(
        self,
        name: str,
        brokers: Sequence[int],
        config: ConsumerConfig,
        *,
        to: tuple[str, int],
        abort_every: int | None = None,
    ) -> None:
        super().__init__(name, brokers, config)
        self._to = to
        self._abort_every = abort_every
        self._begun = 0
        self._open: Transaction | None = None
        self._records: Sequence[ConsumedRecord] = ()
        self._then: Then | None = None

    def _on_assigned(
        self, member: Membership, places: tuple[TopicPartition, ...], now_ms: int
    ) -> None:
        """Take the assignment, once the transaction of the one before has ended.

        The coordinator would accept the offsets of both: they are of one member.
        """
        if self._open is None:
            super()._on_assigned(member, places, now_ms)
        else:
            self._then = lambda at_ms: self._on_assigned(self._member.membership, places, at_ms)

    def _on_records(self, records: Sequence[ConsumedRecord], now_ms: int) -> None:
        self._reader.stop()
        topic, partitions = self._to
        self._begun += 1
        aborts = self._abort_every is not None and self._begun % self._abort_every == 0
        self._records = records
        self._open = Transaction(
            records=tuple(
                ((topic, record.partition % partitions), written_value(record))
                for record in records
            ),
            commits=not aborts,
            offsets=dict(self._reader.positions),
            member=self._member.membership,
        )
        self.effects.append(BeginTransaction(self._open))

    def on_transaction_end(self, transaction: Transaction, now_ms: int) -> list[Effect]:
        """A transaction has ended: read on, or again what it did not commit."""
        if transaction is self._open:
            self._open = None
            is_committed = transaction.outcome == "committed"
            if is_committed:
                self.see(self._records)
                self.reach(transaction.offsets)
            then, self._then = self._then, None
            if then is not None:
                then(now_ms)
            elif is_committed:
                self.committed = dict(transaction.offsets)
                self._reader.start(self.committed)
            else:
                self._begin(self._member.membership, tuple(transaction.offsets), now_ms)
        return self.take_effects()

    def _commit_then(self, then: Then, now_ms: int) -> None:
        if self._open is None:
            then(now_ms)
        else:
            self._then = then


def written_value(record: ConsumedRecord) -> str:
    """The value that is written for a record: it names the record's place."""
    value = (record.value or b"").decode("utf-8", "backslashreplace")
    return f"{record.topic}-{record.partition}@{record.offset} {value}"
