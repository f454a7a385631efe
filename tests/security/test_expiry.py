"""What ends in the midst: certificates, passwords, rights, tokens; at times of the cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.security.oauthbearer import unsecured_token

aiokafka = pytest.importorskip("aiokafka")
from aiokafka.abc import AbstractTokenProvider  # noqa: E402
from aiokafka.errors import KafkaConnectionError, TopicAuthorizationFailedError  # noqa: E402

USERS = {"admin": "admin-secret", "alice": "alice-secret"}


def secured(**config: Any) -> MiniCluster:
    return MiniCluster(
        brokers=1, controllers=1, seed=5, users=USERS, super_users=["admin"], config=config
    )


def shop(config: dict[str, Any], count: int) -> Callable[[], Any]:
    """A program that writes an order each second, and returns how many were acknowledged and the
    error at which it stopped."""

    async def run() -> tuple[int, BaseException | None]:
        for number in range(count):
            producer = aiokafka.AIOKafkaProducer(**config, request_timeout_ms=5_000)
            try:
                await producer.start()
                await producer.send_and_wait("orders", b"%d" % number)
            except Exception as error:
                return number, error
            finally:
                await producer.stop()
            await asyncio.sleep(1)
        return count, None

    return run


def played(cluster: MiniCluster, run: Callable[[], Any], name: str = "shop") -> Any:
    app = cluster.app(name, run)
    cluster.wait_until(lambda: not app.is_running, within="10m")
    if app.error is not None:
        raise app.error
    return app.result


def reasons(cluster: MiniCluster) -> list[str]:
    entries = inside(cluster).log.entries
    return [e["reason"] for e in entries if e["event"] == "connection.closed"]


def test_a_certificate_expires_at_a_time_of_the_cluster_and_is_renewed() -> None:
    with secured() as cluster:
        cluster.create_topic("orders")
        cluster.grant("alice", "WRITE", topic="orders")
        config = cluster.client_config("alice", for_="aiokafka", listener="SASL_SSL")
        cluster.call_later("10s", cluster.expire_certificates)
        sent, error = played(cluster, shop(config, 60))
        assert 5 < sent < 15 and isinstance(error, KafkaConnectionError)
        cluster.renew_certificates()
        assert played(cluster, shop(config, 1), "again") == (1, None)


@pytest.mark.parametrize("max_reauth_ms", [0, 10_000])
def test_a_password_that_is_changed_counts_from_the_next_login_on(max_reauth_ms: int) -> None:
    """A session that is logged in goes on to its end, if it has one."""
    with secured(**{"connections.max.reauth.ms": max_reauth_ms}) as cluster:
        cluster.create_topic("orders")
        cluster.grant("alice", "WRITE", topic="orders")
        config = cluster.client_config("alice", for_="aiokafka", listener="SASL_PLAINTEXT")

        async def run() -> int:
            producer = aiokafka.AIOKafkaProducer(**config, request_timeout_ms=5_000)
            await producer.start()
            sent = 0
            try:
                for _ in range(30):
                    await producer.send_and_wait("orders", b"an order")
                    sent += 1
                    await asyncio.sleep(1)
            except Exception:
                return sent
            finally:
                await producer.stop()
            return sent

        cluster.call_later("5s", cluster.set_password, "alice", "another")
        sent = played(cluster, run)
        if max_reauth_ms:
            assert 5 < sent < 15
            assert any("invalid credentials" in reason for reason in reasons(cluster))
        else:
            assert sent == 30
        renewed = cluster.client_config("alice", for_="aiokafka", listener="SASL_PLAINTEXT")
        assert renewed["sasl_plain_password"] == "another"
        assert played(cluster, shop(renewed, 1), "again") == (1, None)


def test_a_right_that_is_revoked_in_the_midst_stops_a_program() -> None:
    with secured() as cluster:
        cluster.create_topic("orders")
        cluster.grant("alice", "WRITE", topic="orders")
        config = cluster.client_config("alice", for_="aiokafka", listener="SASL_PLAINTEXT")
        cluster.call_later("10s", cluster.revoke, "alice", "WRITE", topic="orders")
        sent, error = played(cluster, shop(config, 60))
        assert 5 < sent < 15 and isinstance(error, TopicAuthorizationFailedError)


def test_a_token_that_ends_is_rejected_after_its_end() -> None:
    """OAUTHBEARER: by the time of the cluster, which a program sees as the time of day."""

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]
        async def token(self) -> str:
            return unsecured_token("alice", issued_at_ms=0, expires_at_ms=10_000)

    with secured(**{"sasl.enabled.mechanisms": "OAUTHBEARER"}) as cluster:
        cluster.create_topic("orders")
        cluster.grant("alice", "WRITE", topic="orders")
        config = {
            "bootstrap_servers": "node1:29091",
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": Tokens(),
        }
        sent, error = played(cluster, shop(config, 60))
        assert 5 < sent < 15 and error is not None


def test_a_client_on_a_socket_meets_the_expired_certificate() -> None:
    """In real time as well."""
    import socket

    with MiniCluster(brokers=1, controllers=1, listeners="SSL") as cluster:
        config = cluster.client_config(for_="aiokafka")
        host, port = config["bootstrap_servers"].rsplit(":", 1)

        def connect() -> None:
            with socket.create_connection((host, int(port)), timeout=20) as plain:
                config["ssl_context"].wrap_socket(plain, server_hostname=host).close()

        connect()
        cluster.expire_certificates()
        with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
            connect()
        cluster.wait_until(lambda: bool(reasons(cluster)))
        [reason] = reasons(cluster)  # by the alert of the client
        assert reason == "TLS: SSLV3_ALERT_CERTIFICATE_EXPIRED"
        cluster.renew_certificates()
        connect()
