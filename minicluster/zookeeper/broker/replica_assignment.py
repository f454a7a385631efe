"""The placement of new partitions as the controller on ZooKeeper has it.

Leaders go round the brokers; each round shifts the followers by one, so that the partitions of a
lost broker do not all fall to the same one. With racks, the brokers go round rack by rack, and a
partition has its replicas in as many racks as there are.

Chance:  Kafka draws the first broker and the first shift; here both are given, 0 for a new topic.
Source:  KIP-36; org.apache.kafka.admin.AdminUtils.assignReplicasToBrokers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from minicluster.controller.errors import Rejected
from minicluster.protocol import ErrorCode

Racks = Mapping[int, str | None]
"""The brokers that may get replicas, with their racks."""


def assign_replicas(
    racks: Racks,
    partitions: int,
    replication_factor: int,
    *,
    start_index: int = 0,
    first_partition: int = 0,
) -> dict[int, tuple[int, ...]]:
    """The replicas of each new partition, the leader first.

    Errors:  Rejected for sizes below one, for more replicas than brokers, and for racks of some
             brokers only.
    """
    if partitions <= 0:
        raise Rejected(ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0.")
    if replication_factor <= 0:
        raise Rejected(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    if replication_factor > len(racks):
        raise Rejected(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: "
            f"{len(racks)}.",
        )
    known = [rack for rack in racks.values() if rack is not None]
    if known and len(known) < len(racks):
        raise Rejected(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    brokers = _rack_by_rack(racks) if known else sorted(racks)
    size, shift = len(brokers), start_index
    assignment = {}
    for partition in range(first_partition, first_partition + partitions):
        if partition > 0 and partition % size == 0:
            shift += 1
        leader = (partition + start_index) % size
        assignment[partition] = (
            _spread_over_racks(racks, brokers, leader, shift, replication_factor)
            if known
            else (
                brokers[leader],
                *(
                    brokers[_follower(leader, shift, n, size)]
                    for n in range(replication_factor - 1)
                ),
            )
        )
    return assignment


def _follower(leader: int, shift: int, number: int, size: int) -> int:
    """The index of a follower: never that of the leader before all others have had a turn."""
    return (leader + 1 + (shift + number) % (size - 1)) % size


def _spread_over_racks(
    racks: Racks, brokers: Sequence[int], leader: int, shift: int, replication_factor: int
) -> tuple[int, ...]:
    count = len(set(racks.values()))
    replicas = [brokers[leader]]
    used = {racks[brokers[leader]]}
    turn = 0
    while len(replicas) < replication_factor:
        broker = brokers[_follower(leader, shift * count, turn, len(brokers))]
        turn += 1
        if broker not in replicas and (racks[broker] not in used or len(used) == count):
            replicas.append(broker)
            used.add(racks[broker])
    return tuple(replicas)


def _rack_by_rack(racks: Racks) -> list[int]:
    """The brokers, the first of each rack before the second of any.

    Source:  AdminUtils.getRackAlternatedBrokerList.
    """
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker] or "", []).append(broker)
    queues = [by_rack[rack] for rack in sorted(by_rack)]
    rounds = max(map(len, queues))
    return [queue[turn] for turn in range(rounds) for queue in queues if turn < len(queue)]
