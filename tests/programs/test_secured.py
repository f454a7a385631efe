"""Programs with a principal: by the name that the test gives them, or because they log in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside

aiokafka = pytest.importorskip("aiokafka")
from aiokafka.errors import (  # noqa: E402
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
)

USERS = {"admin": "admin-secret", "alice": "alice-secret"}


def secured(**more: Any) -> MiniCluster:
    return MiniCluster(brokers=2, controllers=1, seed=5, users=USERS, super_users=["admin"], **more)


def produces(config: dict[str, Any], value: bytes = b"an order") -> Callable[[], Any]:
    async def run() -> int:
        producer = aiokafka.AIOKafkaProducer(**config)
        await producer.start()
        try:
            return (await producer.send_and_wait("orders", value)).offset
        finally:
            await producer.stop()

    return run


def ends(cluster: MiniCluster, app: Any) -> Any:
    cluster.wait_until(lambda: not app.is_running, within="5m")
    if app.error is not None:
        raise app.error
    return app.result


@pytest.mark.parametrize("protocol", ["PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL"])
def test_a_program_connects_by_each_protocol_and_stays_there(protocol: str) -> None:
    """Each request of it has the principal of the login, or of the certificate."""
    with secured(config={"ssl.client.auth": "requested"}) as cluster:
        orders = cluster.create_topic("orders", partitions=2)
        cluster.grant("alice", "WRITE", topic="orders")
        cluster.grant("User:CN=alice,OU=tests,O=minicluster", "WRITE", topic="orders")
        user = None if protocol == "PLAINTEXT" else "alice"
        config = cluster.client_config(user, for_="aiokafka", listener=protocol)
        app = cluster.app("shop", produces(config))
        if protocol == "PLAINTEXT":  # ANONYMOUS
            with pytest.raises(TopicAuthorizationFailedError):
                ends(cluster, app)
        else:
            ends(cluster, app)
            assert sum(orders[index].log_end_offset for index in (0, 1)) == 1
        ports = {entry.split(":")[1][:2] for entry in config["bootstrap_servers"].split(",")}
        assert ports == {
            {"PLAINTEXT": "90", "SSL": "19", "SASL_PLAINTEXT": "29", "SASL_SSL": "39"}[protocol]
        }


def test_a_wrong_password_lets_nobody_in() -> None:
    with secured() as cluster:
        config = cluster.client_config("alice", for_="aiokafka")
        app = cluster.app("shop", produces({**config, "sasl_plain_password": "wrong"}))
        with pytest.raises(aiokafka.errors.KafkaConnectionError):
            ends(cluster, app)
        reasons = {entry.get("reason", "") for entry in inside(cluster).log.entries}
        assert any("invalid credentials" in reason for reason in reasons)


def test_an_app_has_the_principal_that_the_test_gives_it() -> None:
    """Without a login; an ACL that is revoked in the midst stops it."""

    async def consume() -> list[bytes]:
        consumer = aiokafka.AIOKafkaConsumer(
            "orders",
            bootstrap_servers="node1:9091",
            group_id="shop",
            auto_offset_reset="earliest",
            metadata_max_age_ms=1_000,
        )
        await consumer.start()
        values = []
        try:
            async for record in consumer:
                values.append(record.value)
        except TopicAuthorizationFailedError:
            return values
        finally:
            await consumer.stop()
        return values

    with secured() as cluster:
        orders = cluster.create_topic("orders")
        cluster.grant("alice", ["READ", "DESCRIBE"], topic="orders")
        denied = cluster.app("before", consume, user="alice")
        with pytest.raises(GroupAuthorizationFailedError):
            ends(cluster, denied)
        cluster.grant("alice", "READ", group="shop")
        cluster.produce(orders, count=3)
        app = cluster.app("after", consume, user="alice")
        cluster.run_for("5s")
        assert app.is_running
        cluster.revoke("alice", ["READ", "DESCRIBE"], topic="orders")
        cluster.run_for("1s")  # a fetch that waits was allowed when it came
        cluster.produce(orders, count=3)
        assert len(ends(cluster, app)) == 3


def test_a_user_consumes_and_transacts_with_his_rights() -> None:
    """The cluster's own clients, as somebody."""
    with secured() as cluster:
        orders = cluster.create_topic("orders")
        cluster.produce(orders, count=2)
        alice = cluster.as_user("alice")
        with pytest.raises(Exception, match="0 of 2 records"):
            alice.consume(orders, group="shop", count=2, within="5s")
        cluster.grant("alice", ["READ", "WRITE"], topic="orders")
        cluster.grant("alice", ["READ", "DESCRIBE"], group="shop")
        assert len(alice.consume(orders, group="shop", count=2)) == 2
        cluster.grant("alice", ["WRITE", "DESCRIBE"], transactional_id="t")
        alice.transaction(orders, transactional_id="t", count=2)
        assert orders[0].log_end_offset == 5  # and the marker


def test_a_seed_repeats_a_program_that_logs_in() -> None:
    def run() -> str:
        with secured() as cluster:
            cluster.create_topic("orders")
            cluster.grant("alice", "WRITE", topic="orders")
            config = cluster.client_config("alice", for_="aiokafka", listener="SASL_PLAINTEXT")

            async def main() -> None:
                await asyncio.gather(*(produces(config, bytes([n]))() for n in range(3)))

            ends(cluster, cluster.app("shop", main))
            return cluster.trace_hash

    assert run() == run()


@pytest.mark.parametrize("protocol", ["SSL", "SASL_SSL"])
def test_kafka_python_has_tls_on_its_own_sockets(protocol: str) -> None:
    """A record, a rejected certificate once it has expired; a seed repeats both."""
    kafka = pytest.importorskip("kafka")

    def run() -> str | None:
        with secured(config={"ssl.client.auth": "requested"}) as cluster:
            orders = cluster.create_topic("orders")
            cluster.grant("alice", "WRITE", topic="orders")
            cluster.grant("User:CN=alice,OU=tests,O=minicluster", "WRITE", topic="orders")
            config = cluster.client_config("alice", for_="kafka-python", listener=protocol)

            def main() -> int:
                producer = kafka.KafkaProducer(**config)
                try:
                    return int(producer.send("orders", b"x" * 100_000).get(10).offset)
                finally:
                    producer.close()

            assert ends(cluster, cluster.app("shop", main)) == 0 and orders[0].log_end_offset == 1
            cluster.expire_certificates()
            with pytest.raises(kafka.errors.KafkaError, match="bootstrap"):
                ends(cluster, cluster.app("late", main))
            return cluster.trace_hash

    assert run() == run()
