"""A transactional producer: one transaction after the other, by either protocol.

    InitProducerId ──▶ records ──▶ EndTxn ──▶ records …        version 2 (KIP-890): an epoch each
                   ──▶ AddPartitionsToTxn ──▶ records ──▶ …    before: one epoch for all

The offsets of a group are written behind the records (TxnOffsetCommit), before version 2 after an
AddOffsetsToTxn. A producer whose transaction is in an unknown state begins again with
InitProducerId, which ends any open transaction.

An error means one of four things: try again later (``_TRIED_AGAIN``), look for the leader again
(``_LED_ELSEWHERE``), abort this transaction (``_ABORTABLE``), or, with any other error, begin
again with another epoch. The outcome of that last transaction is unknown: an EndTxn whose response
says nothing of it may have been carried out.

Source:  KIP-98, KIP-360, KIP-447, KIP-890; TransactionManager, Sender.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from minicluster.clients.client import (
    BACKOFF_MS,
    COORDINATOR_ERRORS,
    GROUP,
    TRANSACTION,
    Client,
    OnEnd,
    Then,
    TopicPartition,
)
from minicluster.clients.offsets import Membership, first_error, transactional_commit
from minicluster.clients.produce import produce_request
from minicluster.effects import Effect
from minicluster.log import Record
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ApiVersionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
)

TIMEOUT_MS = 5_000
_TRANSACTION_VERSION = "transaction.version"
_BUMPED_FROM = 2
_INIT_VERSION, _ADD_VERSION = 5, 3
_PRODUCE_VERSIONS = {False: 11, True: 12}
_END_VERSIONS = {False: 4, True: 5}
_ADD_OFFSETS_VERSION = 3
_OFFSETS_VERSIONS = {False: 4, True: 5}

Outcome = Literal["committed", "aborted", "unknown"]
_TRIED_AGAIN = COORDINATOR_ERRORS | {
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.KAFKA_STORAGE_ERROR,
}
_LED_ELSEWHERE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_ABORTABLE = frozenset(
    {
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_INSTANCE_ID,
        ErrorCode.STALE_MEMBER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
    }
)


@dataclass(slots=True, kw_only=True)
class Transaction:
    """Records to write as one, and how that ended.

    Shapes:  records: partition and value each, written in their order. commits: None leaves the
             transaction open. offsets: of a group, by one of its members. on_end: called once,
             when the outcome is there. written: the offsets that were acknowledged.
    """

    records: Sequence[tuple[TopicPartition, str]]
    commits: bool | None = True
    offsets: Mapping[TopicPartition, int] = field(default_factory=dict)
    member: Membership | None = field(default=None, repr=False)
    on_end: Callable[[], None] = field(default=lambda: None, repr=False)
    outcome: Outcome | None = None
    written: dict[str, int] = field(default_factory=dict)


class TransactionalProducer(Client):
    """One producer.

    Inputs:  as ``Client``, and ``begin``.
    """

    def __init__(
        self,
        name: str,
        brokers: Sequence[int],
        transactional_id: str,
        *,
        transaction_timeout_ms: int,
        record_ms: Callable[[], int],
    ) -> None:
        super().__init__(name, brokers)
        self.transactional_id = transactional_id
        self._timeout_ms = transaction_timeout_ms
        self._record_ms = record_ms  # what the clock is behind the time of day
        self._waiting: deque[Transaction] = deque()
        self._current: Transaction | None = None
        self._to_send: deque[tuple[TopicPartition, str]] = deque()
        self._bumps: bool | None = None  # version 2; None before the cluster's is known
        self._producer_id, self._epoch = -1, -1
        self._sequences: dict[TopicPartition, int] = {}
        self._added: set[TopicPartition] = set()
        self._has_offsets = False  # the group's coordinator has those of this transaction

    def begin(self, transaction: Transaction, now_ms: int) -> list[Effect]:
        """Write a transaction, after those that wait already."""
        self._waiting.append(transaction)
        if self._current is None:
            self._next(now_ms)
        return self.take_effects()

    @property
    def is_idle(self) -> bool:
        """Every transaction has ended."""
        return self._current is None and not self._waiting

    def _next(self, now_ms: int) -> None:
        self._current = self._waiting.popleft() if self._waiting else None
        if self._current is None:
            return
        self._to_send = deque(self._current.records)
        self._added = set()
        self._has_offsets = False
        if self._bumps is None:
            self._find_version(now_ms)
        elif self._producer_id < 0:
            self._init(self._find, now_ms)
        else:
            self._find(now_ms)

    # --- the producer id ----------------------------------------------------------------------

    def _find_version(self, now_ms: int) -> None:
        """Find the finalized transaction version, which decides the protocol."""
        request = ApiVersionsRequest(
            client_software_name="minicluster", client_software_version="1"
        )

        def on_end(response: Any | None, at_ms: int) -> None:
            if response is None:
                self.after("versions", BACKOFF_MS, self._find_version, at_ms)
                return
            levels = {
                feature.name: feature.max_version_level for feature in response.finalized_features
            }
            self._bumps = levels.get(_TRANSACTION_VERSION, 0) >= _BUMPED_FROM
            self._init(self._find, at_ms)

        self.send(self.any_broker(), request, 4, on_end, TIMEOUT_MS)

    def _init(self, then: Then, now_ms: int) -> None:
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
        )

        def again(at_ms: int) -> None:
            self._init(then, at_ms)

        def on_end(response: Any | None, at_ms: int) -> None:
            error = _error(response)
            if response is None or error != ErrorCode.NONE:
                if error in COORDINATOR_ERRORS or response is None:
                    self.forget_coordinators()
                self.after("init", BACKOFF_MS, again, at_ms)
                return
            self._producer_id, self._epoch = response.producer_id, response.producer_epoch
            self._sequences.clear()
            then(at_ms)

        self._to_coordinator(request, _INIT_VERSION, on_end, now_ms)

    def _find(self, now_ms: int) -> None:
        topics = sorted({topic for (topic, _), _ in self._to_send})
        self.find_leaders(topics, self._send_next, now_ms)

    # --- records ------------------------------------------------------------------------------

    def _send_next(self, now_ms: int) -> None:
        transaction = self._current
        assert transaction is not None
        if not self._to_send:
            if transaction.commits is None:
                self._complete_with("unknown", now_ms)
            elif transaction.member is not None and not self._has_offsets:
                self._add_offsets(transaction.member, now_ms)
            else:
                self._end_txn(transaction.commits, now_ms)
            return
        place = self._to_send[0][0]
        if self._bumps or place in self._added:
            self._produce(now_ms)
        else:
            self._add_partition(place, now_ms)

    def _add_partition(self, place: TopicPartition, now_ms: int) -> None:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(
            name=place[0], partitions=(place[1],)
        )
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=(topic,),
        )

        def on_end(response: Any | None, at_ms: int) -> None:
            error = ErrorCode.NETWORK_EXCEPTION
            if response is not None:
                result = response.results_by_topic_v3_and_below[0].results_by_partition[0]
                error = ErrorCode.for_code(result.partition_error_code)
            if error == ErrorCode.NONE:
                self._added.add(place)
                self._send_next(at_ms)
            else:
                self._rejected(error, self._send_next, at_ms)

        self._to_coordinator(request, _ADD_VERSION, on_end, now_ms)

    def _produce(self, now_ms: int) -> None:
        place, value = self._to_send[0]
        request = produce_request(
            place,
            Record(0, self._record_ms() + now_ms, None, value.encode()),
            acks=-1,  # all
            timeout_ms=TIMEOUT_MS,
            numbered=(self._producer_id, self._epoch, self._sequences.get(place, 0)),
            transactional_id=self.transactional_id,
        )

        def on_end(response: Any | None, at_ms: int) -> None:
            if response is None:
                # It may be written. The next request has the same sequence, so that a leader that
                # has the record says so (DUPLICATE_SEQUENCE_NUMBER) and does not write it twice.
                self.after("find", BACKOFF_MS, self._find, at_ms)
                return
            result = response.responses[0].partition_responses[0]
            error = ErrorCode.for_code(result.error_code)
            if error in _LED_ELSEWHERE:
                self.after("find", BACKOFF_MS, self._find, at_ms)
            elif error not in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                self._rejected(error, self._produce, at_ms)
            else:
                self._sequences[place] = self._sequences.get(place, 0) + 1
                assert self._current is not None
                self._current.written[value] = result.base_offset
                self._to_send.popleft()
                self._send_next(at_ms)

        version = _PRODUCE_VERSIONS[bool(self._bumps)]
        self.send(self.leaders[place], request, version, on_end, TIMEOUT_MS + BACKOFF_MS)

    # --- offsets ------------------------------------------------------------------------------

    def _add_offsets(self, member: Membership, now_ms: int) -> None:
        """Add the partition of the group's offsets, and then them; the coordinator adds it itself
        from version 2 on.
        """
        if self._bumps:
            self._write_offsets(now_ms)
            return
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            group_id=member.group,
        )

        def on_end(response: Any | None, at_ms: int) -> None:
            error = _error(response)
            if error == ErrorCode.NONE:
                self._write_offsets(at_ms)
            else:
                self._rejected(error, self._send_next, at_ms)

        self._to_coordinator(request, _ADD_OFFSETS_VERSION, on_end, now_ms)

    def _write_offsets(self, now_ms: int) -> None:
        assert self._current is not None and self._current.member is not None
        member = self._current.member
        request = transactional_commit(
            self.transactional_id,
            (self._producer_id, self._epoch),
            member,
            self._current.offsets,
        )

        def on_end(response: Any | None, at_ms: int) -> None:
            error = first_error(response)
            if error == ErrorCode.NONE:
                self._has_offsets = True
                self._send_next(at_ms)
            else:
                self._rejected(error, self._send_next, at_ms)

        version = _OFFSETS_VERSIONS[bool(self._bumps)]
        self.with_coordinator(
            member.group,
            GROUP,
            lambda node, _: self.send(node, request, version, on_end, TIMEOUT_MS),
            now_ms,
        )

    # --- the end ------------------------------------------------------------------------------

    def _end_txn(self, commits: bool, now_ms: int) -> None:
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            committed=commits,
        )

        def again(at_ms: int) -> None:
            self._end_txn(commits, at_ms)

        def on_end(response: Any | None, at_ms: int) -> None:
            error = _error(response)
            if response is None or error in _TRIED_AGAIN:
                if error in COORDINATOR_ERRORS or response is None:
                    self.forget_coordinators()
                self.after("end", BACKOFF_MS, again, at_ms)
                return
            if error != ErrorCode.NONE:
                self._begin_again(at_ms)
                return
            if self._bumps:
                # KIP-890: each transaction has an epoch of its own, which the marker fences. A late
                # record of this one can no longer come into the next.
                self._producer_id, self._epoch = response.producer_id, response.producer_epoch
                self._sequences.clear()
            self._complete_with("committed" if commits else "aborted", at_ms)

        version = _END_VERSIONS[bool(self._bumps)]
        self._to_coordinator(request, version, on_end, now_ms)

    def _rejected(self, error: ErrorCode, again: Then, now_ms: int) -> None:
        """Try again, abort, or begin again with a new epoch, by the error."""
        if error in _TRIED_AGAIN:
            if error in COORDINATOR_ERRORS or error == ErrorCode.NETWORK_EXCEPTION:
                self.forget_coordinators()
            self.after("again", BACKOFF_MS, again, now_ms)
        elif error in _ABORTABLE:
            self._to_send.clear()
            self._has_offsets = True  # nothing is to be written any more, offsets neither
            self._end_txn(False, now_ms)
        else:
            self._begin_again(now_ms)

    def _begin_again(self, now_ms: int) -> None:
        """Give the transaction up, with a new epoch for the next one."""
        self._producer_id = -1
        assert self._current is not None
        if self._current.member is None:
            self._complete_with("unknown", now_ms)
        else:  # its offsets are to be read again, and the open transaction would hold them back
            self._init(lambda at_ms: self._complete_with("unknown", at_ms), now_ms)

    def _complete_with(self, outcome: Outcome, now_ms: int) -> None:
        assert self._current is not None
        ended = self._current
        ended.outcome = outcome
        self._next(now_ms)  # before on_end, which may begin another one: those that wait come first
        ended.on_end()

    def _to_coordinator(self, request: Any, version: int, on_end: OnEnd, now_ms: int) -> None:
        self.with_coordinator(
            self.transactional_id,
            TRANSACTION,
            lambda node, _: self.send(node, request, version, on_end, TIMEOUT_MS),
            now_ms,
        )


def _error(response: Any | None) -> ErrorCode:
    if response is None:
        return ErrorCode.NETWORK_EXCEPTION
    return ErrorCode.for_code(response.error_code)
