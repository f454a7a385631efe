"""Fetch on the side that answers, for followers and consumers alike.

A fetch that finds enough is answered at once; another waits until enough bytes are there, until
something else is to be told (a diverging log, an error), or until its time is over. It reads again
when it is answered. What a follower asks for tells its leader how far it is: see ``Partition``.

Leaves out: fetch sessions (session id 0 tells clients to send full requests), quotas, preferred
            read replicas.
Source:     KIP-74, KIP-320, KIP-392, KIP-595, KIP-903; ReplicaManager.fetchMessages, DelayedFetch.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from minicluster.effects import Effect, FaultHit, Respond
from minicluster.log import Records
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchResponse
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.steps import FetchResult
from minicluster.replica.requests.purgatory import DelayedOperation, Key

if TYPE_CHECKING:
    from minicluster.replica.machine import ReplicaManagerMachine

NO_EPOCH = -1
_NO_RECORDS = Records()
_NAMES_LEADER = 12
_BY_ID = 13
_REPLICA_STATE = 15
_ANY_REPLICA = 11
_TELLS_LEADER = 12


@dataclass(frozen=True, slots=True)
class Asked:
    """One partition of a fetch; the key is None where the topic is not known."""

    topic: str
    topic_id: uuid.UUID
    key: Key | None
    partition: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchParams:
    """Who fetches, and how much it wants at least and at most."""

    version: int
    replica_id: int
    broker_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int

    @property
    def from_follower(self) -> bool:
        """Whether a broker asks, and not a consumer."""
        return self.replica_id >= 0


@dataclass(slots=True)
class ReadOutcome:
    """What one pass over the partitions found."""

    data: list[Any]
    size: int = 0
    must_answer: bool = False


def handle_fetch(
    manager: ReplicaManagerMachine, now_ms: int, token: Any, request: Any, version: int
) -> list[Effect]:
    """Answer a fetch or let it wait."""
    by_state = version >= _REPLICA_STATE
    params = FetchParams(
        version=version,
        replica_id=request.replica_state.replica_id if by_state else request.replica_id,
        broker_epoch=request.replica_state.replica_epoch if by_state else NO_EPOCH,
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
    )
    asked = [
        Asked(topic.topic, topic.topic_id, key, partition)
        for topic in request.topics
        for partition in topic.partitions
        for key in (manager.key_of(topic.topic, topic.topic_id, partition.partition, version),)
    ]
    effects: list[Effect] = []
    outcome = _read(manager, now_ms, params, asked, effects)
    if (
        outcome.must_answer
        or not asked
        or params.max_wait_ms <= 0
        or outcome.size >= params.min_bytes
    ):
        effects.append(Respond(token, _response(asked, outcome)))
        return effects
    operation = DelayedFetch(manager, token, params, asked, outcome, now_ms + params.max_wait_ms)
    effects += manager.fetches.watch(operation, [item.key for item in asked if item.key])
    return effects


class DelayedFetch(DelayedOperation):
    """A fetch that waits for bytes."""

    __slots__ = ("_asked", "_manager", "_outcome", "_params", "_stamps", "_token", "deadline_ms")

    def __init__(
        self,
        manager: ReplicaManagerMachine,
        token: Any,
        params: FetchParams,
        asked: list[Asked],
        outcome: ReadOutcome,
        deadline_ms: int,
    ) -> None:
        self._manager = manager
        self._token = token
        self._params = params
        self._asked = asked
        self._outcome = outcome
        self._stamps = [
            (*self._stamp(item), data.high_watermark == self._high_watermark(item))
            for item, data in zip(asked, outcome.data, strict=True)
        ]
        self.deadline_ms = deadline_ms

    def try_complete(self, now_ms: int) -> list[Effect] | None:
        """Answer if there is enough to read, or anything to tell besides records."""
        size = 0
        for item in self._asked:
            available = self._available(item)
            if available is None:
                return self._read_again(now_ms)
            size += available
            if size >= self._params.min_bytes:
                return self._read_again(now_ms)
        return None

    def expire(self, now_ms: int) -> list[Effect]:
        """Answer with what there is: what the first read found, if nothing has moved since."""
        if self._stamps == [(*self._stamp(item), True) for item in self._asked]:
            return [Respond(self._token, _response(self._asked, self._outcome))]
        return self._read_again(now_ms)

    def _read_again(self, now_ms: int) -> list[Effect]:
        effects: list[Effect] = []
        outcome = _read(self._manager, now_ms, self._params, self._asked, effects)
        effects.append(Respond(self._token, _response(self._asked, outcome)))
        return effects

    def _high_watermark(self, item: Asked) -> int:
        """The high watermark now; the fetch itself may have moved it."""
        partition = self._manager.partitions.get(item.key) if item.key is not None else None
        return -1 if partition is None else partition.high_watermark

    def _stamp(self, item: Asked) -> tuple[int, ...]:
        """What decides the answer for a partition."""
        partition = self._manager.partitions.get(item.key) if item.key is not None else None
        if partition is None:
            return ()
        log = partition.log
        return (
            partition.leader_epoch,
            partition.partition_epoch,
            partition.high_watermark,
            log.start_offset,
            log.end_offset,
        )

    def _available(self, item: Asked) -> int | None:
        """How many bytes a read would give; None if there is something else to tell."""
        data = item.partition
        try:
            partition = self._manager.partition(item.key)
        except ReplicaError:
            return None
        from_follower = self._params.from_follower
        epoch = data.current_leader_epoch
        if epoch not in (NO_EPOCH, partition.leader_epoch) or partition.leader is None:
            return None
        if from_follower and not partition.is_leader:
            return None
        if data.last_fetched_epoch >= 0:
            epoch, end_offset = partition.end_offset_for(data.last_fetched_epoch)
            if epoch < data.last_fetched_epoch or end_offset < data.fetch_offset:
                return None
        end = partition.log_end_offset if from_follower else partition.high_watermark
        if end < data.fetch_offset:
            return None if from_follower else 0
        if end == data.fetch_offset:
            return 0
        if self._params.min_bytes <= 1:
            return 1
        batches = partition.log.read(data.fetch_offset, data.partition_max_bytes, end)
        most: int = data.partition_max_bytes
        return min(sum(batch.size for batch in batches), most)


def _read(
    manager: ReplicaManagerMachine,
    now_ms: int,
    params: FetchParams,
    asked: list[Asked],
    effects: list[Effect],
) -> ReadOutcome:
    outcome = ReadOutcome([])
    for item in asked:
        try:
            result = _read_one(manager, now_ms, params, item, params.max_bytes, effects)
        except ReplicaError as refusal:
            outcome.data.append(_refused(manager, params, item, refusal.error))
            outcome.must_answer = True
            continue
        batches = result.batches
        size = sum(batch.size for batch in batches) if batches else 0
        if size and outcome.size and outcome.size + size > params.max_bytes:
            batches, size = (), 0
        outcome.size += size
        diverging = result.diverging_epoch
        if diverging is not None:
            outcome.must_answer = True
            outcome.data.append(_diverging(item, result))
            continue
        outcome.data.append(
            FetchResponse.PartitionData(
                partition_index=item.partition.partition,
                high_watermark=result.high_watermark,
                last_stable_offset=result.last_stable_offset,
                log_start_offset=result.log_start_offset,
                records=Records(batches) if batches else _NO_RECORDS,
            )
        )
    return outcome


def _read_one(
    manager: ReplicaManagerMachine,
    now_ms: int,
    params: FetchParams,
    item: Asked,
    bytes_left: int,
    effects: list[Effect],
) -> FetchResult:
    if item.key is None:
        raise ReplicaError(
            ErrorCode.UNKNOWN_TOPIC_ID
            if params.version >= _BY_ID
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
    partition = manager.partition(item.key)
    asked = item.partition
    max_bytes = min(asked.partition_max_bytes, bytes_left)
    current = asked.current_leader_epoch
    last = asked.last_fetched_epoch
    if manager.faults.z38_fetches_are_not_fenced and current not in (
        NO_EPOCH,
        partition.leader_epoch,
    ):
        effects.append(FaultHit("Z38"))
        current = NO_EPOCH
    if params.from_follower:
        step = partition.fetch(
            now_ms,
            manager.view,
            replica_id=params.replica_id,
            broker_epoch=params.broker_epoch,
            fetch_offset=asked.fetch_offset,
            log_start_offset=asked.log_start_offset,
            current_leader_epoch=None if current == NO_EPOCH else current,
            last_fetched_epoch=None if last == NO_EPOCH else last,
            max_bytes=max_bytes,
            deletes_wait=manager.deletes.watched(item.key) > 0,
        )
    else:
        step = partition.consumer_fetch(
            fetch_offset=asked.fetch_offset,
            any_replica=params.version >= _ANY_REPLICA,
            current_leader_epoch=None if current == NO_EPOCH else current,
            last_fetched_epoch=None if last == NO_EPOCH else last,
            max_bytes=max_bytes,
        )
    effects += step.effects
    return step.result


def _diverging(item: Asked, result: FetchResult) -> Any:
    diverging = result.diverging_epoch
    assert diverging is not None
    return FetchResponse.PartitionData(
        partition_index=item.partition.partition,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        diverging_epoch=FetchResponse.EpochEndOffset(
            epoch=diverging.epoch, end_offset=diverging.end_offset
        ),
        records=_NO_RECORDS,
    )


def _refused(
    manager: ReplicaManagerMachine, params: FetchParams, item: Asked, error: ErrorCode
) -> Any:
    leader = FetchResponse.LeaderIdAndEpoch()
    moved = error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if moved and params.version >= _NAMES_LEADER:
        leader_id, leader_epoch = manager.current_leader(item.key)
        leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    return FetchResponse.PartitionData(
        partition_index=item.partition.partition,
        error_code=error,
        high_watermark=-1,
        current_leader=leader,
        records=_NO_RECORDS,
    )


def _response(asked: list[Asked], outcome: ReadOutcome) -> FetchResponse:
    topics: dict[tuple[uuid.UUID, str], list[Any]] = {}
    for item, data in zip(asked, outcome.data, strict=True):
        topics.setdefault((item.topic_id, item.topic), []).append(data)
    return FetchResponse(
        responses=tuple(
            FetchResponse.FetchableTopicResponse(
                topic=topic, topic_id=topic_id, partitions=tuple(partitions)
            )
            for (topic_id, topic), partitions in topics.items()
        )
    )
