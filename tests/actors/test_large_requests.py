"""Large requests that a broker handles in parts: what else happens meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.network import Completion
from minicluster.actors.nodes.replica_manager import ReplicaManager
from minicluster.actors.recording import recorder
from minicluster.effects import Continue
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    FetchRequest,
    FindCoordinatorRequest,
    OffsetCommitRequest,
)
from tests.replica.test_fetch_in_parts import fetch_in_parts_of

PARTITIONS = 10


class Client:
    """A client of broker 1."""

    def __init__(self, cluster: MiniCluster, connection: int) -> None:
        self.cluster, self.connection = cluster, connection
        self.completions: list[Completion] = []

    def deliver(self, completion: Completion, /) -> None:
        self.completions.append(completion)

    def fetch(self, partitions: int, timeout_ms: int | None = None) -> None:
        topic = FetchRequest.FetchTopic(
            topic="orders",
            partitions=tuple(
                FetchRequest.FetchPartition(partition=n, partition_max_bytes=1_000)
                for n in range(partitions)
            ),
        )
        self.send(FetchRequest(max_wait_ms=0, topics=(topic,)), 12, timeout_ms)

    def send(self, request: Any, version: int, timeout_ms: int | None = None) -> None:
        inside(self.cluster).network.request(
            src=-self.connection,
            dst=1,
            body=request,
            version=version,
            caller=self,
            connection=self.connection,
            timeout_ms=timeout_ms,
        )

    def ended(self) -> Completion:
        self.cluster.wait_until(lambda: bool(self.completions))
        return self.completions.pop()


class Held:
    """The parts that replica managers would carry out next, while they are held."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.parts: list[tuple[ReplicaManager, Continue]] = []
        self.is_on = False
        carry_out = ReplicaManager.on_continue

        def hold(manager: ReplicaManager, work: Continue) -> None:
            if self.is_on:
                self.parts.append((manager, work))
            else:
                carry_out(manager, work)

        monkeypatch.setattr(ReplicaManager, "on_continue", hold)

    def release(self) -> None:
        self.is_on = False
        for manager, work in self.parts:
            manager.deliver(work)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


@pytest.fixture
def cluster(held: Held, monkeypatch: pytest.MonkeyPatch) -> Iterator[MiniCluster]:
    fetch_in_parts_of(3, monkeypatch)
    with MiniCluster(brokers=1, controllers=1, seed=1) as cluster:
        orders = cluster.create_topic("orders", partitions=PARTITIONS, replicas=1)
        cluster.wait_until(lambda: all(orders[n].high_watermark == 0 for n in range(PARTITIONS)))
        yield cluster


def test_another_client_is_served_while_a_large_request_is_handled(
    cluster: MiniCluster, held: Held
) -> None:
    held.is_on = True
    large, small = Client(cluster, 1), Client(cluster, 2)
    large.fetch(PARTITIONS)
    cluster.wait_until(lambda: bool(held.parts))
    small.fetch(1)
    assert small.ended().response.error_code == ErrorCode.NONE
    assert not large.completions
    held.release()
    [topic] = large.ended().response.responses
    assert [data.partition_index for data in topic.partitions] == [*range(PARTITIONS)]


def test_a_broker_that_dies_in_the_midst_sends_no_response(
    cluster: MiniCluster, held: Held
) -> None:
    held.is_on = True
    client = Client(cluster, 1)
    client.fetch(PARTITIONS)
    cluster.wait_until(lambda: bool(held.parts))
    cluster.kill(cluster.node(1))
    assert client.ended().failure == "disconnected"
    held.release()  # to a dead actor
    cluster.restart(cluster.node(1))
    cluster.wait_until(lambda: not cluster.node(1).is_fenced, within="30s")
    client.fetch(PARTITIONS)
    assert client.ended().response.error_code == ErrorCode.NONE


def test_a_client_that_is_gone_gets_no_response_and_harms_nobody(
    cluster: MiniCluster, held: Held
) -> None:
    held.is_on = True
    gone, other = Client(cluster, 1), Client(cluster, 2)
    gone.fetch(PARTITIONS, timeout_ms=100)
    assert gone.ended().failure == "timeout"
    held.release()
    other.fetch(PARTITIONS)
    assert other.ended().response.error_code == ErrorCode.NONE
    assert not gone.completions


def test_the_trace_of_a_large_response_has_the_partitions_with_records(
    cluster: MiniCluster,
) -> None:
    """Rows of the ends of thousands of others would hold up the other clients of a broker."""
    cluster.produce("orders", 7)
    client = Client(cluster, 1)
    client.fetch(PARTITIONS)
    client.ended()
    rows: list[dict[str, Any]] = [
        row for row in inside(cluster).recorder.table("client_record") if row["connection"] == 1
    ]
    assert [(row["f"], row["part"]) for row in rows] == [("fetch", 7), ("read", 7)]
    assert cluster.verify(engine="process").valid


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


def test_the_rows_of_many_offsets_are_made_some_at_a_time(
    cluster: MiniCluster, group: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them where somebody reads them, and in the order of the responses."""
    monkeypatch.setattr(recorder, "CLIENT_ROWS_AT_ONCE", 3)
    of_cluster = inside(cluster).recorder
    made = [of_cluster._client_rows_made]
    for partitions, offset in ((PARTITIONS, 5), (1, 6)):
        group.send(_commit(partitions, offset), 8)
        assert not group.ended().response.topics[0].partitions[0].error_code
        made.append(of_cluster._client_rows_made)
    assert max(after - before for before, after in pairwise(made)) < PARTITIONS
    rows = [row for row in of_cluster.table("client_record") if row["f"] == "commit"]
    assert [(row["part"], row["offset"]) for row in rows] == [
        *((n, 5) for n in range(PARTITIONS)),
        (0, 6),
    ]
    assert rows[0]["seq"] == rows[PARTITIONS - 1]["seq"] < rows[PARTITIONS]["seq"]
    assert all(row["received_seq"] > row["resp_seq"] == row["seq"] for row in rows)
    assert len({row["topic_id"] for row in rows}) == 1 and rows[0]["topic_id"] is not None
    assert cluster.verify(engine="process").valid
