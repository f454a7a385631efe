"""A fetch that waits for enough bytes or something else to respond, and then reads again.

Source:  DelayedFetch.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from typing import Any

from minicluster.replica.fetching.fetch_session import CachedPartition, FetchSession, PartitionKey
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests.purgatory import DelayedOperation
from minicluster.replica.requests.read_from_log import (
    FetchedPartition,
    FetchParams,
    LogReadResults,
    fetch_epoch,
    is_held_back,
    read_from_log,
)

OnRead = Callable[[dict[PartitionKey, Any], int], None]


class DelayedFetch(DelayedOperation):
    """A fetch after its first read; ``on_read`` responds with what is read."""

    __slots__ = ("_offsets", "_on_read", "_params", "_state", "_wanted", "deadline_ms")

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
        self._on_read = on_read
        self.deadline_ms = deadline_ms
        keys = (item.key for item in wanted)
        self._offsets = dict(zip(keys, results.offsets, strict=True))  # as those of the results

    def wait(self, session: FetchSession | None, now_ms: int) -> None:
        """Wait, unless it can complete at once."""
        # Once more before it waits: its own read may have moved a high watermark, or put a replica
        # into the ISR, and nothing else may ever happen to wake it.
        if self.try_complete(now_ms):
            self.on_complete(now_ms)
            return
        keys = (self._state.key_named(item.topic, item.data.partition) for item in self._wanted)
        number = self._state.delayed.fetches.watch(self, [key for key in keys if key is not None])
        if session is not None:
            session.waiting[number] = self

    def include(self, key: PartitionKey, cached: CachedPartition) -> None:
        """Wait for a partition that was skipped, whose log was read to its end."""
        item = FetchedPartition.of_session(key, cached)
        insort(self._wanted, item, key=lambda other: other.place)
        self._offsets[key] = item.data.fetch_offset

    def try_complete(self, now_ms: int) -> bool:
        """Complete once there are enough bytes, or something else to respond.

        Source:  DelayedFetch.tryComplete.
        """
        size = 0
        for item in self._wanted:
            offset = self._offsets[item.key]
            if offset is not None:
                available = self._available(item, offset, now_ms)
                if available is None:
                    return True
                size += available
        return size >= self._params.min_bytes

    def on_complete(self, now_ms: int) -> None:
        """Read again, and respond."""
        results = read_from_log(
            self._state, self._params, self._wanted, now_ms, from_purgatory=True
        )
        self._on_read(results.data, now_ms)

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
