"""A broker of Apache Kafka beside two of a cluster, on the cluster's controllers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import UserError
from tests.kafka.clients import PATIENT, consumed, produced
from tests.kafka.process import BROKER, LOOPBACK, KafkaProcess, free_port

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KAFKA = 4
PARTITIONS = 3
WITHIN = "120s"


class Joined:
    """Two brokers of the cluster, and Apache Kafka's."""

    def __init__(self, cluster: MiniCluster, folder: Path) -> None:
        self.cluster = cluster
        self.port = free_port()
        here = f"PLAINTEXT://{LOOPBACK}:{self.port}"
        plan = inside(cluster).plan
        if plan.kraft_version:
            quorum = {"controller.quorum.bootstrap.servers": cluster.bootstrap_controllers}
        else:
            voters = (f"{n}@{plan.host(n)}:{plan.port(n)}" for n in inside(cluster).controller_ids)
            quorum = {"controller.quorum.voters": ",".join(voters)}
        own = {"node.id": KAFKA, "listeners": here, "advertised.listeners": here}
        self.kafka = KafkaProcess(folder, plan.cluster_id, {**BROKER, **quorum, **own})

    @property
    def servers(self) -> str:
        """The addresses of all three brokers."""
        return f"{self.cluster.bootstrap_servers},{LOOPBACK}:{self.port}"

    def is_unfenced(self) -> bool:
        broker = self.cluster.image.cluster.broker(KAFKA)
        return broker is not None and not broker.fenced

    def in_sync(self) -> list[set[int]]:
        """The ISR of each partition of orders."""
        topic = self.cluster.image.topics.named("orders")
        assert topic is not None
        return [set(topic.partitions[index].isr) for index in range(PARTITIONS)]

    def leaders(self) -> set[int | None]:
        return {inside(self.cluster).leader_id("orders", index) for index in range(PARTITIONS)}


@pytest.fixture(params=[0, 1], ids=["static-voters", "voters-in-the-log"])
def joined(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Joined]:
    config = {**PATIENT, "kraft.version": request.param}
    with MiniCluster(brokers=2, seed=4, listeners=True, config=config) as cluster:
        if request.param:  # it starts from a snapshot
            cluster.create_topic("before", replicas=2)
            cluster.snapshot(cluster.controllers)
            cluster.compact(cluster.controllers)
        built = Joined(cluster, tmp_path / "kafka")
        built.kafka.format_broker()
        built.kafka.start()
        try:
            cluster.wait_until(built.is_unfenced, within=WITHIN)
            fetched = {e.api for e in inside(cluster).recorder.exchanges if e.src == KAFKA}
            assert ("FetchSnapshot" in fetched) == bool(request.param)
            yield built
        finally:
            print(built.kafka.log_lines())  # shown where the test has failed
            built.kafka.kill()


def test_it_leads_and_follows_and_comes_back(joined: Joined) -> None:
    cluster, kafka = joined.cluster, joined.kafka
    everyone, ours = {1, 2, KAFKA}, {1, 2}
    cluster.create_topic("orders", partitions=PARTITIONS, replicas=3, min_isr=2)
    assert joined.leaders() == everyone, "each broker leads one partition"
    values = [f"order {n}" for n in range(60)]
    produced(joined.servers, "orders", PARTITIONS, values[:30])

    kafka.pause()  # its connections stay open: no heartbeat, no fetch, no response
    cluster.wait_until(lambda: not joined.is_unfenced(), within=WITHIN)
    cluster.wait_until(lambda: joined.in_sync() == [ours] * PARTITIONS, within=WITHIN)
    assert joined.leaders() == ours
    produced(cluster.bootstrap_servers, "orders", PARTITIONS, values[30:])

    kafka.resume()
    cluster.wait_until(lambda: joined.in_sync() == [everyone] * PARTITIONS, within=WITHIN)
    cluster.elect([("orders", index) for index in range(PARTITIONS)])
    cluster.wait_until(lambda: joined.leaders() == everyone, within=WITHIN)
    assert sorted(consumed(joined.servers, "orders", PARTITIONS, 60)) == sorted(values)

    with pytest.raises(UserError, match="node 4 is of another process"):
        cluster.kill(KAFKA)
    cluster.cut(KAFKA, cluster.controllers)
    cluster.wait_until(lambda: not joined.is_unfenced(), within=WITHIN)
    cluster.heal()
    cluster.wait_until(lambda: joined.in_sync() == [everyone] * PARTITIONS, within=WITHIN)

    cluster.fail_over()
    cluster.kill(cluster.brokers[0])
    produced(joined.servers, "orders", PARTITIONS, ["after a kill"])
    cluster.restart(cluster.brokers[0])
    cluster.wait_until(lambda: joined.in_sync() == [everyone] * PARTITIONS, within=WITHIN)

    kafka.shut_down()
    assert KAFKA not in joined.leaders()
    assert not joined.is_unfenced()


@pytest.mark.spark
def test_the_log_and_the_trace_are_judged_valid(joined: Joined) -> None:
    cluster = joined.cluster
    cluster.create_topic("orders", partitions=PARTITIONS, replicas=3, min_isr=2)
    produced(joined.servers, "orders", PARTITIONS, [f"order {n}" for n in range(30)])
    joined.kafka.pause()
    cluster.wait_until(lambda: not joined.is_unfenced(), within=WITHIN)
    joined.kafka.resume()
    cluster.wait_until(lambda: joined.in_sync() == [{1, 2, KAFKA}] * PARTITIONS, within=WITHIN)
    report = cluster.verify()
    assert report.valid, report.to_text()
