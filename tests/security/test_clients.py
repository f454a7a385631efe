"""Kafka's own clients connect by each protocol, as one of the users or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster, UserError

confluent_kafka = pytest.importorskip("confluent_kafka")
from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

pytestmark = pytest.mark.clients
USERS = {"admin": "admin-secret", "alice": "alice-secret"}
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def secured(protocol: str, **more: Any) -> MiniCluster:
    """A small cluster whose clients log in."""
    users = USERS if protocol.startswith("SASL") else None
    return MiniCluster(brokers=1, controllers=1, listeners=protocol, users=users, **more)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def test_confluent_kafka_writes_and_reads(protocol: str) -> None:
    """With the settings that the cluster gives it."""
    with secured(protocol) as cluster:
        orders = cluster.create_topic("orders")
        config = cluster.client_config("alice")
        producer = confluent_kafka.Producer(config)
        producer.produce("orders", b"an order")
        assert producer.flush(10) == 0
        assert orders[0].log_end_offset == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_logs_in(mechanism: str) -> None:
    """PLAIN by the listener's users, SCRAM by the credentials of the metadata log."""
    config = {"sasl.enabled.mechanisms": mechanism}
    with secured("SASL_PLAINTEXT", config=config) as cluster:
        admin = AdminClient(cluster.client_config("alice"))
        assert admin.list_topics(timeout=10).cluster_id


def test_a_wrong_password_is_told() -> None:
    """And no request of that client is handled."""
    with secured("SASL_PLAINTEXT") as cluster:
        errors: list[Any] = []
        config = {**cluster.client_config("alice"), "sasl.password": "wrong"}
        client = AdminClient({**config, "error_cb": errors.append})
        with pytest.raises(confluent_kafka.KafkaException):
            client.list_topics(timeout=3)
        client.poll(0)
        assert any("invalid credentials" in error.str() for error in errors)


def test_who_is_denied_is_told_so() -> None:
    """An ACL is enough to let him in."""
    with secured("SASL_SSL", super_users=["admin"]) as cluster:
        cluster.create_topic("orders")
        alice = AdminClient(cluster.client_config("alice"))
        [made] = alice.create_topics([NewTopic("mine", 1)]).values()
        with pytest.raises(confluent_kafka.KafkaException, match="TOPIC_AUTHORIZATION_FAILED"):
            made.result(10)
        admin = AdminClient(cluster.client_config("admin"))
        admin.create_topics([NewTopic("mine", 1)])["mine"].result(10)


@pytest.mark.parametrize("protocol", ["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
@pytest.mark.parametrize("client", ["aiokafka", "kafka-python"])
def test_pythons_clients_connect(client: str, protocol: str) -> None:
    """With the settings in their own words."""
    with secured(protocol) as cluster:
        config = cluster.client_config("alice", for_=client)
        if client == "kafka-python":
            kafka = pytest.importorskip("kafka")
            admin = kafka.KafkaAdminClient(**config)
            assert admin.list_topics() is not None
            admin.close()
            return
        import asyncio

        aiokafka = pytest.importorskip("aiokafka")

        async def produce() -> None:
            producer = aiokafka.AIOKafkaProducer(**config)
            await producer.start()
            await producer.send_and_wait("orders", b"an order")
            await producer.stop()

        cluster.create_topic("orders")
        asyncio.run(produce())


def test_arguments_that_contradict_each_other_are_named() -> None:
    """In one line."""
    with pytest.raises(UserError, match="listeners: unknown protocol 'SASL_TLS'"):
        MiniCluster(listeners="SASL_TLS")
    with pytest.raises(UserError, match="listeners: SASL_SSL needs users"):
        MiniCluster(listeners="SASL_SSL")
    with secured("SASL_PLAINTEXT") as cluster, pytest.raises(UserError, match="no user 'bob'"):
        cluster.client_config("bob")
