"""The reads of a Fetch: each partition within what those before it have left of the limit in bytes.

The fetch offset of a follower shows its leader how far it is (partition/reads.py). A consumer may
be sent to a follower in its rack instead (KIP-392), and a follower outside of the ISR may get
nothing for now (KIP-73).

Leaves out: tiered storage.
Source:     ReplicaManager.readFromLog, findPreferredReadReplica, shouldLeaderThrottle; FetchParams,
            LogReadResult.
"""

from __future__ import annotations

import uuid
from typing import Any

from msgspec import Struct, field

from minicluster.log import Records
from minicluster.planting import step
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FetchResponse
from minicluster.protocol.uuids import ZERO_UUID
from minicluster.replica.errors import ReplicaError
from minicluster.replica.fetching.fetch_session import CachedPartition, PartitionKey
from minicluster.replica.partition.partition import Partition
from minicluster.replica.partition.reads import LogReadInfo, consumer_fetch_records, fetch_records
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.values import Value

_CURRENT_LEADER_FROM = 16
_STORAGE_ERROR_FROM = 6

NO_RECORDS = Records()
_NOT_DIVERGING = FetchResponse.EpochEndOffset()
RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


# --- what is fetched ----------------------------------------------------------------------------


class FetchedPartition(Struct):
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


class FetchParams(Value, kw_only=True):
    """The sender of a fetch, and its least and most bytes.

    Shapes:  rack is None before version 11, whose fetches only leaders serve. is_from_follower: a
             broker fetches, and not a consumer. leader_only: only a leader may serve this fetch.
    """

    version: int
    replica_id: int
    broker_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    reads_committed: bool
    rack: str | None
    is_from_follower: bool
    leader_only: bool


class LogReadResults(Struct):
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
    now_ms: int,
    *,
    from_purgatory: bool = False,
) -> LogReadResults:
    """Read each partition, within what the partitions before it have left of the limit in bytes.

    The first batch of all is read whole whatever its size, so that a fetch makes progress (KIP-74).
    """
    results = LogReadResults()
    left = params.max_bytes
    for item in wanted:
        try:
            partition = item.local(state)
            replica = preferred_read_replica(state, partition, params, item.data, now_ms)
            if replica is not None:
                info, records = _offsets_of(partition, item.data), NO_RECORDS
                results.offsets.append(None)
            else:
                limits = left, results.size == 0
                info = read_partition(
                    partition, params, item.data, limits, not from_purgatory, now_ms
                )
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
    return results


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


@step
def read_partition(
    partition: Partition,
    params: FetchParams,
    data: Any,
    limits: tuple[int, bool],
    updates_state: bool,
    now_ms: int,
) -> LogReadInfo:
    """Read one partition for the sender of a fetch.

    Shapes:  limits: the bytes that are left, and whether the first batch is read whole.
    Errors:  as fetch_records and consumer_fetch_records.
    """
    left, min_one_batch = limits
    max_bytes = min(data.partition_max_bytes, left)
    current_leader_epoch = fetch_epoch(data.current_leader_epoch)
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
