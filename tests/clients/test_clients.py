"""Produce, consume and administer, with every client against one cluster of three brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from minicluster import MiniCluster
from tests.clients.adapters import ADAPTERS, CODECS, ClientUnderTest

pytestmark = pytest.mark.clients

WITHIN = "300s"  # of a clock that may be twice as fast as the clients'


@pytest.fixture(scope="module", params=[None, 2], ids=["threaded", "paced"])
def cluster(request: pytest.FixtureRequest) -> Iterator[MiniCluster]:
    with MiniCluster(seed=3, listeners=True, pace=request.param) as built:
        yield built


@pytest.fixture(params=ADAPTERS)
def client(request: pytest.FixtureRequest, cluster: MiniCluster) -> ClientUnderTest:
    return ADAPTERS[request.param](cluster.bootstrap_servers)


@pytest.fixture
def topic(request: pytest.FixtureRequest, cluster: MiniCluster) -> str:
    """A topic of the test's own, with three replicas."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    cluster.create_topic(name, min_isr=2)
    return name


def test_every_compression_is_stored_and_read(client: ClientUnderTest, topic: str) -> None:
    written: list[str] = []
    for codec in CODECS:
        values = [f"{codec} {n} {'x' * n}" for n in range(20)]
        assert client.produce(topic, values, codec=codec) == [
            *range(len(written), len(written) + 20)
        ]
        written += values
    assert client.consume(topic, len(written)) == written


@pytest.mark.parametrize("acks", [0, 1, "all"])
def test_records_arrive_with_every_acks(
    client: ClientUnderTest, topic: str, acks: int | str
) -> None:
    values = [f"order {n}" for n in range(10)]
    client.produce(topic, values, acks=acks)
    assert client.consume(topic, 10) == values


def test_an_idempotent_producer_writes_each_record_once(
    client: ClientUnderTest, topic: str
) -> None:
    values = [f"order {n}" for n in range(10)]
    assert client.produce(topic, values, idempotent=True) == [*range(10)]
    assert client.consume(topic, 10) == values


def test_a_record_of_nearly_a_megabyte_passes(client: ClientUnderTest, topic: str) -> None:
    values = ["x" * 900_000, "small"]
    assert client.produce(topic, values) == [0, 1]
    assert client.consume(topic, 2) == values


def test_topics_are_created_changed_and_deleted(
    client: ClientUnderTest, cluster: MiniCluster, topic: str
) -> None:
    """Each change is seen once the broker that the client reads from has published it."""
    own = f"{topic}-own"
    client.create_topic(own, partitions=2, replicas=3)
    cluster.wait_until(lambda: own in client.topics(), WITHIN)
    client.add_partitions(own, total=3)
    client.set_topic_config(own, "retention.ms", "12345678")
    cluster.wait_until(lambda: client.topic_config(own, "retention.ms") == "12345678", WITHIN)
    assert client.topic_config(own, "cleanup.policy") == "delete"
    client.delete_topic(own)
    cluster.wait_until(lambda: own not in client.topics(), WITHIN)


def test_the_cluster_id_is_the_clusters(client: ClientUnderTest, cluster: MiniCluster) -> None:
    assert client.cluster_id() == cluster.cluster_id
