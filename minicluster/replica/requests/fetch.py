"""Fetch on the leader, for followers and consumers.

A fetch that finds enough bytes gets its response at once. Another waits until the bytes are there,
until there is something else to respond (diverging logs, an error), or until its deadline; then it
reads again. The fetch offset of a follower shows its leader how far it is: see partition/reads.

    handle_fetch
      new_context             the partitions: those of the request or of its session
      read_from_log           each partition, within what is left of the limit in bytes
        preferred_read_replica    a consumer is sent to a follower in its rack (KIP-392)
      DelayedFetch            waits, then reads again
      _respond                what the context responds with; a session's skipped partitions

Versions: v1 to v3 add throttle time, timestamps and a response limit in bytes (KIP-74). v4 has the
          isolation level, v5 the follower's log start. v7 has fetch sessions (KIP-227), v9 the
          current leader epoch (KIP-320), v11 the rack of the consumer, who may read from followers
          (KIP-392). v12 has the last fetched epoch (KIP-595), v13 topic ids in place of names
          (KIP-516), v14 OFFSET_MOVED_TO_TIERED_STORAGE (KIP-405), v15 the replica's broker epoch
          (KIP-903), v16 the endpoints of new leaders (KIP-951), v17 the follower's directory
          (KIP-853), v18 its high watermark (KIP-1166).
Leaves out: quotas of clients, tiered storage.
Source:     KafkaApis.handleFetchRequest, ReplicaManager.fetchMessages, readFromLog,
            findPreferredReadReplica; FetchParams, LogReadResult, DelayedFetch.
"""

from __future__ import annotations

import uuid
from bisect import bisect, insort
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any

from minicluster.log import Records
from minicluster.planting import step
from minicluster.protocol import ErrorCode, encode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import FetchResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.errors import ReplicaError
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.reads import LogReadInfo, consumer_fetch_records, fetch_records
from minicluster.replica.requests.purgatory import DelayedOperation, Key
from minicluster.replica.sessions.fetch_session import (
    CachedPartition,
    FetchContext,
    FetchSession,
    PartitionKey,
    new_context,
    partitions_of,
)
from minicluster.replica.sessions.skipped import skip_unchanged
from minicluster.replica.state.broker_context import NO_BROKER_EPOCH
from minicluster.replica.state.replica_manager_state import TOPIC_IDS_FROM, ReplicaManagerState

_ANY_REPLICA_FROM = 11
_REPLICA_STATE_FROM = 15
CONSUMER = -1
_FUTURE_REPLICA = -3
READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)  # IsolationLevel.forId takes no other one
_CURRENT_LEADER_FROM = 16
_STORAGE_ERROR_FROM = 6

NO_RECORDS = Records()
_NOT_DIVERGING = FetchResponse.EpochEndOffset()
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
_SIZE_OF_LENGTH = 4
PARTITIONS_PER_PART = 1_000  # some 20 ms of the processor
OnRead = Callable[[dict[PartitionKey, Any], int], Iterator[None]]


def handle_fetch(
    state: ReplicaManagerState, token: Any, request: Any, version: int, now_ms: int
) -> Iterator[None]:
    """Respond to a fetch or let it wait: a part of it with each next().

    Partitions that are not in the metadata are rejected before the others are read, and do not keep
    a fetch from waiting: otherwise a session with one deleted topic would be answered at once, over
    and over.

    Errors:  UNKNOWN_SERVER_ERROR for an unknown isolation level, once the session has continued,
             and for a session id that no shard of sessions has.
    """
    if not state.fetch_sessions.has_shard(request.session_id):
        _fail(state, token, request, version)
        return
    params = _params(state, request, version)
    uses_topic_ids = version >= TOPIC_IDS_FROM
    named: dict[PartitionKey, CachedPartition] = {}
    each = partitions_of(request, uses_topic_ids, state.topic_name)
    for number, (key, cached) in enumerate(each, 1):
        named[key] = cached
        if number % PARTITIONS_PER_PART == 0:
            yield
    context = new_context(
        state.fetch_sessions,
        request,
        named,
        uses_topic_ids=uses_topic_ids,
        follower=(params.replica_id, params.broker_epoch) if params.is_from_follower else None,
        name_of=state.topic_name,
        now_ms=now_ms,
    )
    # From here on the session has continued: its epoch has moved, whatever the response will be. A
    # client whose request fails now must open another, as after a response that was lost.
    session = context.session
    wanted: list[FetchedPartition] = []
    unknown: dict[PartitionKey, Any] = {}
    for number, (key, partition) in enumerate(context.partitions.items(), 1):
        if partition.topic is None:
            unknown[key] = _unknown(partition.data, ErrorCode.UNKNOWN_TOPIC_ID)
        elif not state.is_known(partition.topic, partition.data.partition):
            unknown[key] = _unknown(partition.data, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        else:
            wanted.append(FetchedPartition.of_session(key, partition))
        if number % PARTITIONS_PER_PART == 0:
            yield
    if wanted and request.isolation_level not in ISOLATION_LEVELS:
        _fail(state, token, request, version)
        return
    respond = partial(_respond, state, token, context, params, unknown)
    # The first read counts as the follower's progress, even if the fetch then waits: the high
    # watermark moves when the offset is known, not when there is something to send.
    results = LogReadResults()
    yield from read_from_log(state, params, wanted, results, now_ms)
    if (
        results.responds_at_once
        or not (wanted or (session is not None and session.skipped))
        or params.max_wait_ms <= 0
        or results.size >= params.min_bytes
    ):
        yield from respond(results.data, now_ms)
        return
    deadline_ms = now_ms + params.max_wait_ms
    if len(wanted) > PARTITIONS_PER_PART:
        large = DelayedLargeFetch(state, params, wanted, results, respond, deadline_ms)
        yield from large.wait(session, {*results.data, *unknown}, now_ms)
        return
    operation = DelayedFetch(state, params, wanted, results, respond, deadline_ms)
    # Once more before it waits: its own read may have moved a high watermark, or put a replica into
    # the ISR, and nothing else may ever happen to wake it.
    if operation.try_complete(now_ms):
        operation.on_complete(now_ms)
        return
    keys = (state.key_named(item.topic, item.data.partition) for item in wanted)
    number = state.delayed.fetches.watch(operation, [key for key in keys if key is not None])
    if session is not None:
        session.waiting[number] = operation


def _fail(state: ReplicaManagerState, token: Any, request: Any, version: int) -> None:
    """Respond as Kafka does after an exception that it does not expect."""
    error = ErrorCode.UNKNOWN_SERVER_ERROR
    state.respond(token, error_response(request, error, version=version))


def _params(state: ReplicaManagerState, request: Any, version: int) -> FetchParams:
    in_state = version >= _REPLICA_STATE_FROM
    max_bytes = min(request.max_bytes, state.config.fetch_max_bytes)
    return FetchParams(
        version=version,
        replica_id=request.replica_state.replica_id if in_state else request.replica_id,
        broker_epoch=request.replica_state.replica_epoch if in_state else NO_BROKER_EPOCH,
        max_wait_ms=request.max_wait_ms,
        min_bytes=min(request.min_bytes, max_bytes),
        max_bytes=max_bytes,
        reads_committed=request.isolation_level == READ_COMMITTED,
        rack=request.rack_id if version >= _ANY_REPLICA_FROM else None,
    )


def _unknown(data: Any, error: ErrorCode) -> Any:
    return FetchResponse.PartitionData(
        partition_index=data.partition, error_code=error, high_watermark=-1, records=NO_RECORDS
    )


# --- what is fetched ----------------------------------------------------------------------------


@dataclass(slots=True)
class FetchedPartition:
    """One partition of a request, whose topic is known.

    Shapes:  data is the partition of the request; the topic id is zero before version 13. place:
             its place in the session.
    """

    key: PartitionKey
    topic: str
    topic_id: uuid.UUID
    data: Any
    place: int

    @classmethod
    def of_session(cls, key: PartitionKey, cached: CachedPartition) -> FetchedPartition:
        """A partition of a session or of a request without one."""
        assert cached.topic is not None
        return cls(key, cached.topic, cached.topic_id, cached.data, cached.place)

    def local(self, state: ReplicaManagerState) -> Partition:
        """The local replica.

        Errors:  as ReplicaManagerState.partition; INCONSISTENT_TOPIC_ID for a topic that was
                 deleted and created again since the session began.
        """
        partition = state.partition_named(self.topic, self.data.partition)
        if self.topic_id not in (partition.topic_id, ZERO_UUID):
            raise ReplicaError(ErrorCode.INCONSISTENT_TOPIC_ID, f"{self.topic} was created again")
        return partition


class FetchParams:
    """The sender of a fetch, and its least and most bytes.

    Shapes:  rack is None before version 11, whose fetches only leaders serve. is_from_follower: a
             broker fetches, and not a consumer. leader_only: only a leader may serve this fetch.
    """

    __slots__ = (
        *("broker_epoch", "is_from_follower", "leader_only", "max_bytes", "max_wait_ms"),
        *("min_bytes", "rack", "reads_committed", "replica_id", "version"),
    )

    def __init__(
        self,
        *,
        version: int,
        replica_id: int,
        broker_epoch: int,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        reads_committed: bool,
        rack: str | None,
    ) -> None:
        self.version = version
        self.replica_id = replica_id
        self.broker_epoch = broker_epoch
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.reads_committed = reads_committed
        self.rack = rack
        self.is_from_follower = replica_id >= 0
        # A consumer that says where it is may read from a follower (KIP-392). One of an older
        # version may not, and the debugging consumer (-2) is a consumer.
        is_consumer = replica_id < 0 and replica_id != _FUTURE_REPLICA
        self.leader_only = self.is_from_follower or (is_consumer and rack is None)


@dataclass(slots=True)
class LogReadResults:
    """The outcome of one pass over the partitions.

    Shapes:  offsets: where each read began by Kafka's account, in the order of the partitions;
             None where no log was read. is_throttled: a partition was held back (KIP-73), and
             comes once the quota is no longer exceeded, though nothing else changes.
    """

    data: dict[PartitionKey, Any] = field(default_factory=dict)
    offsets: list[int | None] = field(default_factory=list)
    size: int = 0
    responds_at_once: bool = False
    is_throttled: bool = False


# --- one pass over the logs ---------------------------------------------------------------------


def read_from_log(
    state: ReplicaManagerState,
    params: FetchParams,
    wanted: list[FetchedPartition],
    results: LogReadResults,
    now_ms: int,
    *,
    from_purgatory: bool = False,
) -> Iterator[None]:
    """Read each partition, within what the partitions before it have left of the limit in bytes.

    The first batch of all is read whole whatever its size, so that a fetch makes progress (KIP-74).
    """
    left = params.max_bytes
    for number, item in enumerate(wanted):
        if number and number % PARTITIONS_PER_PART == 0:
            yield
        try:
            partition = item.local(state)
            replica = preferred_read_replica(state, partition, params, item.data, now_ms)
            if replica is not None:
                info, records = _offsets_of(partition, item.data), NO_RECORDS
                results.offsets.append(None)
            else:
                limits = left, results.size == 0
                info = _read(partition, params, item.data, limits, not from_purgatory, now_ms)
                records = info.records
                if records and is_held_back(state, params, partition, now_ms):
                    records, results.is_throttled = NO_RECORDS, True
                results.offsets.append(info.fetch_offset)
        except ReplicaError as rejection:
            results.data[item.key] = _error(state, params, item, rejection.error)
            results.offsets.append(None)
            results.responds_at_once = True
            continue
        size = records.size
        results.size += size
        left = max(0, left - size)
        # A follower of a diverging log has to truncate before it can fetch anything: were it to
        # wait for bytes, it would fall behind by the whole wait.
        results.responds_at_once |= info.diverging_epoch is not None or replica is not None
        results.data[item.key] = _data(params, item, info, records, replica)


def is_held_back(
    state: ReplicaManagerState, params: FetchParams, partition: Partition, now_ms: int
) -> bool:
    """A follower outside of the ISR gets nothing of a throttled partition for now (KIP-73).

    Source:  ReplicaManager.shouldLeaderThrottle.
    """
    quota = state.quotas.leader
    return (
        params.is_from_follower
        and quota.throttles
        and params.replica_id not in partition.isr_state.isr
        and quota.is_throttled(partition.topic, partition.partition)
        and quota.is_exceeded(now_ms)
    )


def _read(
    partition: Partition,
    params: FetchParams,
    data: Any,
    limits: tuple[int, bool],
    updates_state: bool,
    now_ms: int,
) -> LogReadInfo:
    left, min_one_batch = limits
    max_bytes = min(data.partition_max_bytes, left)
    current_leader_epoch = required_leader_epoch(partition, data.current_leader_epoch)
    last_fetched_epoch = fetch_epoch(data.last_fetched_epoch)
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
            min_one_batch=min_one_batch,
            updates_state=updates_state,
            now_ms=now_ms,
        )
    return consumer_fetch_records(
        partition,
        fetch_offset=data.fetch_offset,
        any_replica=not params.leader_only,
        current_leader_epoch=current_leader_epoch,
        last_fetched_epoch=last_fetched_epoch,
        max_bytes=max_bytes,
        min_one_batch=min_one_batch,
        read_committed=params.reads_committed,
    )


def fetch_epoch(epoch: int) -> int | None:
    """The epoch in a Fetch; None where it is negative, as in FetchRequest.optionalEpoch."""
    return None if epoch < 0 else epoch


@step
def required_leader_epoch(partition: Partition, current_leader_epoch: int) -> int | None:
    """The leader epoch that the sender expects; None for a sender without any."""
    return fetch_epoch(current_leader_epoch)


def _offsets_of(partition: Partition, data: Any) -> LogReadInfo:
    """The offsets of a log that is not read: the consumer is to fetch from another replica.

    Errors:  as Partition.require_epoch.
    """
    partition.require_epoch(fetch_epoch(data.current_leader_epoch), leader_only=False)
    return LogReadInfo(
        records=NO_RECORDS,
        fetch_offset=data.fetch_offset,
        high_watermark=partition.high_watermark,
        log_start_offset=partition.log_start_offset,
        log_end_offset=partition.log_end_offset,
        last_stable_offset=partition.last_stable_offset,
    )


def _data(
    params: FetchParams,
    item: FetchedPartition,
    info: LogReadInfo,
    records: Records,
    replica: int | None,
) -> Any:
    diverging, aborted = info.diverging_epoch, info.aborted_transactions
    return FetchResponse.PartitionData(
        partition_index=item.data.partition,
        high_watermark=info.high_watermark,
        last_stable_offset=info.last_stable_offset,
        log_start_offset=info.log_start_offset,
        diverging_epoch=_NOT_DIVERGING
        if diverging is None
        else FetchResponse.EpochEndOffset(epoch=diverging.epoch, end_offset=diverging.end_offset),
        aborted_transactions=None
        if aborted is None
        else tuple(
            FetchResponse.AbortedTransaction(producer_id=a.producer_id, first_offset=a.first_offset)
            for a in aborted
        ),
        preferred_read_replica=-1 if replica is None else replica,
        records=records,
    )


def _error(
    state: ReplicaManagerState, params: FetchParams, item: FetchedPartition, error: ErrorCode
) -> Any:
    leader = FetchResponse.LeaderIdAndEpoch()
    # The sender finds the new leader without another Metadata request (KIP-951).
    moved = error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
    if moved and params.version >= _CURRENT_LEADER_FROM:
        leader_id, leader_epoch = state.current_leader(
            state.key_named(item.topic, item.data.partition)
        )
        leader = FetchResponse.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=leader_epoch)
    if error == ErrorCode.KAFKA_STORAGE_ERROR and params.version < _STORAGE_ERROR_FROM:
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
    return FetchResponse.PartitionData(
        partition_index=item.data.partition,
        error_code=error,
        high_watermark=-1,
        current_leader=leader,
        aborted_transactions=None,
        records=NO_RECORDS,
    )


# --- a consumer may be sent to a follower (KIP-392) ---------------------------------------------


def preferred_read_replica(
    state: ReplicaManagerState, partition: Partition, params: FetchParams, data: Any, now_ms: int
) -> int | None:
    """The follower in the consumer's rack that has caught up most; None where this replica reads.

    Only members of the ISR that hold the fetch offset count: a consumer sent to a follower that
    lags would be sent there again and again. A leader in the consumer's rack reads itself.

    Source:  ReplicaManager.findPreferredReadReplica, RackAwareReplicaSelector, ReplicaView.
    """
    rack = params.rack
    if state.config.replica_selector != RACK_AWARE or not rack or params.is_from_follower:
        return None
    brokers = state.image.cluster
    own = brokers.broker(partition.broker_id)
    if not partition.is_leader or (own is not None and own.rack == rack):
        return None
    partition.on_change()  # the times of its replicas count
    offset: int = data.fetch_offset
    best: tuple[int, int, int] | None = None
    for replica_id, replica in partition.remote_replicas.items():
        broker = brokers.broker(replica_id)
        if broker is None or broker.fenced or broker.rack != rack:
            continue
        has_offset = replica.log_start_offset <= offset <= replica.log_end_offset
        if has_offset and replica_id in partition.isr_state.isr:
            lag_ms = now_ms - replica.last_caught_up_ms
            best = max(best or (-1, 0, 0), (replica.log_end_offset, -lag_ms, replica_id))
    return None if best is None else best[2]


# --- a fetch that waits -------------------------------------------------------------------------


class _WaitingFetch(DelayedOperation):
    """A fetch that waits; with the end of the wait it reads again and responds."""

    __slots__ = ("_on_read", "_params", "_results", "_state", "_wanted", "deadline_ms")

    def __init__(
        self,
        state: ReplicaManagerState,
        params: FetchParams,
        wanted: list[FetchedPartition],
        results: LogReadResults,
        on_read: OnRead,
        deadline_ms: int,
    ) -> None:
        self._state = state
        self._params = params
        self._wanted = wanted
        self._results = results
        self._on_read = on_read
        self.deadline_ms = deadline_ms

    def _read_again(self, now_ms: int) -> Iterator[None]:
        results = LogReadResults()
        yield from read_from_log(
            self._state, self._params, self._wanted, results, now_ms, from_purgatory=True
        )
        yield from self._on_read(results.data, now_ms)

    def _available(self, item: FetchedPartition, offset: int, now_ms: int) -> int | None:
        """The number of bytes to read; None if there is something else to respond."""
        data, params = item.data, self._params
        partition = self._state.local_named(item.topic, data.partition)
        if partition is None:
            return None
        wanted = fetch_epoch(data.current_leader_epoch)
        if wanted not in (None, partition.leader_epoch) or partition.leader is None:
            return None
        if params.leader_only and not partition.is_leader:
            return None
        log = partition.replica_log.log
        if params.is_from_follower:
            end = log.end_offset
        elif params.reads_committed:
            end = partition.last_stable_offset
        else:
            end = partition.high_watermark
        # The log was truncated, or the fetch is out of range: only a read can tell, with an error.
        if end < offset:
            return None
        if data.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for(data.last_fetched_epoch)
            if epoch < data.last_fetched_epoch or end_offset < data.fetch_offset:
                return None
        if end == offset or is_held_back(self._state, params, partition, now_ms):
            return 0
        segment_end = log.segment_end(offset)
        if segment_end is not None and segment_end <= end:
            # A read ends with its segment: waiting for more bytes would never bring them.
            return None
        most: int = data.partition_max_bytes
        if params.min_bytes <= 1 <= most:
            return 1
        # The bytes up to the end count, those of a batch that does not fit as well.
        batches = log.read(offset, most, end)
        after = log.batch_at(batches[-1].next_offset) if batches else None
        if after is not None and after.last_offset < end:
            return most
        return min(sum(batch.size for batch in batches), most)


class DelayedFetch(_WaitingFetch):
    """A fetch that waits until there are enough bytes or something else to respond."""

    __slots__ = ("_is_newest", "_snapshots")

    def __init__(
        self,
        state: ReplicaManagerState,
        params: FetchParams,
        wanted: list[FetchedPartition],
        results: LogReadResults,
        on_read: OnRead,
        deadline_ms: int,
    ) -> None:
        super().__init__(state, params, wanted, results, on_read, deadline_ms)
        self._snapshots = [self._snapshot(item) for item in wanted]
        # The fetch itself may have moved the high watermark, after it was read.
        self._is_newest = not results.is_throttled and all(
            data.high_watermark == (snapshot[0] if snapshot else -1)
            for snapshot, data in zip(self._snapshots, results.data.values(), strict=True)
        )

    def try_complete(self, now_ms: int) -> bool:
        """Complete once there are enough bytes, or something else to respond.

        Source:  DelayedFetch.tryComplete.
        """
        size = 0
        for item, offset in zip(self._wanted, self._results.offsets, strict=True):
            if offset is None:
                continue
            available = self._available(item, offset, now_ms)
            if available is None:
                break
            size += available
        else:
            if size < self._params.min_bytes:
                return False
        self._is_newest = False
        return True

    def include(self, key: PartitionKey, cached: CachedPartition) -> None:
        """Wait for a partition that was skipped, whose log was read to its end."""
        item = FetchedPartition.of_session(key, cached)
        index = bisect(self._wanted, item.place, key=lambda other: other.place)
        self._wanted.insert(index, item)
        self._results.offsets.insert(index, item.data.fetch_offset)
        self._is_newest = False

    def on_complete(self, now_ms: int) -> None:
        """Read again and respond; if nothing has changed, with the results of the first read."""
        if self._is_newest and self._snapshots == [self._snapshot(i) for i in self._wanted]:
            work = self._on_read(self._results.data, now_ms)
        else:
            work = self._read_again(now_ms)
        if len(self._wanted) > PARTITIONS_PER_PART:  # by those included since
            self._state.begun.append(work)
        else:
            self._state.carry_out(work)

    def _snapshot(self, item: FetchedPartition) -> tuple[int, ...]:
        """All that the response for a partition depends on, the high watermark first."""
        partition = self._state.local_named(item.topic, item.data.partition)
        if partition is None:
            return ()
        replica_log = partition.replica_log
        log = replica_log.log
        return (
            replica_log.high_watermark,
            partition.topic_id.int,
            partition.leader_epoch,
            partition.partition_epoch,
            replica_log.last_stable_offset,
            log.start_offset,
            log.end_offset,
        )


class DelayedLargeFetch(_WaitingFetch):
    """A fetch of many partitions that waits: a change of one of them is a look at that one.

    Kafka looks at all of them then. Each append of another client would take as long as that.
    """

    __slots__ = ("_is_due", "_items", "_size", "_sizes")

    def __init__(
        self,
        state: ReplicaManagerState,
        params: FetchParams,
        wanted: list[FetchedPartition],
        results: LogReadResults,
        on_read: OnRead,
        deadline_ms: int,
    ) -> None:
        super().__init__(state, params, wanted, results, on_read, deadline_ms)
        self._items: dict[Key, tuple[FetchedPartition, int | None]] = {}
        self._sizes: dict[Key, int] = {}  # the bytes to read of each
        self._size = 0
        self._is_due = False  # there is something else to respond

    def wait(
        self, session: FetchSession | None, read: Collection[PartitionKey], now_ms: int
    ) -> Iterator[None]:
        """Watch the partitions, and look at each once it is watched: a part with each next().

        Shapes:  read: the partitions of the session that were read, or rejected.
        """
        fetches = self._state.delayed.fetches
        number = fetches.watch(self, ())
        begun = list(zip(self._wanted, self._results.offsets, strict=True))
        if session is not None:
            session.waiting[number] = self
            # What was skipped as the session was read may have changed since.
            for key in [key for key in session.to_read if key not in read]:
                cached = session.partitions[key]
                if cached.topic is not None:
                    self.include(key, cached)
                    begun.append(
                        (FetchedPartition.of_session(key, cached), cached.data.fetch_offset)
                    )
        for index, (item, offset) in enumerate(begun):
            if index % PARTITIONS_PER_PART == 0:
                yield
            local = self._state.key_named(item.topic, item.data.partition)
            if local is None:  # the topic was deleted meanwhile
                self._is_due = True
                continue
            if not fetches.watch_also(number, local):
                return
            self._items[local] = item, offset
            self._look_at(local, now_ms)
        fetches.complete_if_possible(number, now_ms)

    def include(self, key: PartitionKey, cached: CachedPartition) -> None:
        item = FetchedPartition.of_session(key, cached)
        insort(self._wanted, item, key=_place)
        local = self._state.key_named(item.topic, item.data.partition)
        if local is not None:
            self._items[local] = item, item.data.fetch_offset

    def try_complete_on(self, key: Key, now_ms: int) -> bool:
        self._look_at(key, now_ms)
        return self.try_complete(now_ms)

    def try_complete(self, now_ms: int) -> bool:
        """Complete once there are enough bytes, or something else to respond."""
        return self._is_due or self._size >= self._params.min_bytes

    def on_complete(self, now_ms: int) -> None:
        self._state.begun.append(self._read_again(now_ms))

    def _look_at(self, key: Key, now_ms: int) -> None:
        item, offset = self._items.get(key, (None, None))
        if item is None or offset is None:
            return
        available = self._available(item, offset, now_ms)
        if available is None:
            self._is_due = True
        else:
            self._size += available - self._sizes.get(key, 0)
            self._sizes[key] = available


def _place(item: FetchedPartition) -> int:
    return item.place


# --- the response -------------------------------------------------------------------------------


def _respond(
    state: ReplicaManagerState,
    token: Any,
    context: FetchContext,
    params: FetchParams,
    unknown: dict[PartitionKey, Any],
    read: dict[PartitionKey, Any],
    now_ms: int,
) -> Iterator[None]:
    """Respond with what was read, then with the partitions that are not known.

    The session takes all of it at once: another request may come between two parts.
    """
    endpoints: tuple[Any, ...] = ()
    if not params.is_from_follower:
        leaders = dict.fromkeys(data.current_leader.leader_id for data in read.values())
        endpoints = tuple(
            FetchResponse.NodeEndpoint(node_id=n, host=e.host, port=e.port, rack=rack)
            for n, e, rack in state.endpoints(leaders)
        )
    if len(read) > PARTITIONS_PER_PART:
        yield
        if not params.is_from_follower:
            read = _with_newest_ends(state, context, read)
    response = context.response({**read, **unknown} if unknown else read, endpoints, now_ms)
    if params.is_from_follower:
        _count_throttled(state, params, response, now_ms)
    if read and params.is_from_follower:
        yield from _skip_unchanged(state, response.session_id, read)
    state.respond(token, response)


def _count_throttled(
    state: ReplicaManagerState, params: FetchParams, response: Any, now_ms: int
) -> None:
    """Count what the response has of throttled partitions, whether in sync or not (KIP-73).

    A response without any counts with what it has besides, as in Kafka: where the rate is a few
    bytes, the fetches of those in sync exceed it. Without a bound nothing is counted.

    Source:  KafkaApis.sizeOfThrottledPartitions.
    """
    quota = state.quotas.leader
    if quota.bytes_per_second is None:
        return
    topics = []
    for topic in response.responses:
        name = topic.topic or state.topic_name(topic.topic_id)
        throttled = tuple(
            data
            for data in topic.partitions
            if name is not None and quota.is_throttled(name, data.partition_index)
        )
        if throttled:
            topics.append(replace(topic, partitions=throttled))
    counted = encode(replace(response, responses=tuple(topics)), params.version)
    quota.record(_SIZE_OF_LENGTH + len(counted), now_ms)


def _with_newest_ends(
    state: ReplicaManagerState, context: FetchContext, read: dict[PartitionKey, Any]
) -> dict[PartitionKey, Any]:
    """What was read in parts, with the high watermarks of now.

    Else a client could see one go back, behind a response that left while this one was read.
    """
    session = context.session
    partitions = context.partitions if session is None else session.partitions
    newest: dict[PartitionKey, Any] = {}
    for key, data in read.items():
        topic = partitions[key].topic if key in partitions else None
        local = None if topic is None else state.local_named(topic, key[1])
        if local is None or local.high_watermark <= data.high_watermark:
            continue
        if local.is_leader and data.error_code == ErrorCode.NONE:
            newest[key] = replace(data, high_watermark=local.high_watermark)
    return {**read, **newest} if newest else read


def _skip_unchanged(
    state: ReplicaManagerState, session_id: int, read: dict[PartitionKey, Any]
) -> Iterator[None]:
    session = state.fetch_sessions.find(session_id)
    epoch = None if session is None else session.epoch
    each = iter(read.items())
    while part := dict(islice(each, PARTITIONS_PER_PART)):
        # The follower has given up this request, and another one reads the session already.
        if session is None or session.epoch != epoch:
            return
        if state.fetch_sessions.find(session_id) is not session:
            return
        skip_unchanged(state, session, part)
        if len(part) == PARTITIONS_PER_PART:
            yield
