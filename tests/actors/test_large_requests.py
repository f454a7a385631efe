"""A request that names thousands of things is handled in slices, and others' come between."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.network import Completion
from minicluster.actors.nodes.broker import BrokerRoles
from minicluster.actors.nodes.replica_manager import ReplicaManager
from minicluster.actors.recording.exchange import OWN_CLIENT
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from tests.actors.test_recorded_clients import encoded

PARTITIONS = 50
SIZE = 20  # of a slice in these stories


@pytest.fixture
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    for node in (BrokerRoles, ReplicaManager):
        cut = {kind: replace(sliced, size=SIZE) for kind, sliced in node.in_slices.items()}
        monkeypatch.setattr(node, "in_slices", cut)


class Client:
    """It sends to broker 1, and keeps the responses in the order in which they come."""

    def __init__(self, cluster: MiniCluster) -> None:
        self.cluster = cluster
        self.responses: list[Any] = []

    def deliver(self, completion: Completion) -> None:
        self.responses.append(completion.response)

    def send(self, request: Any, version: int) -> None:
        inside(self.cluster).network.request(
            src=OWN_CLIENT, dst=1, body=request, version=version, caller=self, client_id="app"
        )

    def wait(self, count: int) -> list[Any]:
        self.cluster.wait_until(lambda: len(self.responses) >= count, within="30s")
        return self.responses


def metadata_of(*names: str) -> m.MetadataRequest:
    kind = m.MetadataRequest
    return kind(
        topics=tuple(kind.MetadataRequestTopic(name=name) for name in names),
        allow_auto_topic_creation=False,
    )


def produce_to_all(acks: int) -> m.ProduceRequest:
    kind, records = m.ProduceRequest, encoded([b"x"])
    data = tuple(kind.PartitionProduceData(index=n, records=records) for n in range(PARTITIONS))
    topic = kind.TopicProduceData(name="wide", partition_data=data)
    return kind(acks=acks, timeout_ms=30_000, topic_data=(topic,))


def offsets_of_all() -> m.ListOffsetsRequest:
    kind = m.ListOffsetsRequest
    partitions = tuple(
        kind.ListOffsetsPartition(partition_index=n, timestamp=-1) for n in range(PARTITIONS)
    )
    topic = kind.ListOffsetsTopic(name="wide", partitions=partitions)
    return kind(replica_id=-1, topics=(topic,))


@pytest.mark.usefixtures("small_slices")
def test_a_small_request_is_answered_before_a_large_one_that_came_first() -> None:
    with MiniCluster(brokers=1, controllers=1, seed=4) as cluster:
        cluster.wait_until(lambda: not cluster.node(1).is_fenced)
        client = Client(cluster)
        names = [f"t{number}" for number in range(3 * SIZE)]
        client.send(metadata_of(*names), 12)
        client.send(m.ListGroupsRequest(), 4)
        client.send(metadata_of("other"), 12)
        responses = client.wait(3)
        assert [len(getattr(response, "topics", ())) for response in responses] == [0, 1, 3 * SIZE]
        assert {topic.name for topic in responses[-1].topics} == set(names)
        assert responses[-1].brokers == responses[1].brokers


@pytest.mark.usefixtures("small_slices")
def test_a_large_request_says_the_same_in_slices_as_in_one(monkeypatch: Any) -> None:
    """A Produce that waits for followers, one that gets no response, and their offsets."""
    offsets = []
    for in_slices in (True, False):
        if not in_slices:
            monkeypatch.setattr(ReplicaManager, "in_slices", {})
            monkeypatch.setattr(BrokerRoles, "in_slices", {})
        with MiniCluster(brokers=2, controllers=1, seed=4) as cluster:
            assignment = [[1, 2]] * PARTITIONS
            wide = cluster.create_topic("wide", assignment=assignment, min_isr=2)
            cluster.wait_until(wide.fully_in_sync, within="60s")
            client = Client(cluster)
            client.send(produce_to_all(acks=-1), 9)
            [response] = client.wait(1)
            [topic] = response.responses
            results = {r.index: (r.error_code, r.base_offset) for r in topic.partition_responses}
            assert results == dict.fromkeys(range(PARTITIONS), (ErrorCode.NONE, 0))
            client.send(produce_to_all(acks=0), 9)
            cluster.wait_until(lambda: inside(cluster).high_watermark("wide", PARTITIONS - 1) == 2)
            client.send(offsets_of_all(), 7)
            [_, none, response] = client.wait(3)
            assert none is None
            [topic] = response.topics
            offsets.append(sorted((p.partition_index, p.offset) for p in topic.partitions))
            assert len(topic.partitions) == PARTITIONS
    assert offsets[0] == offsets[1] == [(number, 2) for number in range(PARTITIONS)]
