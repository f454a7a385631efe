"""The state of one partition in its fetcher.

Source:  PartitionFetchState, ReplicaState (Truncating, Fetching).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from minicluster.log.epochs import UNDEFINED_EPOCH
from minicluster.replica.partition.partition import Partition
from minicluster.replica.requests.purgatory import Key

FetchKey = tuple[int, int]  # (topic id as a number, which Python hashes without a call; partition)


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

    @property
    def key(self) -> FetchKey:
        """The partition among those of its fetcher."""
        return fetch_key(self.partition.key)

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


def fetch_key(key: Key) -> FetchKey:
    """A partition in a fetcher and its session."""
    return key[0].int, key[1]


def or_undefined(epoch: int | None) -> int:
    """The epoch as requests carry it."""
    return UNDEFINED_EPOCH if epoch is None else epoch
