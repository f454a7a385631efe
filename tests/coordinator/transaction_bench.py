"""One transaction coordinator over a log in memory; the test plays leaders and the controller."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from minicluster.configs.effective import BrokerLevels
from minicluster.coordinator.transaction.config import TransactionCoordinatorConfig
from minicluster.coordinator.transaction.machine import TransactionCoordinatorMachine
from minicluster.coordinator.transaction.transaction import Transaction, TransactionState
from minicluster.effects import Effect, Respond, Send, SetTimer
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.metadata_version import TRANSACTION_VERSION
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.records import (
    FeatureLevelRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from minicluster.protocol.topics import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from minicluster.rules import Rules
from minicluster.values import replace
from tests.coordinator.memory_log import Log
from tests.driving import Driving

OWN, OTHER, CONTROLLER = 1, 2, 101
BLOCK = 1_000
Add = m.AddPartitionsToTxnRequest
T0, T1 = ("t", 0), ("t", 1)


def image(
    leaders: Mapping[tuple[str, int], int] | None = None,
    *,
    coordinator: int = OWN,
    epoch: int = 0,
    transaction_version: int = 2,
) -> MetadataImage:
    """Two brokers and the topics t (0, 1), __transaction_state and __consumer_offsets (0)."""
    led = {T0: OWN, T1: OWN, (GROUP_METADATA_TOPIC, 0): OWN} if leaders is None else dict(leaders)
    led[TRANSACTION_STATE_TOPIC, 0] = coordinator
    topics = sorted({name for name, _ in led})
    ids = {name: uuid.uuid5(uuid.NAMESPACE_DNS, name) for name in topics}
    records: list[Any] = [
        FeatureLevelRecord(name=TRANSACTION_VERSION, feature_level=transaction_version)
    ]
    for broker in (OWN, OTHER):
        incarnation = uuid.UUID(int=broker)
        records.append(
            RegisterBrokerRecord(
                broker_id=broker, broker_epoch=40 + broker, incarnation_id=incarnation, fenced=False
            )
        )
    records += [TopicRecord(name=name, topic_id=ids[name]) for name in topics]
    for (name, index), leader in sorted(led.items()):
        of_log = name == TRANSACTION_STATE_TOPIC
        records.append(
            PartitionRecord(
                partition_id=index,
                topic_id=ids[name],
                replicas=(OWN, OTHER),
                isr=(OWN, OTHER),
                leader=leader,
                leader_epoch=epoch if of_log else 0,
                partition_epoch=epoch if of_log else 0,
            )
        )
    return apply_all(MetadataImage.EMPTY, records)


class Bench(Driving):
    """Shapes:  ``sends``: the requests without a response yet; ``given``: responses by token.

    Without ``holds``, producer ids come from the controller and markers are written at once.
    """

    def __init__(
        self,
        log: Log | None = None,
        *,
        holds: bool = False,
        rules: Rules = Rules.KAFKA_4_3,
        config: Mapping[str, str] | None = None,
        now_ms: int = 1_000_000,
        **shape: Any,
    ) -> None:
        super().__init__(now_ms)
        self.log = Log(mark=None) if log is None else log
        self.holds = holds
        levels = BrokerLevels({}, {}, dict(config or {}))
        self.machine = TransactionCoordinatorMachine(
            OWN, TransactionCoordinatorConfig.of(levels), self.log, rules=rules
        )
        self.sends: list[Send] = []
        self.written: list[Any] = []
        self.given: dict[int, Any] = {}
        self.next_id = 0
        self._tokens = 0
        self.image = MetadataImage.EMPTY
        self._perform(self.machine.on_controller(CONTROLLER, now_ms))
        self.publish(image(**shape))

    # --- inputs -------------------------------------------------------------------------------

    def publish(self, after: MetadataImage) -> None:
        delta = MetadataDelta.between(self.image, after)
        self.image = after
        self._perform(self.machine.on_metadata(delta, self.now_ms))
        self.advance(0)

    def on_timer(self, timer: str) -> None:
        self._perform(self.machine.on_timer(timer, self.now_ms))

    def commit(self) -> None:
        """Replicate all that is written."""
        while self.log.mark != self.log.end:  # what is completed may write once more
            self.log.mark = self.log.end
            self._perform(self.machine.on_high_watermark(0, self.log.end, self.now_ms))

    def send(self, request: Any, version: int) -> int:
        self._tokens += 1
        effects = self.machine.on_request(self._tokens, request, version, self.now_ms)
        self._perform(effects)
        return self._tokens

    def respond(self, response: Any) -> None:
        """Give the response to the oldest request."""
        sent = self.sends.pop(0)
        self._perform(self.machine.on_response(sent.correlation_id, response, self.now_ms))

    def fail(self) -> None:
        """Give no response to the oldest request."""
        sent = self.sends.pop(0)
        self._perform(self.machine.on_failure(sent.correlation_id, self.now_ms))

    def write_markers(self, error: ErrorCode = ErrorCode.NONE) -> None:
        """Respond to the oldest WriteTxnMarkers with one error for all partitions."""
        self.respond(marker_response(self.sends[0].request, error))

    def allocate(self) -> None:
        """Respond to the oldest request with a block of producer ids."""
        self.next_id += BLOCK
        start = self.next_id - BLOCK
        self.respond(m.AllocateProducerIdsResponse(producer_id_start=start, producer_id_len=BLOCK))

    def release(self) -> None:
        """Respond to all that was held."""
        self.holds = False
        self._perform(())

    def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Respond):
                self.given[effect.token] = effect.response
            elif isinstance(effect, SetTimer):
                self.timers[effect.name] = effect.at_ms
            elif isinstance(effect, Send):
                self.sends.append(effect)
        while self.sends and not self.holds:
            request = self.sends[0].request
            if isinstance(request, m.AllocateProducerIdsRequest):
                self.allocate()
            else:
                self.written += request.markers
                self.write_markers()

    # --- requests -----------------------------------------------------------------------------

    def exchange(self, request: Any, version: int) -> Any:
        """The response to a request, None while it waits."""
        return self.given.get(self.send(request, version))

    def init(self, transactional_id: str | None = "x", version: int = 5, **fields: Any) -> Any:
        request = m.InitProducerIdRequest(
            transactional_id=transactional_id, **{"transaction_timeout_ms": 60_000, **fields}
        )
        return self.exchange(request, version)

    def producer(self, transactional_id: str = "x", **fields: Any) -> tuple[int, int]:
        """An initialized producer."""
        response = self.init(transactional_id, **fields)
        if response.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:  # the first block
            response = self.init(transactional_id, **fields)
        assert response.error_code == ErrorCode.NONE, response
        return response.producer_id, response.producer_epoch

    def add(
        self,
        producer: tuple[int, int],
        *partitions: tuple[str, int],
        transactional_id: str = "x",
        version: int = 3,
        verify_only: bool = False,
    ) -> Any:
        """The error of each partition, None while the response is not there."""
        topics = tuple(
            Add.AddPartitionsToTxnTopic(name=name, partitions=(index,))
            for name, index in partitions or (T0,)
        )
        if version < 4:
            request = Add(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer[0],
                v3_and_below_producer_epoch=producer[1],
                v3_and_below_topics=topics,
            )
        else:
            of = Add.AddPartitionsToTxnTransaction(
                transactional_id=transactional_id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                verify_only=verify_only,
                topics=topics,
            )
            request = Add(transactions=(of,))
        response = self.exchange(request, version)
        if response is None:
            return None
        results = (
            response.results_by_topic_v3_and_below
            if version < 4
            else response.results_by_transaction[0].topic_results
        )
        errors = [
            ErrorCode(p.partition_error_code)
            for topic in results
            for p in topic.results_by_partition
        ]
        return errors[0] if len(set(errors)) == 1 else errors

    def end(
        self,
        producer: tuple[int, int],
        *,
        commit: bool = True,
        version: int = 5,
        transactional_id: str = "x",
    ) -> Any:
        request = m.EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=commit,
        )
        return self.exchange(request, version)

    def describe(self, transactional_id: str = "x") -> Any:
        request = m.DescribeTransactionsRequest(transactional_ids=(transactional_id,))
        return self.exchange(request, 0).transaction_states[0]

    def state(self, transactional_id: str = "x") -> str:
        return str(self.describe(transactional_id).transaction_state)

    def transaction(self, transactional_id: str = "x") -> Transaction:
        return self.machine.state.transaction_of(transactional_id)[1]

    def set_state(self, state: TransactionState, **fields: Any) -> Transaction:
        """Set the state of the transactional id x, as if it had come there."""
        transaction = self.transaction()
        transaction.metadata = replace(transaction.metadata, state=state, **fields)
        return transaction


def marker_response(request: Any, error: ErrorCode) -> m.WriteTxnMarkersResponse:
    """The same error for every partition of every marker."""
    response = m.WriteTxnMarkersResponse
    return response(
        markers=tuple(
            response.WritableTxnMarkerResult(
                producer_id=marker.producer_id,
                topics=tuple(
                    response.WritableTxnMarkerTopicResult(
                        name=topic.name,
                        partitions=tuple(
                            response.WritableTxnMarkerPartitionResult(
                                partition_index=index, error_code=error
                            )
                            for index in topic.partition_indexes
                        ),
                    )
                    for topic in marker.topics
                ),
            )
            for marker in request.markers
        )
    )
