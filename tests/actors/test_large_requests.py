"""The rows of a request that names many partitions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.exchange import Exchange, Sender
from minicluster.actors.network import Completion
from minicluster.protocol.messages import (
    FindCoordinatorRequest,
    OffsetCommitRequest,
)

PARTITIONS = 10


class Client:
    """A client of broker 1."""

    def __init__(self, cluster: MiniCluster, connection: int) -> None:
        self.cluster, self.connection = cluster, connection
        self.completions: list[Completion] = []

    def left(self, exchange: Exchange, /) -> None:
        """A response is on its way; nothing here waits for that."""

    def deliver(self, completion: Completion, /) -> None:
        self.completions.append(completion)

    def send(self, request: Any, version: int, timeout_ms: int | None = None) -> None:
        inside(self.cluster).network.request(
            src=-self.connection,
            dst=1,
            body=request,
            version=version,
            caller=self,
            sender=Sender(connection=self.connection),
            timeout_ms=timeout_ms,
        )

    def ended(self) -> Completion:
        self.cluster.wait_until(lambda: bool(self.completions))
        return self.completions.pop()


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(brokers=1, controllers=1, seed=1) as cluster:
        orders = cluster.create_topic("orders", partitions=PARTITIONS, replicas=1)
        cluster.wait_until(lambda: all(orders[n].high_watermark == 0 for n in range(PARTITIONS)))
        yield cluster


@pytest.fixture
def group(cluster: MiniCluster) -> Client:
    """A client of the broker that coordinates the group "g"."""
    client = Client(cluster, 3)
    client.send(FindCoordinatorRequest(key_type=0, coordinator_keys=("g",)), 4)
    assert client.ended().response.coordinators[0].node_id == 1
    return client


def _commit(partitions: int, offset: int) -> OffsetCommitRequest:
    kind = OffsetCommitRequest
    each = (
        kind.OffsetCommitRequestPartition(partition_index=n, committed_offset=offset)
        for n in range(partitions)
    )
    topic = kind.OffsetCommitRequestTopic(name="orders", partitions=tuple(each))
    return kind(group_id="g", topics=(topic,))


def test_each_of_many_offsets_has_its_row(cluster: MiniCluster, group: Client) -> None:
    for partitions, offset in ((PARTITIONS, 5), (1, 6)):
        group.send(_commit(partitions, offset), 8)
        assert not group.ended().response.topics[0].partitions[0].error_code
    rows = [r for r in inside(cluster).recorder.table("client_record") if r["f"] == "commit"]
    assert [(row["part"], row["offset"]) for row in rows] == [
        *((n, 5) for n in range(PARTITIONS)),
        (0, 6),
    ]
    assert rows[0]["seq"] == rows[PARTITIONS - 1]["seq"] < rows[PARTITIONS]["seq"]
    assert all(row["received_seq"] > row["resp_seq"] == row["seq"] for row in rows)
    assert len({row["topic_id"] for row in rows}) == 1 and rows[0]["topic_id"] is not None
    assert cluster.verify(engine="process").valid
