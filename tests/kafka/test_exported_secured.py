"""Apache Kafka's own nodes start from a run with users: they log in, and its ACLs hold there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from minicluster import MiniCluster
from minicluster.actors.export.kafka_folder import Exported
from tests.kafka.clients import LIMIT_S
from tests.kafka.process import JavaProgram, free_ports, wait_for

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

START_NODES = Path(__file__).with_name("java") / "StartNodes.java"
UP_WITHIN_S = 240.0
PASSWORDS = {"alice": "a secret", "bob": "another"}


@pytest.fixture
def exported(tmp_path: Path) -> Iterator[Exported]:
    with MiniCluster(
        brokers=2,
        controllers=1,
        seed=21,
        listeners=["SASL_SSL", "EXTERNAL"],
        runtime="simulated",
        users=PASSWORDS,
        super_users=["admin"],
        config={"listener.security.protocol.map": "EXTERNAL:SASL_PLAINTEXT"},
    ) as cluster:
        orders = cluster.create_topic("orders", replicas=2, min_isr=2)
        cluster.grant("alice", ["READ", "DESCRIBE"], topic="orders")
        assert all(outcome.ok for outcome in cluster.produce(orders, count=5))
        built = cluster.export(tmp_path / "kafka", port=free_ports(7))
    nodes = JavaProgram(START_NODES, *map(str, built.properties), folder=tmp_path)
    try:
        wait_for(lambda: len(nodes.lines("started ")) == 3, UP_WITHIN_S, nodes.log_lines)
        yield built
    finally:
        print(nodes.log_lines())  # shown where the test has failed
        nodes.kill()


def config(exported: Exported, user: str, mechanism: str) -> dict[str, Any]:
    return {
        "bootstrap.servers": exported.bootstrap_servers,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": PASSWORDS[user],
        "ssl.ca.location": str(exported.path / "tls" / "ca.pem"),
    }


def test_users_log_in_and_may_what_they_might_in_the_run(exported: Exported) -> None:
    """By SCRAM from the log and by PLAIN; both brokers are in sync, by the nodes' own listener."""
    by_scram = config(exported, "alice", "SCRAM-SHA-256")
    admin = AdminClient(by_scram)

    def isr() -> list[int]:
        return sorted(
            admin.list_topics("orders", timeout=LIMIT_S).topics["orders"].partitions[0].isrs
        )

    wait_for(lambda: isr() == [1, 2], UP_WITHIN_S, lambda: str(isr()))
    consumer = Consumer({**by_scram, "group.id": "unused", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition("orders", 0, 0)])
        assert len(consumer.consume(5, timeout=LIMIT_S)) == 5
    finally:
        consumer.close()
    created = admin.create_topics([NewTopic("tea", 1, 1)])["tea"]
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        created.result(LIMIT_S)
    by_plain = AdminClient(config(exported, "bob", "PLAIN"))
    assert list(by_plain.list_topics(timeout=LIMIT_S).topics) == [], "bob may see none"
