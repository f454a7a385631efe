"""One fetch session: the partitions that a client fetches, and what it was last sent of each.

Source:  FetchSession, CachedPartition, FetchMetadata.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

from minicluster.log.epochs import NO_EPOCH
from minicluster.protocol import ErrorCode

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0  # a full fetch that begins a session
FINAL_EPOCH = -1  # a full fetch without a session
_HIGHEST_EPOCH = 0x7FFF_FFFF
_INVALID_OFFSET = -1

# (topic id as a number, which Python hashes without a call, or before version 13 its name; index)
PartitionKey = tuple[int | str, int]


def next_epoch(epoch: int) -> int:
    """The epoch of the request after this one."""
    if epoch < INITIAL_EPOCH:
        return FINAL_EPOCH
    return 1 if epoch == _HIGHEST_EPOCH else epoch + 1


@dataclass(slots=True)
class CachedPartition:
    """A partition of a session.

    Shapes:  topic is None while its id is not known; data is the partition of the last request that
             named it; the offsets are those of the last response that had it, -1 before. place:
             partitions are read by ascending places.
    """

    topic: str | None
    topic_id: uuid.UUID
    data: Any
    place: int = 0
    high_watermark: int = _INVALID_OFFSET
    log_start_offset: int = _INVALID_OFFSET

    def take_response(self, data: Any) -> bool:
        """Note what is about to be sent.

        Shapes:  -> whether the partition has to be in an incremental response.
        Source:  CachedPartition.maybeUpdateResponseData.
        """
        failed = data.error_code != ErrorCode.NONE
        must_respond = (
            bool(data.records)
            or self.high_watermark != data.high_watermark
            or self.log_start_offset != data.log_start_offset
            or data.preferred_read_replica >= 0
            or failed
            or data.diverging_epoch.epoch != NO_EPOCH
        )
        # After an error the partition is sent again, even if its offsets have not changed.
        self.high_watermark = _INVALID_OFFSET if failed else data.high_watermark
        self.log_start_offset = data.log_start_offset
        return must_respond


class Waits(Protocol):
    """A fetch of a session that waits."""

    def include(self, item: Any) -> None:
        """Wait for one more partition, a FetchedPartition."""


class Settles(Protocol):
    """A partition of a session that is not read."""

    def unsettle(self) -> None:
        """Read it again."""


@dataclass(slots=True, kw_only=True)
class FetchSession:
    """The partitions of one client, in the order in which they are read.

    Shapes:  privileged: the session of a follower; the epoch is that of the next request. follower:
             (broker id, broker epoch) of the last request. A partition is in ``to_read`` or, where
             a follower has been sent all of it, in ``settled``. waiting: the fetches that wait, by
             their numbers in the purgatory.
    """

    id: int
    privileged: bool
    uses_topic_ids: bool
    partitions: dict[PartitionKey, CachedPartition]
    creation_ms: int
    last_used_ms: int
    epoch: int = next_epoch(INITIAL_EPOCH)
    cached_size: int = 0
    evictable_by: frozenset[bool] = field(default_factory=frozenset)  # of (privileged, other) ones
    follower: tuple[int, int] | None = None
    to_read: dict[PartitionKey, None] = field(default_factory=dict)
    settled: dict[PartitionKey, Settles] = field(default_factory=dict)
    waiting: dict[int, Waits] = field(default_factory=dict)
    last_place: int = 0

    def __post_init__(self) -> None:
        self.to_read = dict.fromkeys(self.partitions)
        for partition in self.partitions.values():
            self.put_last(partition)

    def put_last(self, partition: CachedPartition) -> None:
        """Read a partition after all others."""
        self.last_place += 1
        partition.place = self.last_place

    def partitions_to_read(self) -> dict[PartitionKey, CachedPartition]:
        """The partitions that are not settled, in order."""
        if not self.settled:
            return dict(self.partitions)
        found = [(key, self.partitions[key]) for key in self.to_read]
        return dict(sorted(found, key=lambda item: item[1].place))

    def take_follower(self, follower: tuple[int, int] | None) -> None:
        """Take the sender of a request; nothing is settled for another one."""
        if follower != self.follower:
            self.unsettle_all()
            self.follower = follower

    def unsettle_all(self) -> None:
        """Read all partitions again."""
        for settled in list(self.settled.values()):
            settled.unsettle()

    def update(
        self,
        wanted: Iterable[tuple[PartitionKey, CachedPartition]],
        forgotten: Iterable[PartitionKey],
    ) -> None:
        """Add and change the partitions of a request, then drop those that it forgets.

        Source:  FetchSession.update.
        """
        for key, partition in wanted:
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = partition
                self.put_last(partition)
            else:
                if key in self.settled:
                    self.settled[key].unsettle()
                known.data = partition.data
            self.to_read[key] = None
        for key in forgotten:
            if key in self.settled:
                self.settled[key].unsettle()
            self.partitions.pop(key, None)
            self.to_read.pop(key, None)
