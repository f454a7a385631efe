"""A broker of Apache Kafka beside one of a cluster, on listeners that log in, with ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.security.jaas import login_module
from tests.kafka.clients import LIMIT_S, PATIENT
from tests.kafka.process import BROKER, LOOPBACK, KafkaProcess, free_port

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

KAFKA = 4
WITHIN = "120s"
LISTENER = "SASL_PLAINTEXT"
USERS = {"nodes": "the nodes' own", "alice": "a secret"}
AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


def properties(cluster: MiniCluster, port: int) -> dict[str, object]:
    """Of a broker that logs in as the nodes do; it knows the users of SCRAM from the log."""
    plan = inside(cluster).plan
    voters = (f"{n}@{plan.host(n)}:{plan.port(n)}" for n in inside(cluster).controller_ids)
    own = {"username": "nodes", "password": USERS["nodes"], "user_nodes": USERS["nodes"]}
    here = f"{LISTENER}://{LOOPBACK}:{port}"
    of_listener = f"listener.name.{LISTENER.lower()}"
    return {
        **BROKER,
        "node.id": KAFKA,
        "listeners": here,
        "advertised.listeners": here,
        "listener.security.protocol.map": f"{LISTENER}:{LISTENER},CONTROLLER:{LISTENER}",
        "inter.broker.listener.name": LISTENER,
        "controller.quorum.voters": ",".join(voters),
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        f"{of_listener}.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{of_listener}.plain.sasl.jaas.config": login_module("PLAIN", own),
        f"{of_listener}.scram-sha-256.sasl.jaas.config": login_module("SCRAM-SHA-256", {}),
        "listener.name.controller.plain.sasl.jaas.config": login_module("PLAIN", own),
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:nodes",
    }


@pytest.fixture
def joined(tmp_path: Path) -> Iterator[tuple[MiniCluster, dict[str, Any]]]:
    with MiniCluster(
        brokers=1,
        controllers=1,
        seed=4,
        listeners=LISTENER,
        runtime="threaded",
        users=USERS,
        super_users=["nodes"],
        config=PATIENT,
    ) as cluster:
        port = free_port()
        kafka = KafkaProcess(
            tmp_path / "kafka", inside(cluster).plan.cluster_id, properties(cluster, port)
        )
        kafka.format_broker()
        kafka.start()

        def is_unfenced() -> bool:
            broker = cluster.image.cluster.broker(KAFKA)
            return broker is not None and not broker.fenced

        try:
            cluster.wait_until(is_unfenced, within=WITHIN)
            config = {**cluster.client_config("alice"), "sasl.mechanism": "SCRAM-SHA-256"}
            yield cluster, {**config, "bootstrap.servers": f"{LOOPBACK}:{port}"}
        finally:
            print(kafka.log_lines())  # shown where the test has outcomes
            kafka.kill()


def acknowledged(config: dict[str, Any], partition: int) -> bool:
    """A record has come to both replicas of a partition."""
    outcomes: list[object] = []
    producer = Producer({**config, "acks": "all"})
    producer.produce(
        "orders", "coffee", partition=partition, on_delivery=lambda error, _: outcomes.append(error)
    )
    return producer.flush(LIMIT_S) == 0 and all(error is None for error in outcomes)


def test_each_replicates_what_the_other_leads_and_both_ask_for_rights(
    joined: tuple[MiniCluster, dict[str, Any]],
) -> None:
    cluster, alice = joined
    cluster.create_topic("orders", assignment=[[1, KAFKA], [KAFKA, 1]], min_isr=2)
    cluster.grant("alice", ["WRITE", "DESCRIBE"], topic="orders")
    for partition in (0, 1):  # Kafka's broker gets the ACLs from the log by itself
        cluster.wait_until(partial(acknowledged, alice, partition), within=WITHIN)
    admin = AdminClient(alice)
    made = admin.create_topics([NewTopic("tea", 1, 1)])["tea"]
    with pytest.raises(KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
        made.result(LIMIT_S)
    report = cluster.verify(engine="process")
    assert report.valid, report.to_text()
