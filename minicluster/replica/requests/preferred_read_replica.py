"""The replica that a leader sends a consumer to (KIP-392).

Source:  ReplicaManager.findPreferredReadReplica, RackAwareReplicaSelector, ReplicaView.
"""

from __future__ import annotations

from typing import Any, Protocol

from minicluster.replica.partition.partition import Partition
from minicluster.replica.state.replica_manager_state import ReplicaManagerState

RACK_AWARE = "org.apache.kafka.common.replica.RackAwareReplicaSelector"


class Consumer(Protocol):
    """The sender of a fetch."""

    @property
    def is_from_follower(self) -> bool:
        """A broker fetches, and not a consumer."""

    @property
    def rack(self) -> str | None:
        """The consumer's rack; None if it cannot read from followers."""


def preferred_read_replica(
    state: ReplicaManagerState, partition: Partition, consumer: Consumer, data: Any, now_ms: int
) -> int | None:
    """The follower in the consumer's rack that has caught up most; None where the leader reads.

    Only members of the ISR that hold the fetch offset count: a consumer sent to a follower that
    lags would be sent there again and again. A leader in the consumer's rack reads itself.
    """
    rack = consumer.rack
    if state.replica_selector != RACK_AWARE or not rack or consumer.is_from_follower:
        return None
    brokers = state.image.cluster
    own = brokers.broker(partition.broker_id)
    if not partition.is_leader or (own is not None and own.rack == rack):
        return None
    partition.unsettle()  # the times of its replicas count
    offset: int = data.fetch_offset
    best: tuple[int, int, int] | None = None
    for replica_id, replica in partition.remote_replicas.items():
        broker = brokers.broker(replica_id)
        if broker is None or broker.fenced or broker.rack != rack:
            continue
        held = replica.log_start_offset <= offset <= replica.log_end_offset
        if held and replica_id in partition.isr_state.isr:
            lag_ms = now_ms - replica.last_caught_up_ms
            best = max(best or (-1, 0, 0), (replica.log_end_offset, -lag_ms, replica_id))
    return None if best is None else best[2]
