"""Transactions of users' programs: begun, ended by a request, with markers or without.

subject   a producer's epoch: its transaction, from its first request to the one that ends it
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.model import Evidence
from minicluster.verify.producers.producers import Batch
from minicluster.verify.programs.requests import Process
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule

MARKERS_MS = 30_000
"""How long the markers of a transaction may take after the response that it is ended."""
_TRANSACTION_TIMEOUT_MS = 60_000  # where no InitProducerId shows another
_OF_TRANSACTIONS = frozenset({"AddOffsetsToTxn", "AddPartitionsToTxn", "EndTxn", "InitProducerId"})


class BegunTransaction(Struct):
    """A transaction of a program.

    Shapes:  accepted: the coordinator has taken the request that ends it. unmarked: the log of a
             partition has no marker of it.
    Units:   ended_ms: by a request of the program, or by the next producer of its transactional id.
    """

    process: Process
    transactional_id: str
    at_ms: int
    timeout_ms: int
    ended_ms: int | None = None
    accepted: bool = False
    unmarked: bool = False


class Calm(Struct):
    """The time without disturbances at the end of a run; healed_ms: None while one lasts."""

    healed_ms: int | None
    ended_ms: int

    def since(self, at_ms: int) -> int:
        """How long it has been calm since a moment."""
        return 0 if self.healed_ms is None else max(0, self.ended_ms - max(self.healed_ms, at_ms))


class Transactions:
    """The transactions of programs, in their order.

    Shapes:  latest: of each producer and epoch.
    """

    def __init__(self) -> None:
        self.every: list[BegunTransaction] = []
        self.latest: dict[tuple[int, int], BegunTransaction] = {}
        self._timeouts_ms: dict[str, int] = {}

    def on_exchange(self, process: Process, exchange: Exchange) -> None:
        """A request of a program has ended."""
        if exchange.api not in _OF_TRANSACTIONS:
            return
        request = exchange.request
        name = request.get("transactionalId") or request.get("v3AndBelowTransactionalId")
        if not name:
            return
        if exchange.api == "InitProducerId":
            timeout_ms = request.get("transactionTimeoutMs", _TRANSACTION_TIMEOUT_MS)
            self._timeouts_ms[name] = timeout_ms
            for begun in self.every:
                if begun.transactional_id == name and begun.ended_ms is None:
                    begun.ended_ms = exchange.sent_ms
            return
        producer: tuple[Any, Any] = (
            request.get("producerId", request.get("v3AndBelowProducerId")),
            request.get("producerEpoch", request.get("v3AndBelowProducerEpoch")),
        )
        known = self.latest.get(producer)
        if exchange.api == "EndTxn":
            if known is not None:
                known.ended_ms = exchange.sent_ms
                known.accepted = exchange.error == "NONE"
        elif (known is None or known.ended_ms is not None) and _is_accepted(exchange):
            timeout_ms = self._timeouts_ms.get(name, _TRANSACTION_TIMEOUT_MS)
            begun = BegunTransaction(process, name, exchange.sent_ms, timeout_ms)
            self.latest[producer] = begun
            self.every.append(begun)

    def at_end(self, batches: Iterable[Batch], calm: Calm) -> Said:
        """The run has ended; batches: of all producers, in the logs of the last leaders."""
        unended = {
            (batch.producer_id, batch.epoch)
            for batch in batches
            if batch.transactional and batch.marker is None and batch.ended_by is None
            and batch.excuse is None
        }  # fmt: skip
        for producer, begun in self.latest.items():
            begun.unmarked = begun.accepted and producer in unended
        for begun in self.every:
            yield from programs_end_their_transactions(begun, calm)


def _is_accepted(exchange: Exchange) -> bool:
    """The coordinator has taken partitions or offsets into the transaction."""
    if not exchange.is_answered or exchange.error != "NONE":
        return False
    topics = exchange.response.get("resultsByTopicV3AndBelow")
    if topics is None:
        return True
    codes = [part["partitionErrorCode"] for topic in topics for part in topic["resultsByPartition"]]
    return 0 in codes


@rule("P4", "Programs end their transactions",
      source="KIP-98; KafkaProducer.commitTransaction, transaction.timeout.ms",
      at_end=True, evidence=Evidence.PROGRAMS,
      tables=("client_record", "log_batch", "partition_event", "raft_event", "rpc"),
      breaks="A program runs, and a transaction of it with a timeout of 20 s is open for 100 s.",
      keeps="A transaction is committed, with its marker in the log; the next one "
      "began 10 s ago.")  # fmt: skip
def programs_end_their_transactions(transaction: BegunTransaction, calm: Calm) -> Findings:
    """A program that ends by itself has ended its transactions, one that runs ends each within its
    timeout in the calm, and a transaction that was ended has its markers 30 seconds later."""
    life, is_open = transaction.process.life, transaction.ended_ms is None
    if is_open and life.ended not in (None, "ended", "cancelled", "stopped"):
        yield exempt("its program was killed or has failed")
        return
    if is_open and (life.paused or calm.healed_ms is None):
        yield exempt("a disturbance lasts")
        return
    yield CASE
    by, open_ms = transaction.process.text, calm.since(transaction.at_ms)
    name = f"transaction of {transaction.transactional_id}"
    if transaction.unmarked and calm.since(transaction.ended_ms or 0) > MARKERS_MS:
        yield broken(
            f"the {name} was ended by {by} and has no marker in the log of a "
            "partition; accused is the cluster"
        )
    elif not is_open:
        return
    elif life.ended not in (None, "stopped"):
        yield broken(
            f"{by} has ended and left a {name} open, which holds up readers of "
            "committed records until it expires; accused is the program"
        )
    elif open_ms > transaction.timeout_ms:
        yield broken(
            f"{by} runs and left a {name} open for {open_ms / 1000:g} s, "
            f"beyond its timeout of {transaction.timeout_ms / 1000:g} s; accused is the program"
        )
