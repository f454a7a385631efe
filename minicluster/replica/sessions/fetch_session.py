"""One fetch session: the partitions that a client fetches, and what it was last sent of each.

Source:  FetchSession, CachedPartition, FetchMetadata.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import field
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.log.epochs import NO_EPOCH
from minicluster.protocol import ErrorCode

INVALID_SESSION_ID = 0
INITIAL_EPOCH = 0  # a full fetch that begins a session
FINAL_EPOCH = -1  # a full fetch without a session
_HIGHEST_EPOCH = 0x7FFF_FFFF
_INVALID_OFFSET = -1

PartitionKey = tuple[uuid.UUID | str, int]  # (topic id or, before version 13, topic name; index)


def next_epoch(epoch: int) -> int:
    """The epoch of the request after this one."""
    if epoch < INITIAL_EPOCH:
        return FINAL_EPOCH
    return 1 if epoch == _HIGHEST_EPOCH else epoch + 1


@dataclass(slots=True)
class CachedPartition:
    """A partition of a session.

    Shapes:  topic is None while its id is not known; data is the partition of the last request that
             named it; the offsets are those of the last response that had it, -1 before.
    """

    topic: str | None
    topic_id: uuid.UUID
    data: Any
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


@dataclass(slots=True, kw_only=True)
class FetchSession:
    """The partitions of one client, in the order in which they are read.

    Shapes:  privileged: the session of a follower; the epoch is that of the next request.
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
            else:
                known.data = partition.data
        for key in forgotten:
            self.partitions.pop(key, None)
