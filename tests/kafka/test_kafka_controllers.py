"""Brokers of a cluster on a controller of Apache Kafka, beside a broker of Apache Kafka."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.layout import OutsideQuorum
from minicluster.errors import UserError
from minicluster.protocol.uuids import format_uuid
from tests.kafka.clients import consumed, produced
from tests.kafka.process import BROKER, CONTROLLER, LOOPBACK, KafkaProcess, free_port

KAFKA_BROKER, KAFKA_CONTROLLER = 4, 3000
WITHIN = "120s"
CLUSTER_ID = format_uuid(uuid.UUID(int=0x5EED))


@dataclass(frozen=True, slots=True)
class Mixed:
    """Two brokers of a cluster, a controller and a broker of Apache Kafka."""

    cluster: MiniCluster
    controller: KafkaProcess
    broker: KafkaProcess
    servers: str

    def in_sync(self) -> set[int]:
        topic = self.cluster.image.topics.named("orders")
        assert topic is not None
        return set(topic.partitions[0].isr)


def node(
    folder: Path, role: dict[str, str], node_id: int, listener: str, port: int, quorum: str
) -> KafkaProcess:
    here = f"{listener}://{LOOPBACK}:{port}"
    own = {"node.id": node_id, "listeners": here, "controller.quorum.voters": quorum}
    return KafkaProcess(folder, CLUSTER_ID, {**role, **own})


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Mixed]:
    controller_port, broker_port = free_port(), free_port()
    quorum = f"{KAFKA_CONTROLLER}@{LOOPBACK}:{controller_port}"
    controller = node(
        tmp_path / "controller", CONTROLLER, KAFKA_CONTROLLER, "CONTROLLER", controller_port, quorum
    )
    broker = node(tmp_path / "broker", BROKER, KAFKA_BROKER, "PLAINTEXT", broker_port, quorum)
    controller.format()
    broker.format_broker()
    controller.start()
    broker.start()
    outside = OutsideQuorum(
        cluster_id=CLUSTER_ID, controllers={KAFKA_CONTROLLER: (LOOPBACK, controller_port)}
    )
    try:
        with MiniCluster(brokers=2, seed=4, listeners=True, quorum=outside) as cluster:
            servers = f"{cluster.bootstrap_servers},{LOOPBACK}:{broker_port}"
            built = Mixed(cluster, controller, broker, servers)
            cluster.wait_until(lambda: unfenced(cluster, KAFKA_BROKER), within=WITHIN)
            yield built
    finally:
        print(controller.log_lines(), broker.log_lines(), sep="\n")  # shown where a test failed
        broker.kill()
        controller.kill()


def unfenced(cluster: MiniCluster, broker_id: int) -> bool:
    broker = cluster.image.cluster.broker(broker_id)
    return broker is not None and not broker.fenced


@pytest.mark.kafka
@pytest.mark.slow
def test_brokers_register_lead_follow_and_come_back(mixed: Mixed) -> None:
    cluster, everyone = mixed.cluster, {1, 2, KAFKA_BROKER}
    for index in range(3):
        cluster.create_topic(f"orders-{index}" if index else "orders", replicas=3, min_isr=2)
    names = ["orders", "orders-1", "orders-2"]
    values = [f"order {n}" for n in range(20)]
    for name in names:
        produced(mixed.servers, name, 1, values)
        assert sorted(consumed(mixed.servers, name, 1, 20)) == sorted(values)

    mixed.broker.pause()
    cluster.wait_until(lambda: mixed.in_sync() == {1, 2}, within=WITHIN)
    produced(cluster.bootstrap_servers, "orders", 1, values)
    mixed.broker.resume()
    cluster.wait_until(lambda: mixed.in_sync() == everyone, within=WITHIN)

    cluster.kill(cluster.brokers[0])
    cluster.wait_until(lambda: mixed.in_sync() == everyone - {1}, within=WITHIN)
    cluster.restart(cluster.brokers[0])
    cluster.wait_until(lambda: mixed.in_sync() == everyone, within=WITHIN)
    assert len(consumed(mixed.servers, "orders", 1, 40)) == 40


@pytest.mark.kafka
@pytest.mark.slow
@pytest.mark.spark
def test_the_log_of_kafkas_controller_is_judged_valid(mixed: Mixed) -> None:
    cluster = mixed.cluster
    cluster.create_topic("orders", replicas=3, min_isr=2)
    produced(mixed.servers, "orders", 1, [f"order {n}" for n in range(20)])
    cluster.bounce(cluster.brokers[1], down="6s")
    cluster.wait_until(lambda: mixed.in_sync() == {1, KAFKA_BROKER}, within=WITHIN)
    cluster.wait_until(lambda: mixed.in_sync() == {1, 2, KAFKA_BROKER}, within=WITHIN)
    report = cluster.verify()
    assert report.valid, report.to_text()


def test_controllers_elsewhere_need_listeners_here() -> None:
    with pytest.raises(UserError, match="quorum: its controllers live in real time"):
        MiniCluster(quorum=OutsideQuorum(cluster_id=CLUSTER_ID, controllers={}))
