"""Produce: append, and with acks=all wait for the high watermark.

Source:  KIP-98, KIP-951; ReplicaManager.appendRecords, DelayedProduce, KafkaApis.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minicluster.effects import Effect, Respond
from minicluster.log import InvalidBatch, RecordBatch, Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import ProduceResponse
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.steps import AppendResult, CheckWaiting
from minicluster.replica.requests.purgatory import DelayedOperation, Key

if TYPE_CHECKING:
    from minicluster.replica.machine import ReplicaManagerMachine

ACKS_ALL = -1
ACKS_NONE = 0
_BY_ID = 13
_NAMES_LEADER = 10
_ONE_BATCH = 3
_TELLS_LEADER = 10


@dataclass(slots=True)
class Produced:
    """What became of one partition's batches so far."""

    topic: str
    topic_id: uuid.UUID
    index: int
    key: Key | None
    version: int
    error: ErrorCode = ErrorCode.NONE
    why: str | None = None
    appended: AppendResult | None = None
    waits: bool = False


def handle_produce(
    manager: ReplicaManagerMachine, now_ms: int, token: Any, request: Any, version: int
) -> list[Effect]:
    """Append what was sent and answer, now or when it is replicated.

    With acks=0 nobody waits: the reply holds None, and no bytes are to be sent.
    """
    effects: list[Effect] = []
    results: list[Produced] = []
    acks = request.acks
    for topic in request.topic_data:
        for data in topic.partition_data:
            key = manager.key_of(topic.name, topic.topic_id, data.index, version)
            result = Produced(topic.name, topic.topic_id, data.index, key, version)
            results.append(result)
            try:
                if acks not in (ACKS_ALL, ACKS_NONE, 1):
                    raise ReplicaError(ErrorCode.INVALID_REQUIRED_ACKS, f"{acks} acks")
                _append(manager, now_ms, result, data.records, acks, version, effects)
            except ReplicaError as refusal:
                result.error, result.why = refusal.error, str(refusal)
    if acks == ACKS_NONE:
        return [*effects, Respond(token, None)]
    waiting = [result for result in results if acks == ACKS_ALL and result.appended is not None]
    if not waiting:
        return [*effects, Respond(token, _response(manager, results, version))]
    for result in waiting:
        result.waits, result.error = True, ErrorCode.REQUEST_TIMED_OUT
    operation = DelayedProduce(manager, token, results, version, now_ms + request.timeout_ms)
    done = operation.try_complete(now_ms)
    if done is not None:
        return effects + done
    effects += manager.produces.watch(operation, [r.key for r in waiting if r.key is not None])
    return effects


class DelayedProduce(DelayedOperation):
    """A produce with acks=all that waits for the high watermarks of its partitions."""

    __slots__ = ("_acks", "_manager", "_results", "_token", "_version", "deadline_ms")

    def __init__(
        self,
        manager: ReplicaManagerMachine,
        token: Any,
        results: list[Produced],
        version: int,
        deadline_ms: int,
    ) -> None:
        self._version = version
        self._manager = manager
        self._token = token
        self._results = results
        self._acks: list[Effect] = []  # rows of partitions that are done, told with the answer
        self.deadline_ms = deadline_ms

    def try_complete(self, now_ms: int) -> list[Effect] | None:
        """Answer once every partition is replicated far enough, or cannot be any more."""
        for result in self._results:
            if result.waits:
                self._look(result)
        if any(result.waits for result in self._results):
            return None
        return self.expire(now_ms)

    def expire(self, now_ms: int) -> list[Effect]:
        """Answer; what still waits has timed out (and may be replicated yet)."""
        return [
            *self._acks,
            Respond(self._token, _response(self._manager, self._results, self._version)),
        ]

    def _look(self, result: Produced) -> None:
        assert result.appended is not None
        try:
            partition = self._manager.partition(result.key)
        except ReplicaError as refusal:
            result.waits, result.error = False, refusal.error
            return
        enough = partition.check_enough_replicas(result.appended.last_offset + 1)
        if not enough.reached and enough.error == ErrorCode.NONE:
            return
        result.waits, result.error = False, enough.error
        if enough.error == ErrorCode.NONE:
            self._acks += partition.acknowledged(result.appended.last_offset)


def _append(
    manager: ReplicaManagerMachine,
    now_ms: int,
    result: Produced,
    records: Any,
    acks: int,
    version: int,
    effects: list[Effect],
) -> None:
    if result.key is None:
        raise ReplicaError(
            ErrorCode.UNKNOWN_TOPIC_ID
            if version >= _BY_ID
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
    batches = _checked(records, version)
    partition = manager.partition(result.key)
    first: AppendResult | None = None
    for batch in batches:
        step = partition.append_as_leader(now_ms, manager.view, batch, acks=acks)
        effects += step.effects
        last = step.result
        first = first or last
        if last.high_watermark_increased:
            effects.append(CheckWaiting(*result.key))
        elif not last.repeated:
            effects += manager.fetches.check(now_ms, [result.key])
        result.appended = AppendResult(
            first_offset=first.first_offset,
            last_offset=last.last_offset,
            size=first.size,
            log_start_offset=last.log_start_offset,
            high_watermark_increased=last.high_watermark_increased,
            repeated=last.repeated,
        )


def _checked(records: Any, version: int) -> tuple[RecordBatch, ...]:
    """The batches of a produce.

    Errors:  CORRUPT_MESSAGE for a damaged one; INVALID_RECORD where there is none, or more than
             one from version 3 on (ProduceRequest.validateRecords).
    """
    try:
        batches = Records.of(records).batches
    except InvalidBatch as damage:
        raise ReplicaError(ErrorCode.CORRUPT_MESSAGE, str(damage)) from damage
    if not batches:
        raise ReplicaError(ErrorCode.INVALID_RECORD, "the request holds no record batch")
    if version >= _ONE_BATCH and len(batches) > 1:
        raise ReplicaError(ErrorCode.INVALID_RECORD, "the request holds more than one batch")
    if any(batch.is_control for batch in batches):
        raise ReplicaError(ErrorCode.INVALID_RECORD, "clients cannot write control batches")
    return batches


def _response(
    manager: ReplicaManagerMachine, results: list[Produced], version: int
) -> ProduceResponse:
    topics: dict[tuple[uuid.UUID, str], list[Any]] = {}
    for result in results:
        data = _partition_response(manager, result, version)
        topics.setdefault((result.topic_id, result.topic), []).append(data)
    return ProduceResponse(
        responses=tuple(
            ProduceResponse.TopicProduceResponse(
                name=name, topic_id=topic_id, partition_responses=tuple(data)
            )
            for (topic_id, name), data in topics.items()
        )
    )


def _partition_response(manager: ReplicaManagerMachine, result: Produced, version: int) -> Any:
    leader = ProduceResponse.LeaderIdAndEpoch()
    if result.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and result.version >= _NAMES_LEADER:
        leader_id, leader_epoch = manager.current_leader(result.key)
        leader = ProduceResponse.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    appended = result.appended
    return ProduceResponse.PartitionProduceResponse(
        index=result.index,
        error_code=result.error,
        base_offset=-1 if appended is None else appended.first_offset,
        log_start_offset=-1 if appended is None else appended.log_start_offset,
        error_message=result.why,
        current_leader=leader,
    )
