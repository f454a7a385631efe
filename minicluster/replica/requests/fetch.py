"""Fetch on the leader, for followers and consumers.

A fetch that finds enough bytes gets its response at once. Another waits until the bytes are there,
until there is something else to respond (diverging logs, an error), or until its deadline; then it
reads again. The fetch offset of a follower shows its leader how far it is: see partition/reads.

Versions: v1 to v3 add throttle time, timestamps and a response limit in bytes (KIP-74). v4 has the
          isolation level, v5 the follower's log start. v7 has fetch sessions (KIP-227), v9 the
          current leader epoch (KIP-320), v11 the rack of the consumer, who may read from followers
          (KIP-392). v12 has the last fetched epoch (KIP-595), v13 topic ids in place of names
          (KIP-516), v14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405), v15 the replica's broker epoch
          (KIP-903), v16 the endpoints of new leaders (KIP-951), v17 the follower's directory
          (KIP-853), v18 its high watermark (KIP-1166).
Leaves out: fetch sessions (session id 0 makes clients send full requests), quotas, preferred read
            replicas.
Source:     ReplicaManager.fetchMessages, readFromLog, DelayedFetch.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from minicluster.log import Records
from minicluster.log.epochs import NO_EPOCH
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchResponse
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.isr_state import NO_BROKER_EPOCH
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.reads import consumer_fetch_records, fetch_records
from minicluster.replica.partition.results import LogReadInfo
from minicluster.replica.requests.optional_epoch import optional_epoch
from minicluster.replica.requests.purgatory import DelayedOperation, Key
from minicluster.replica.state.replica_manager_state import TOPIC_IDS_FROM, ReplicaManagerState

_NO_RECORDS = Records()
_ANY_REPLICA_FROM = 11
_CURRENT_LEADER_FROM = 12
_REPLICA_STATE_FROM = 15


@dataclass(frozen=True, slots=True)
class FetchedPartition:
    """One partition of a request; the key is None where the topic is not known."""

    topic: str
    topic_id: uuid.UUID
    key: Key | None
    data: Any


_READ_COMMITTED = 1
_UNKNOWN_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchParams:
    """The sender of a fetch, and how much it wants at least and at most."""

    version: int
    replica_id: int
    broker_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    reads_committed: bool

    @property
    def is_from_follower(self) -> bool:
        """A broker fetches, and not a consumer."""
        return self.replica_id >= 0


@dataclass(slots=True)
class LogReadResults:
    """The outcome of one pass over the partitions."""

    data: list[Any]
    size: int = 0
    has_error_or_divergence: bool = False


def handle_fetch(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> None:
    """Respond to a fetch or let it wait.

    Source:  ReplicaManager.fetchMessages.
    """
    in_state = version >= _REPLICA_STATE_FROM
    params = FetchParams(
        version=version,
        replica_id=request.replica_state.replica_id if in_state else request.replica_id,
        broker_epoch=request.replica_state.replica_epoch if in_state else NO_BROKER_EPOCH,
        max_wait_ms=request.max_wait_ms,
        min_bytes=request.min_bytes,
        max_bytes=request.max_bytes,
        reads_committed=request.isolation_level == _READ_COMMITTED,
    )
    wanted = [
        FetchedPartition(topic.topic, topic.topic_id, key, data)
        for topic in request.topics
        for data in topic.partitions
        for key in (state.key_of(topic.topic, topic.topic_id, data.partition, version),)
    ]
    results = _read(state, params, wanted, now_ms)
    if (
        results.has_error_or_divergence
        or not wanted
        or params.max_wait_ms <= 0
        or results.size >= params.min_bytes
    ):
        state.respond(token, _response(wanted, results))
        return
    operation = DelayedFetch(state, token, params, wanted, results, now_ms + params.max_wait_ms)
    state.delayed.fetches.watch(operation, [item.key for item in wanted if item.key])


class DelayedFetch(DelayedOperation):
    """A fetch that waits for bytes."""

    __slots__ = ("_params", "_results", "_snapshots", "_state", "_token", "_wanted", "deadline_ms")

    def __init__(
        self,
        state: ReplicaManagerState,
        token: Any,
        params: FetchParams,
        wanted: list[FetchedPartition],
        results: LogReadResults,
        deadline_ms: int,
    ) -> None:
        self._state = state
        self._token = token
        self._params = params
        self._wanted = wanted
        self._results = results
        # The fetch itself may have moved the high watermark, after it was read.
        self._snapshots = [
            (*self._snapshot(item), data.high_watermark == self._high_watermark(item))
            for item, data in zip(wanted, results.data, strict=True)
        ]
        self.deadline_ms = deadline_ms

    def try_complete(self, now_ms: int) -> bool:
        """Complete once there are enough bytes, or something else to respond.

        Source:  DelayedFetch.tryComplete.
        """
        size = 0
        for item in self._wanted:
            available = self._available(item)
            if available is None:
                return True
            size += available
            if size >= self._params.min_bytes:
                return True
        return False

    def on_complete(self, now_ms: int) -> None:
        """Read again and respond; if nothing has changed, with the results of the first read."""
        results = self._results
        if self._snapshots != [(*self._snapshot(item), True) for item in self._wanted]:
            results = _read(self._state, self._params, self._wanted, now_ms)
        self._state.respond(self._token, _response(self._wanted, results))

    def _local(self, item: FetchedPartition) -> Partition | None:
        return None if item.key is None else self._state.partitions.get(item.key)

    def _high_watermark(self, item: FetchedPartition) -> int:
        partition = self._local(item)
        return -1 if partition is None else partition.high_watermark

    def _snapshot(self, item: FetchedPartition) -> tuple[int, ...]:
        """All that the response for a partition depends on."""
        partition = self._local(item)
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

    def _available(self, item: FetchedPartition) -> int | None:
        """The number of bytes to read; None if there is something else to respond."""
        data = item.data
        try:
            partition = self._state.partition(item.key)
        except ReplicaError:
            return None
        from_follower = self._params.is_from_follower
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


# --- reading ----------------------------------------------------------------------------------


def _read(
    state: ReplicaManagerState, params: FetchParams, wanted: list[FetchedPartition], now_ms: int
) -> LogReadResults:
    """Read each partition, within the limits in bytes of the request.

    Source:  ReplicaManager.readFromLog.
    """
    results = LogReadResults([])
    for item in wanted:
        try:
            info = _read_partition(state, params, item, now_ms)
        except ReplicaError as refusal:
            results.data.append(_error(state, params, item, refusal.error))
            results.has_error_or_divergence = True
            continue
        batches = info.batches
        size = sum(batch.size for batch in batches) if batches else 0
        # The first batch is read whole whatever its size, so that a fetch makes progress (KIP-74).
        if size and results.size and results.size + size > params.max_bytes:
            batches, size = (), 0
        results.size += size
        results.has_error_or_divergence |= info.diverging_epoch is not None
        results.data.append(
            _partition_data(params, item, info, Records(batches) if batches else _NO_RECORDS)
        )
    return results


def _read_partition(
    state: ReplicaManagerState, params: FetchParams, item: FetchedPartition, now_ms: int
) -> LogReadInfo:
    if item.key is None:
        raise ReplicaError(
            ErrorCode.UNKNOWN_TOPIC_ID
            if params.version >= TOPIC_IDS_FROM
            else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
    partition = state.partition(item.key)
    data = item.data
    max_bytes = min(data.partition_max_bytes, params.max_bytes)
    current_leader_epoch = required_leader_epoch(partition, data.current_leader_epoch)
    last_fetched_epoch = optional_epoch(data.last_fetched_epoch)
    if params.is_from_follower:
        return fetch_records(
            partition,
            replica_id=params.replica_id,
            broker_epoch=params.broker_epoch,
            fetch_offset=data.fetch_offset,
            log_start_offset=data.log_start_offset,
            current_leader_epoch=current_leader_epoch,
            last_fetched_epoch=last_fetched_epoch,
            max_bytes=max_bytes,
            now_ms=now_ms,
        )
    return consumer_fetch_records(
        partition,
        fetch_offset=data.fetch_offset,
        any_replica=params.version >= _ANY_REPLICA_FROM,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
        max_bytes=max_bytes,
    )


@step
def required_leader_epoch(partition: Partition, current_leader_epoch: int) -> int | None:
    """The leader epoch that the sender expects; None for a sender without any."""
    return optional_epoch(current_leader_epoch)


# --- response ---------------------------------------------------------------------------------


def _partition_data(
    params: FetchParams, item: FetchedPartition, info: LogReadInfo, records: Records
) -> Any:
    diverging = info.diverging_epoch
    return FetchResponse.PartitionData(
        partition_index=item.data.partition,
        high_watermark=info.high_watermark,
        last_stable_offset=info.last_stable_offset,
        log_start_offset=info.log_start_offset,
        diverging_epoch=FetchResponse.EpochEndOffset()
        if diverging is None
        else FetchResponse.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset),
        aborted_transactions=() if params.reads_committed else None,
        records=records,
    )


def _error(
    state: ReplicaManagerState, params: FetchParams, item: FetchedPartition, error: ErrorCode
) -> Any:
    leader = FetchResponse.LeaderIdAndEpoch()
    # The sender finds the new leader without another Metadata request (KIP-951).
    moved = error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if moved and params.version >= _CURRENT_LEADER_FROM:
        leader_id, leader_epoch = state.current_leader(item.key)
        leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    return FetchResponse.PartitionData(
        partition_index=item.data.partition,
        error_code=error,
        high_watermark=-1,
        current_leader=leader,
        # A topic that is not there is refused before its log is read (KafkaApis).
        aborted_transactions=() if error in _UNKNOWN_TOPIC else None,
        records=_NO_RECORDS,
    )


def _response(wanted: list[FetchedPartition], results: LogReadResults) -> FetchResponse:
    topics: dict[tuple[uuid.UUID, str], list[Any]] = {}
    for item, data in zip(wanted, results.data, strict=True):
        topics.setdefault((item.topic_id, item.topic), []).append(data)
    return FetchResponse(
        responses=tuple(
            FetchResponse.FetchableTopicResponse(
                topic=topic, topic_id=topic_id, partitions=tuple(partitions)
            )
            for (topic_id, topic), partitions in topics.items()
        )
    )
