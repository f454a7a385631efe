"""The cluster's one client: administration and load on behalf of the test.

The client is not a node, so no network fault affects its links. It reads the committed metadata and
sends each request to the right node directly. A response that proves that nothing was written is
retried until the operation's deadline. One that leaves the outcome open is not retried, because a
second try could write the record twice; the history then has ``info``. An idempotent producer
retries such an outcome, because the broker drops duplicates.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from msgspec import Struct

from minicluster.actors.exchange import Sender
from minicluster.actors.network import Completion, Network
from minicluster.actors.recording.recorder import Recorder
from minicluster.actors.recording.values import value_text
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.channel.backoff import ExponentialBackoff
from minicluster.channel.controller_channel import is_from_inactive_controller
from minicluster.clients.client import BACKOFF_MS, REQUEST_TIMEOUT_MS
from minicluster.clients.produce import NUMBERLESS, produce_request
from minicluster.log.batch import Record
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceResponse,
)
from minicluster.replica.partition.leader_log import ACKS_ALL, ACKS_LEADER, ACKS_NONE
from minicluster.scenario.actions.topics import AcksWord
from minicluster.security.principals import Requester
from minicluster.trace import own_value
from minicluster.values import Value, dataclass

CLIENT_ID = -1
BACKOFF = ExponentialBackoff(BACKOFF_MS, 1_000)  # retry.backoff.ms, retry.backoff.max.ms
PRODUCE_VERSION = 9
INIT_PRODUCER_ID_VERSION = 4

_ACKS: dict[str, int] = {"0": ACKS_NONE, "1": ACKS_LEADER, "all": ACKS_ALL}

# After these the records were not appended; another try cannot write them twice.
_NOT_DONE = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
    }
)


@dataclass(slots=True, kw_only=True)
class Operation:
    """An operation of the client; the test reads it from its own thread."""

    deadline_ms: int = field(repr=False)
    requester: Requester | None = field(default=None, repr=False)  # None: the cluster itself
    tries: int = 0
    done: bool = False
    response: Any = None
    failure: str | None = None

    def finish(self, response: Any, failure: str | None) -> None:
        """Set the outcome, and the flag last: a thread that sees the flag sees the outcome."""
        self.response, self.failure = response, failure
        self.done = True


@dataclass(slots=True, kw_only=True)
class AdminOperation(Operation):
    """A request to the active controller, to a broker, or to a node that is named.

    Shapes:  of_brokers: controllers do not handle it.
    """

    request: Any
    version: int
    to: int | None = None
    of_brokers: bool = False
    client_id: str = ""


class Producer(Struct, kw_only=True):
    """An idempotent producer of one partition: one record at a time, each with its number (KIP-98).

    Shapes:  id is -1 until a broker assigns one, and again once a record's outcome is unknown.
    """

    id: int = -1
    epoch: int = -1
    sequence: int = 0


@dataclass(slots=True, kw_only=True, repr=False)
class ProduceOperation(Operation):
    """One record to a partition; ``offset`` is where it was acknowledged.

    Shapes:  batch: the records behind it in the same batch, which are sent and end with it.
    """

    id: int
    topic: str
    partition: int
    value: bytes | None
    acks: AcksWord
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int | None = None  # milliseconds; None: the time at which it is sent
    to: int | None = None  # the node to send to in place of the leader
    invoke_seq: int = 0
    offset: int | None = None
    then: ProduceOperation | None = None  # the operation that follows this one
    batch: tuple[ProduceOperation, ...] = ()
    producer: Producer | None = None  # an idempotent one, if any
    unsure: bool = False  # a failed try may have appended it

    @property
    def ok(self) -> bool:
        """True once the record is acknowledged."""
        return self.done and self.failure is None

    def __repr__(self) -> str:
        """The record and its outcome, as a failing assertion shows it: an operation also knows the
        ones behind it, whose text would be a page.
        """
        outcome = f"failed: {self.failure}" if self.done else "not done"
        if self.ok:
            outcome = "ok" if self.offset is None else f"ok at offset {self.offset}"
        value = None if self.value is None else value_text(self.value)
        return f"<record {value!r} to {self.topic}-{self.partition}: {outcome}>"


@dataclass(slots=True, kw_only=True)
class Load:
    """Records at a rate until a time.

    Shapes:  operations: the latest, ``operations_max`` of them where that is given.
    Units:   rate: records per second; from_ms, until_ms: cluster time.
    """

    topic: str
    partition: int
    rate: float
    from_ms: int
    until_ms: int
    acks: AcksWord
    content: Mapping[str, Any] = field(default_factory=dict)  # of every record
    batch: int = 1
    requester: Requester | None = None  # None: the cluster itself
    operations: list[ProduceOperation] = field(default_factory=list)
    operations_max: int | None = None
    sent: int = 0
    stopped: bool = False

    @property
    def next_ms(self) -> int:
        """The time of the next record: of the n-th, n / rate after the first."""
        return self.from_ms + math.floor(self.sent * 1_000 / self.rate)

    def add(self, batch: Sequence[ProduceOperation]) -> None:
        """Count records that are sent now."""
        self.sent += len(batch)
        self.operations += batch
        if self.operations_max is not None:
            del self.operations[: -self.operations_max]


class Directory(Value, kw_only=True):
    """The look-ups of nodes in the committed metadata; None where there is no such node."""

    active_controller: Callable[[], int | None]
    running_broker: Callable[[], int | None]
    leader: Callable[[str, int], int | None]


class Client(ClusterActor):
    """The actor behind ``create_topic``, ``produce`` and the like."""

    def __init__(self, network: Network, recorder: Recorder, directory: Directory) -> None:
        super().__init__()
        self.network = network
        self.recorder = recorder
        self.directory = directory
        self._ids = itertools.count(1)

    def new_batch(
        self, topic: str, partition: int, contents: Sequence[Mapping[str, Any]], **how: Any
    ) -> list[ProduceOperation]:
        """Operations that each produce one record; the first one sends all of them.

        Shapes:  contents: the fields of each; the value of one that has none is unique.
        """
        operations: list[ProduceOperation] = []
        for content, number in zip(contents, self._ids, strict=False):
            record = {"value": own_value(topic, partition, number).encode(), **content, **how}
            operations.append(
                ProduceOperation(id=number, topic=topic, partition=partition, **record)
            )
        operations[0].batch = tuple(operations[1:])
        return operations

    def on_receive(self, message: Any) -> None:
        if isinstance(message, Completion):
            operation = message.exchange.context
            if isinstance(operation, AdminOperation):
                self._on_admin_response(operation, message)
            else:
                self._on_produce_response(operation, message)
        elif isinstance(message, AdminOperation):
            self._admin(message)
        elif isinstance(message, ProduceOperation):
            self._produce(message)
        elif isinstance(message, Load):
            self._load(message)
        else:
            raise NotImplementedError(f"{self.name} does not understand {message!r}")

    # Administration.

    def _admin(self, operation: AdminOperation) -> None:
        node, why = operation.to, ""
        if node is None and operation.of_brokers:
            node, why = self.directory.running_broker(), "no broker runs"
        elif node is None:
            node, why = self.directory.active_controller(), "no controller is active"
        if node is None:
            self._again(operation, why)
            return
        self.network.request(
            src=CLIENT_ID,
            dst=node,
            body=operation.request,
            version=operation.version,
            caller=self,
            context=operation,
            sender=Sender(client_id=operation.client_id, requester=operation.requester),
            timeout_ms=max(1, min(REQUEST_TIMEOUT_MS, operation.deadline_ms - self.now())),
        )

    def _on_admin_response(self, operation: AdminOperation, outcome: Completion) -> None:
        if outcome.failure is not None:
            self._again(operation, outcome.failure)
        elif is_from_inactive_controller(outcome.response):
            self._again(operation, "NOT_CONTROLLER")
        else:
            operation.finish(outcome.response, None)

    def _again(self, operation: Operation, why: str) -> None:
        """Retry after the back-off, or fail at the deadline."""
        backoff_ms = BACKOFF.backoff_ms(operation.tries)
        operation.tries += 1
        if self.now() + backoff_ms < operation.deadline_ms:
            self.after(backoff_ms, operation)
        elif isinstance(operation, ProduceOperation):
            self._end(operation, "info" if operation.unsure else "fail", why)
        else:
            operation.finish(None, why)

    # Load.

    def _load(self, load: Load) -> None:
        if load.stopped:
            return
        now_ms = self.now()
        due_ms = load.next_ms
        while due_ms < load.until_ms and due_ms <= now_ms:
            # Above 1,000 per second: several in one millisecond.
            batch = self.new_batch(
                load.topic,
                load.partition,
                [load.content] * load.batch,
                acks=load.acks,
                requester=load.requester,
                deadline_ms=now_ms + REQUEST_TIMEOUT_MS,
            )
            load.add(batch)
            self._produce(batch[0])
            due_ms = load.next_ms
        if due_ms < load.until_ms:
            self.after(due_ms - now_ms, load)
        else:
            load.stopped = True

    def _produce(self, operation: ProduceOperation) -> None:
        records = (operation, *operation.batch)
        if operation.invoke_seq == 0:
            for each in records:
                each.invoke_seq = self.recorder.number()
        leader = operation.to
        if leader is None:
            leader = self.directory.leader(operation.topic, operation.partition)
        if leader is None:
            self._again(operation, ErrorCode.LEADER_NOT_AVAILABLE.name)
            return
        producer = operation.producer
        if producer is not None and producer.id < 0:
            init = InitProducerIdRequest(transactional_id=None)
            self._send(operation, leader, init, INIT_PRODUCER_ID_VERSION)
            return
        numbered = NUMBERLESS
        if producer is not None:
            numbered = producer.id, producer.epoch, producer.sequence
        acks, time_ms = _ACKS[operation.acks], self.rt.record_time_ms()
        request = produce_request(
            (operation.topic, operation.partition),
            *(
                Record(
                    offset=place,
                    timestamp=time_ms if each.timestamp is None else each.timestamp,
                    key=each.key,
                    value=each.value,
                    headers=each.headers,
                )
                for place, each in enumerate(records)
            ),
            acks=acks,
            timeout_ms=REQUEST_TIMEOUT_MS,
            numbered=numbered,
        )
        self._send(operation, leader, request, PRODUCE_VERSION, waits=acks != 0)
        if acks == 0:
            self._end(operation, "info", None)

    def _send(
        self,
        operation: ProduceOperation,
        leader: int,
        request: Any,
        version: int,
        *,
        waits: bool = True,
    ) -> None:
        self.network.request(
            src=CLIENT_ID,
            dst=leader,
            body=request,
            version=version,
            caller=self if waits else None,
            context=operation,
            timeout_ms=REQUEST_TIMEOUT_MS if waits else None,
            sender=Sender(requester=operation.requester),
        )

    def _on_produce_response(self, operation: ProduceOperation, outcome: Completion) -> None:
        producer = operation.producer
        if outcome.failure is not None:
            if producer is None:
                self._end(operation, "info", outcome.failure)
            else:
                operation.unsure = True
                self._again(operation, outcome.failure)
            return
        if producer is not None and isinstance(outcome.response, InitProducerIdResponse):
            init = outcome.response
            if init.error_code:
                self._again(operation, ErrorCode.for_code(init.error_code).name)
                return
            producer.id, producer.epoch = init.producer_id, init.producer_epoch
            producer.sequence = 0
            self._produce(operation)
            return
        response: ProduceResponse = outcome.response
        partition = response.responses[0].partition_responses[0]
        error = ErrorCode.for_code(partition.error_code)
        if error is ErrorCode.NONE:
            for offset, each in enumerate((operation, *operation.batch), partition.base_offset):
                each.offset = offset
            if producer is not None:
                producer.sequence += 1 + len(operation.batch)
            self._end(operation, "ok", None, is_misled=outcome.is_misled)
        elif error in _NOT_DONE:
            self._again(operation, error.name)
        elif producer is not None and error.retriable:
            operation.unsure = True
            self._again(operation, error.name)
        else:
            # After a retriable error that is not in _NOT_DONE the record may be in the log.
            self._end(operation, "info" if error.retriable else "fail", error.name)

    def _end(
        self,
        operation: ProduceOperation,
        kind: str,
        error: str | None,
        *,
        is_misled: bool = False,
    ) -> None:
        producer = operation.producer
        if producer is not None and kind != "ok":
            producer.id = -1  # the outcome is unknown, so a new id starts a new sequence
        for each in (operation, *operation.batch):
            self._record_end(each, kind, error, is_misled=is_misled)
        if operation.then is not None:
            self._produce(operation.then)

    def _record_end(
        self, operation: ProduceOperation, kind: str, error: str | None, *, is_misled: bool
    ) -> None:
        """Record the outcome; an offset that no broker has given is not in the history."""
        sequence = self.recorder.number()
        self.recorder.trace(
            "history",
            {
                "op_id": operation.id,
                "process": self.name,
                "f": "send",
                "type": kind,
                "invoke_seq": operation.invoke_seq,
                "complete_seq": sequence,
                "topic": operation.topic,
                "part": operation.partition,
                "acks": _ACKS[operation.acks],
                "offset": None if is_misled else operation.offset,
                "value": value_text(operation.value),
                "error": error,
                "idempotent": operation.producer is not None,
            },
        )
        operation.finish(None, error)
