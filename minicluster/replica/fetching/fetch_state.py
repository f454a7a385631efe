"""The state of one partition in its fetcher.

Source:  PartitionFetchState, ReplicaState (Truncating, Fetching).
"""

from __future__ import annotations

import enum

from minicluster.lazy_dataclass import dataclass
from minicluster.log.epochs import UNDEFINED_EPOCH
from minicluster.replica.partition.partition import Partition


class Phase(enum.Enum):
    """The request that a partition's next step needs."""

    FETCHING = "fetch"
    TRUNCATING = "epoch end"
    LATEST_OFFSET = "latest offset"
    EARLIEST_OFFSET = "earliest offset"


@dataclass(slots=True)
class FetchState:
    """The next fetch of one partition; the epochs are -1 where not known."""

    partition: Partition
    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    phase: Phase
    delayed_until_ms: int = 0

    @classmethod
    def of(cls, partition: Partition) -> FetchState:
        """Fetch from the log end on; a log without epochs is truncated first."""
        latest = partition.latest_epoch
        return cls(
            partition=partition,
            offset=partition.log_end_offset,
            leader_epoch=partition.leader_epoch,
            last_fetched_epoch=or_undefined(latest),
            phase=Phase.TRUNCATING if latest is None else Phase.FETCHING,
        )

    def resume(self, offset: int) -> None:
        """Fetch on from an offset, which is the log end."""
        self.offset = offset
        self.last_fetched_epoch = or_undefined(self.partition.latest_epoch)
        self.phase = Phase.FETCHING


def or_undefined(epoch: int | None) -> int:
    """The epoch as requests carry it."""
    return UNDEFINED_EPOCH if epoch is None else epoch
