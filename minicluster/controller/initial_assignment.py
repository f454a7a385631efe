"""Which replicas a new partition gets: named by the caller, or placed; and its first state.

Source:  ReplicationControlManager.validateManualPartitionAssignment, buildPartitionRegistration;
         ClusterControlManager.usableBrokers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from minicluster.controller.errors import Rejected
from minicluster.controller.placement import Draw, UsableBroker, place_replicas
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.metadata.image.partition import RECOVERED, PartitionRegistration
from minicluster.planting import step
from minicluster.protocol import ErrorCode


def validate_assignment(
    state: ClusterState, replicas: Sequence[int], replication_factor: int | None
) -> None:
    """Reject an assignment that names no broker, an unknown one, one twice, or another number.

    Fenced brokers may be named.
    Errors:  Rejected with INVALID_REPLICA_ASSIGNMENT.
    """
    if not replicas:
        raise _invalid("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for broker_id in sorted(replicas):
        if state.image.cluster.broker(broker_id) is None:
            raise _invalid(
                f"The manual partition assignment includes broker {broker_id}, but no such broker "
                "is registered."
            )
        if broker_id == previous:
            raise _invalid(
                f"The manual partition assignment includes the broker {broker_id} more than once."
            )
        previous = broker_id
    if replication_factor is not None and len(replicas) != replication_factor:
        raise _invalid(
            f"The manual partition assignment includes a partition with {len(replicas)} "
            "replica(s), but this is not consistent with previous partitions, which have "
            f"{replication_factor} replica(s)."
        )


def usable_brokers(state: ClusterState) -> Iterator[UsableBroker]:
    """The brokers that may get replicas: known, not shutting down, not cordoned altogether."""
    for broker_id, fenced in state.active_heartbeats().usable():
        broker = state.image.cluster.broker(broker_id)
        if broker is not None and broker.has_uncordoned_log_dirs:
            yield UsableBroker(id=broker_id, rack=broker.rack, fenced=fenced)


def active_replicas(state: ClusterState, replicas: Sequence[int]) -> tuple[int, ...]:
    """The replicas that may be in a first ISR, in order."""
    return tuple(replica for replica in replicas if state.image.cluster.is_active(replica))


class NewPartitions:
    """The replicas and the first states of the partitions that one request makes.

    It may make ten thousand, in as many topics, and those with the same replicas are alike.
    """

    def __init__(self, state: ClusterState) -> None:
        self._state = state
        self._by_replicas: dict[tuple[int, ...], PartitionRegistration | None] = {}

    @cached_property
    def _usable(self) -> tuple[UsableBroker, ...]:
        return tuple(usable_brokers(self._state))

    def place(self, partitions: int, replication_factor: int, draw: Draw) -> list[tuple[int, ...]]:
        """Place new partitions of a topic on the usable brokers.

        Errors:  PlacementError.
        """
        placed = place_replicas(
            self._usable,
            partitions=partitions,
            replication_factor=replication_factor,
            draw=draw,
            cordoned_in_messages=self._state.rules.placement_errors_mention_cordoned,
        )
        return list(placed)

    def with_replicas(self, replicas: tuple[int, ...]) -> PartitionRegistration | None:
        """The state of a partition; None where no replica could lead."""
        try:
            return self._by_replicas[replicas]
        except KeyError:
            active = active_replicas(self._state, replicas)
            partition = new_partition(self._state, replicas, active) if active else None
            self._by_replicas[replicas] = partition
            return partition


@step
def new_partition(
    state: ClusterState, replicas: Sequence[int], active: tuple[int, ...]
) -> PartitionRegistration:
    """A new partition's state: the active replicas are in sync, the first of them leads."""
    return PartitionRegistration(
        replicas=tuple(replicas),
        directories=tuple(state.default_dir(replica) for replica in replicas),
        isr=active,
        leader=active[0],
        leader_recovery_state=RECOVERED,
        leader_epoch=0,
        partition_epoch=0,
    )


def _invalid(message: str) -> Rejected:
    return Rejected(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
