"""The actors around a consumer in a group and a transactional producer.

Like the cluster's own client they are not nodes: no network fault affects their links. They send
the requests of Kafka's clients, and the trace has their responses as those of any client.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, overload

from msgspec import Struct

from minicluster.actors.cluster.client import CLIENT_ID
from minicluster.actors.exchange import Sender
from minicluster.actors.network import Completion, Network
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.clients.client import Client, TopicPartition
from minicluster.clients.consumer import Consumer
from minicluster.clients.reader import ConsumedRecord
from minicluster.clients.transactional_producer import Transaction, TransactionalProducer
from minicluster.clients.transformer import BeginTransaction, Transformer
from minicluster.effects import Effect, Send, SetTimer
from minicluster.security.principals import Requester
from minicluster.values import Value


class _Wakeup(Value):
    name: str
    number: int  # of the latest timer of this name


class Start:
    """A consumer joins its group."""


class Stop:
    """A consumer commits and leaves; a producer begins no other transaction."""


class ClientActor(ClusterActor):
    """A client machine and its mailbox."""

    requester: Requester | None = None  # as whom it asks; None: as the cluster itself

    def __init__(self, machine: Client, network: Network) -> None:
        super().__init__()
        self.client = machine
        self.network = network
        self._timers: dict[str, int] = {}

    def on_receive(self, message: Any) -> None:
        machine, now_ms = self.client, self.now()
        if isinstance(message, Completion):
            response = None if message.failure is not None else message.response
            self.perform(machine.on_end(message.exchange.correlation_id, response, now_ms))
        elif isinstance(message, _Wakeup):
            if self._timers.get(message.name) == message.number:
                self.perform(machine.on_timer(message.name, now_ms))
        else:
            self.on_message(message)

    def on_message(self, message: Any) -> None:
        """Handle the message of a step."""
        raise NotImplementedError(f"{self.name} does not understand {message!r}")

    def perform(self, effects: Iterable[Effect]) -> None:
        """Perform the effects of the machine."""
        for effect in effects:
            self.perform_one(effect)

    def perform_one(self, effect: Effect) -> None:
        """Perform one effect."""
        if isinstance(effect, Send):
            self.network.request(
                src=CLIENT_ID,
                dst=effect.to,
                body=effect.request,
                version=effect.version,
                caller=self,
                correlation_id=effect.correlation_id,
                timeout_ms=effect.timeout_ms,
                sender=Sender(client_id=self.client.name, requester=self.requester),
            )
        elif isinstance(effect, SetTimer):
            number = self._timers[effect.name] = self._timers.get(effect.name, 0) + 1
            self.after(max(0, effect.at_ms - self.now()), _Wakeup(effect.name, number))


class ConsumerActor(ClientActor):
    """A consumer in a group."""

    client: Consumer

    def on_message(self, message: Any) -> None:
        if isinstance(message, Start):
            self.perform(self.client.start(self.now()))
        elif isinstance(message, Stop):
            self.perform(self.client.stop(self.now()))
        else:
            super().on_message(message)


class _Ended(Value):
    transaction: Transaction


class TransformerActor(ConsumerActor):
    """A member of a group that transforms, beside the actor of its producer."""

    client: Transformer

    def __init__(
        self, machine: Transformer, network: Network, producer: TransactionalProducerActor
    ) -> None:
        super().__init__(machine, network)
        self._producer = producer

    def on_message(self, message: Any) -> None:
        if isinstance(message, _Ended):
            self.perform(self.client.on_transaction_end(message.transaction, self.now()))
        else:
            super().on_message(message)

    def perform_one(self, effect: Effect) -> None:
        if isinstance(effect, BeginTransaction):
            transaction = effect.transaction
            transaction.on_end = lambda: self.deliver(_Ended(transaction))
            self._producer.deliver(transaction)
        else:
            super().perform_one(effect)


class ConsumerGroup(Sequence[ConsumedRecord]):
    """The members that one action has started: the records that they have seen, member by member.

    It fills while they run. Of a background action each member keeps the latest ``records_max``.
    """

    def __init__(self, actors: Sequence[ConsumerActor]) -> None:
        self.actors = tuple(actors)
        self.is_stopped = False

    @overload
    def __getitem__(self, place: int) -> ConsumedRecord: ...
    @overload
    def __getitem__(self, place: slice) -> list[ConsumedRecord]: ...
    def __getitem__(self, place: int | slice) -> ConsumedRecord | list[ConsumedRecord]:
        return list(self)[place]

    def __iter__(self) -> Iterator[ConsumedRecord]:
        return chain.from_iterable(actor.client.records for actor in self.actors)

    def __len__(self) -> int:
        return sum(len(actor.client.records) for actor in self.actors)

    def __repr__(self) -> str:
        return repr(list(self))

    @property
    def seen(self) -> int:
        """The number of records that the members have seen, kept or not."""
        return sum(actor.client.seen for actor in self.actors)

    @property
    def has_left(self) -> bool:
        """Every member has left the group."""
        return all(actor.client.is_done for actor in self.actors)

    def start(self) -> None:
        """Have all members join."""
        for actor in self.actors:
            actor.deliver(Start())

    def stop(self, after_ms: int = 0) -> None:
        """Have all members commit and leave."""
        self.is_stopped = True
        for actor in self.actors:
            actor.after(after_ms, Stop())


class TransactionLoad(Struct, kw_only=True):
    """Transactions at a rate until a time.

    Shapes:  transactions: the latest, ``transactions_max`` of them where that is given.
    Units:   rate: transactions per second; from_ms, until_ms: cluster time.
    """

    topic: str
    partitions: int
    count: int
    rate: float
    from_ms: int
    until_ms: int
    abort_every: int | None
    transactions: list[Transaction]
    transactions_max: int | None = None
    begun: int = 0
    stopped: bool = False

    @property
    def next_ms(self) -> int:
        """The time of the next transaction."""
        return self.from_ms + math.floor(self.begun * 1_000 / self.rate)

    def add(self, transaction: Transaction) -> None:
        """Count a transaction that begins now."""
        self.begun += 1
        self.transactions.append(transaction)
        if self.transactions_max is not None:
            del self.transactions[: -self.transactions_max]


class TransactionalProducerActor(ClientActor):
    """A transactional producer."""

    client: TransactionalProducer

    def __init__(self, machine: TransactionalProducer, network: Network) -> None:
        super().__init__(machine, network)
        self._records = 0

    def new_records(
        self, topic: str, partitions: int, count: int
    ) -> Sequence[tuple[TopicPartition, str]]:
        """So many records with values of their own, over all partitions in turn."""
        records = []
        for _ in range(count):
            index = self._records % partitions
            self._records += 1
            value = f"{topic}-{index}/{self.client.name}-{self._records}"
            records.append(((topic, index), value))
        return tuple(records)

    def on_message(self, message: Any) -> None:
        if isinstance(message, Transaction):
            self.perform(self.client.begin(message, self.now()))
        elif isinstance(message, TransactionLoad):
            self._load(message)
        else:
            super().on_message(message)

    def _load(self, load: TransactionLoad) -> None:
        """Begin the next transaction, once the last one has ended."""
        now_ms = self.now()
        if load.stopped or now_ms >= load.until_ms:
            load.stopped = True
            return
        if self.client.is_idle and load.next_ms <= now_ms:
            number = load.begun + 1
            aborts = load.abort_every is not None and number % load.abort_every == 0
            records = self.new_records(load.topic, load.partitions, load.count)
            transaction = Transaction(records=records, commits=not aborts)
            load.add(transaction)
            self.perform(self.client.begin(transaction, now_ms))
        # The end of a transaction sends no message here, so the actor looks again now and then.
        self.after(max(10, min(load.next_ms - now_ms, 1_000)), load)
