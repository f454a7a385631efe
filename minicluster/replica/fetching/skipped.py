"""Skipped partitions: those of a follower's fetch session of which there is nothing to send.

A member of the ISR that has everything fetches to show that it is alive. Of such a partition a
fetch changes nothing but the times of the replica, and these are the times of the session. So the
leader leaves a skipped partition alone until it changes, until the follower names it or until the
session ends. The times are noted then.

Kafka reads every partition of a session at each fetch, with the same outcome
(tests/replica/test_skipped_partitions.py). Without skipped partitions a cluster at rest would read,
at each fetch, every log in which there is nothing new.

Source:  KIP-227; CachedPartition.maybeUpdateResponseData, Partition.updateFollowerFetchState.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from minicluster.log.epochs import NO_EPOCH
from minicluster.protocol import ErrorCode
from minicluster.replica.fetching.fetch_session import CachedPartition, FetchSession, PartitionKey
from minicluster.replica.partition.partition import Partition
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.replica.requests.purgatory import Purgatory


class SkippedPartition:
    """One partition of a session, until it is read again."""

    __slots__ = ("_fetches", "_key", "_partition", "_session")

    def __init__(
        self, session: FetchSession, key: PartitionKey, partition: Partition, fetches: Purgatory
    ) -> None:
        self._session, self._key = session, key
        self._partition, self._fetches = partition, fetches
        session.skipped[key] = self
        del session.to_read[key]
        partition.skipped_by.append(self)

    def read_again(self) -> None:
        """Let the next fetch read the partition, and those that wait."""
        session, partition = self._session, self._partition
        del session.skipped[self._key]
        session.to_read[self._key] = None
        partition.skipped_by.remove(self)
        assert session.follower is not None
        replica_id, _ = session.follower
        replica = partition.remote_replicas.get(replica_id)
        if replica is not None:
            partition.remote_replicas[replica_id] = replica.fetched_end(session.last_used_ms)
        cached = session.partitions[self._key]
        for number, operation in list(session.waiting.items()):
            if self._fetches.watch_also(number, partition.key):
                operation.include(self._key, cached)
            else:
                del session.waiting[number]


def skip_unchanged(
    state: ReplicaManagerState, session: FetchSession, read: Mapping[PartitionKey, Any]
) -> None:
    """Skip, from the next fetch on, the partitions of a response that have nothing new."""
    for key, data in read.items():
        cached = session.partitions.get(key)
        if (
            cached is None
            or key in session.skipped
            or data.error_code != ErrorCode.NONE
            or data.records
            or data.diverging_epoch.epoch != NO_EPOCH
        ):
            continue
        named = cached.topic, cached.data.partition
        partition = None if named[0] is None else state.local_named(named[0], named[1])
        follower = session.follower
        if (
            partition is not None
            and follower is not None
            and is_unchanged(partition, cached, follower)
        ):
            SkippedPartition(session, key, partition, state.delayed.fetches)


def is_unchanged(partition: Partition, cached: CachedPartition, follower: tuple[int, int]) -> bool:
    """The follower has been sent all that the leader has, and another fetch proposes nothing."""
    replica_id, broker_epoch = follower
    replica = partition.remote_replicas.get(replica_id)
    end = partition.log_end_offset
    if replica is None or not partition.is_leader or replica_id not in partition.isr_state.isr:
        return False
    alive_epoch = partition.context.view.alive_epoch(replica_id)
    return (
        (cached.data.fetch_offset, replica.log_end_offset) == (end, end)
        and cached.high_watermark == partition.high_watermark
        and cached.log_start_offset == partition.log_start_offset
        and replica.log_start_offset == cached.data.log_start_offset
        and replica.broker_epoch == broker_epoch
        and (alive_epoch is None or alive_epoch <= broker_epoch)
        and cached.data.current_leader_epoch in (NO_EPOCH, partition.leader_epoch)
        and replica.leader_epoch == partition.leader_epoch
    )
