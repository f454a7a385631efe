"""A fetch that waits for bytes.

Source:  DelayedFetch.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable
from typing import Any

from minicluster.replica.requests.optional_epoch import fetch_epoch
from minicluster.replica.requests.purgatory import DelayedOperation
from minicluster.replica.requests.read_from_log import (
    FetchedPartition,
    FetchParams,
    LogReadResults,
    read_from_log,
)
from minicluster.replica.sessions.fetch_session import PartitionKey
from minicluster.replica.state.replica_manager_state import ReplicaManagerState

OnRead = Callable[[dict[PartitionKey, Any], int], None]


class DelayedFetch(DelayedOperation):
    """A fetch that waits until there are enough bytes or something else to respond."""

    __slots__ = (
        "_is_newest",
        "_on_read",
        "_params",
        "_results",
        "_snapshots",
        "_state",
        "_wanted",
        "deadline_ms",
    )

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
        self._snapshots = [self._snapshot(item) for item in wanted]
        # The fetch itself may have moved the high watermark, after it was read.
        self._is_newest = all(
            data.high_watermark == (found[0] if found else -1)
            for found, data in zip(self._snapshots, results.data.values(), strict=True)
        )
        self.deadline_ms = deadline_ms

    def try_complete(self, now_ms: int) -> bool:
        """Complete once there are enough bytes, or something else to respond.

        Source:  DelayedFetch.tryComplete.
        """
        size = 0
        for item, offset in zip(self._wanted, self._results.offsets, strict=True):
            if offset is None:
                continue
            available = self._available(item, offset)
            if available is None:
                break
            size += available
        else:
            if size < self._params.min_bytes:
                return False
        self._is_newest = False
        return True

    def include(self, item: FetchedPartition) -> None:
        """Wait for a partition that was settled, whose log was read to its end."""
        index = bisect(self._wanted, item.place, key=lambda other: other.place)
        self._wanted.insert(index, item)
        self._results.offsets.insert(index, item.data.fetch_offset)
        self._is_newest = False

    def on_complete(self, now_ms: int) -> None:
        """Read again and respond; if nothing has changed, with the results of the first read."""
        results = self._results
        if not self._is_newest or self._snapshots != [self._snapshot(i) for i in self._wanted]:
            results = read_from_log(
                self._state, self._params, self._wanted, now_ms, from_purgatory=True
            )
        self._on_read(results.data, now_ms)

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

    def _available(self, item: FetchedPartition, offset: int) -> int | None:
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
        if end < offset:
            return None
        if data.last_fetched_epoch >= 0:
            epoch, end_offset = log.end_offset_for(data.last_fetched_epoch)
            if epoch < data.last_fetched_epoch or end_offset < data.fetch_offset:
                return None
        if end == offset:
            return 0
        segment_end = log.segment_end(offset)
        if segment_end is not None and segment_end <= end:
            return None  # a read goes no further than to the end of its segment
        most: int = data.partition_max_bytes
        if params.min_bytes <= 1 <= most:
            return 1
        # The bytes up to the end count, those of a batch that does not fit as well.
        batches = log.read(offset, most, end)
        after = log.batch_at(batches[-1].next_offset) if batches else None
        if after is not None and after.last_offset < end:
            return most
        return min(sum(batch.size for batch in batches), most)
