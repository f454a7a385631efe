"""A fetch that waits for enough bytes or something else to respond, and then reads again.

Kafka looks at all partitions of a fetch when one of them changes, and so does this one of few. Of
many the one alone is looked at: each append of another client would take as long as all of them.

Source:  DelayedFetch.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Collection, Iterator
from typing import Any

from minicluster.replica.requests.purgatory import DelayedOperation, Key
from minicluster.replica.requests.read_from_log import (
    FetchedPartition,
    FetchParams,
    LogReadResults,
    fetch_epoch,
    is_held_back,
    read_from_log,
)
from minicluster.replica.sessions.fetch_session import CachedPartition, FetchSession, PartitionKey
from minicluster.replica.state.replica_manager_state import ReplicaManagerState

PARTITIONS_PER_PART = 1_000  # to be watched and looked at: some 10 ms of the processor
OnRead = Callable[[dict[PartitionKey, Any], int], Iterator[None]]


class DelayedFetch(DelayedOperation):
    """A fetch after its first read; ``on_read`` responds with what is read."""

    __slots__ = (
        *("_is_due", "_is_large", "_is_newest", "_items", "_offsets", "_on_read", "_params"),
        *("_results", "_size", "_sizes", "_snapshots", "_state", "_wanted", "deadline_ms"),
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
        self.deadline_ms = deadline_ms
        keys = (item.key for item in wanted)
        self._offsets = dict(zip(keys, results.offsets, strict=True))  # as those of the results
        self._is_due = False  # there is something else to respond
        self._size = 0  # how many bytes there are to read
        self._is_large = len(wanted) > PARTITIONS_PER_PART
        self._items: dict[Key, FetchedPartition] = {}  # of a large one, those that are watched
        self._sizes: dict[PartitionKey, int] = {}  # likewise, the bytes to read of each
        self._snapshots: list[tuple[int, ...]] = []
        self._is_newest = not self._is_large and not results.is_throttled
        if self._is_newest:
            self._snapshots = [self._snapshot(item) for item in wanted]
            # The fetch itself may have moved the high watermark, after it was read.
            self._is_newest = all(
                data.high_watermark == (snapshot[0] if snapshot else -1)
                for snapshot, data in zip(self._snapshots, results.data.values(), strict=True)
            )

    def wait(
        self, session: FetchSession | None, rejected: Collection[PartitionKey], now_ms: int
    ) -> Iterator[None]:
        """Wait, unless it can complete at once: a part of a large one with each next().

        Shapes:  rejected: the partitions of the session that were not read.
        """
        # Once more before it waits: its own read may have moved a high watermark, or put a replica
        # into the ISR, and nothing else may ever happen to wake it.
        if not self._is_large and self.try_complete(now_ms):
            self.on_complete(now_ms)
            return
        fetches = self._state.delayed.fetches
        keys = () if self._is_large else [self._local(item) for item in self._wanted]
        number = fetches.watch(self, [key for key in keys if key is not None])
        if session is not None:
            session.waiting[number] = self
        if self._is_large:
            yield from self._watch_in_parts(session, rejected, number, now_ms)

    def _watch_in_parts(
        self,
        session: FetchSession | None,
        rejected: Collection[PartitionKey],
        number: int,
        now_ms: int,
    ) -> Iterator[None]:
        """Watch the partitions, and look at each once it is watched, since others change them."""
        fetches = self._state.delayed.fetches
        if session is not None:
            # What was skipped as the session was read may have changed since.
            read = {*self._results.data, *rejected}
            for key in [key for key in session.to_read if key not in read]:
                cached = session.partitions[key]
                if cached.topic is not None:
                    self.include(key, cached)
        for index, item in enumerate([*self._wanted]):
            if index % PARTITIONS_PER_PART == 0:
                yield
            local = self._local(item)
            if local is None:  # the topic was deleted meanwhile
                self._is_due = True
                continue
            if not fetches.watch_also(number, local):
                return
            self._items[local] = item
            self._look_at(item, now_ms)
        fetches.complete_if_possible(number, now_ms)

    def include(self, key: PartitionKey, cached: CachedPartition) -> None:
        """Wait for a partition that was skipped, whose log was read to its end."""
        item = FetchedPartition.of_session(key, cached)
        insort(self._wanted, item, key=lambda other: other.place)
        self._offsets[key] = item.data.fetch_offset
        self._is_newest = False
        local = self._local(item)
        if self._is_large and local is not None:
            self._items[local] = item

    def try_complete(self, now_ms: int) -> bool:
        """Complete once there are enough bytes, or something else to respond.

        Source:  DelayedFetch.tryComplete.
        """
        if not self._is_large:
            self._size = 0
            for item in self._wanted:
                self._look_at(item, now_ms)
                if self._is_due:
                    break
        if not self._is_due and self._size < self._params.min_bytes:
            return False
        self._is_newest = False
        return True

    def try_complete_on(self, key: Key, now_ms: int) -> bool:
        """The same, now that this partition has changed."""
        item = self._items.get(key)
        if item is not None:
            self._look_at(item, now_ms)
        return self.try_complete(now_ms)

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

    def _read_again(self, now_ms: int) -> Iterator[None]:
        results = LogReadResults()
        yield from read_from_log(
            self._state, self._params, self._wanted, results, now_ms, from_purgatory=True
        )
        yield from self._on_read(results.data, now_ms)

    def _local(self, item: FetchedPartition) -> Key | None:
        return self._state.key_named(item.topic, item.data.partition)

    def _look_at(self, item: FetchedPartition, now_ms: int) -> None:
        offset = self._offsets[item.key]
        if offset is None:
            return
        available = self._available(item, offset, now_ms)
        if available is None:
            self._is_due = True
        elif self._is_large:
            self._size += available - self._sizes.get(item.key, 0)
            self._sizes[item.key] = available
        else:
            self._size += available

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
