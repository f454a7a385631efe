"""The placement of new partitions beside what Kafka 3.9's AdminUtils returned.

A line of ``placements.txt``: the brokers with their racks, partitions, replicas, the first index,
the first partition; then the assignment of AdminUtils.assignReplicasToBrokers.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from minicluster.controller.errors import Rejected
from minicluster.protocol import ErrorCode
from minicluster.zookeeper.broker.replica_assignment import assign_replicas

PLACEMENTS = (Path(__file__).parent / "placements.txt").read_text().splitlines()


def _brokers(text: str) -> dict[int, str | None]:
    pairs = (one.split("=") for one in text.rstrip(",").split(","))
    return {int(broker): None if rack == "null" else rack for broker, rack in pairs}


def test_new_partitions_are_placed_as_kafka_places_them() -> None:
    for line in PLACEMENTS:
        brokers, partitions, factor, start, first, text = line.split(";")
        placed = {
            int(partition): tuple(map(int, replicas.split(", ")))
            for partition, replicas in re.findall(r"(\d+)=\[([^\]]*)\]", text)
        }
        assert (
            assign_replicas(
                _brokers(brokers),
                int(partitions),
                int(factor),
                start_index=int(start),
                first_partition=int(first),
            )
            == placed
        ), line


@pytest.mark.parametrize(
    ("racks", "partitions", "factor", "error", "message"),
    [
        ({1: None}, 0, 1, "INVALID_PARTITIONS", "Number of partitions must be larger than 0."),
        (
            {1: None},
            1,
            0,
            "INVALID_REPLICATION_FACTOR",
            "Replication factor must be larger than 0.",
        ),
        (
            {1: None, 2: None},
            1,
            3,
            "INVALID_REPLICATION_FACTOR",
            "Replication factor: 3 larger than available brokers: 2.",
        ),
        (
            {1: "a", 2: None},
            1,
            1,
            "UNKNOWN_SERVER_ERROR",
            "Not all brokers have rack information for replica rack aware assignment.",
        ),
    ],
)
def test_sizes_that_cannot_be_placed_are_refused(
    racks: dict[int, str | None], partitions: int, factor: int, error: str, message: str
) -> None:
    with pytest.raises(Rejected) as refusal:
        assign_replicas(racks, partitions, factor)
    assert (refusal.value.error, refusal.value.message) == (ErrorCode[error], message)
