"""Peers of secured listeners that send what no client sends, or nothing: limits cut them off.

Each leaves one line in the log, and no other client waits.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.protocol.messages import (
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from tests.listeners.raw_client import frame, read_response

IDLE_MS = 2_000
RECEIVE_BYTES = 10_000
CONNECTIONS = 900
HOSTILE = "127.0.0.2"  # the address of these peers
LIMIT_S = 30.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with secured() as built:
        yield built


def secured() -> MiniCluster:
    config = {
        "connections.max.idle.ms": IDLE_MS,
        "sasl.server.max.receive.size": RECEIVE_BYTES,
        "connection.failed.authentication.delay.ms": 0,
    }
    return MiniCluster(
        brokers=1,
        controllers=1,
        listeners=["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"],
        users={"alice": "alice-secret"},
        config=config,
    )


class Peer:
    """A connection to one listener, byte by byte."""

    def __init__(self, cluster: MiniCluster, listener: str) -> None:
        listeners = inside(cluster).listeners
        assert listeners is not None
        self._cluster = cluster
        address = listeners.endpoints.advertised[listener][1]
        self.socket: socket.socket = socket.create_connection(
            address, timeout=LIMIT_S, source_address=(HOSTILE, 0)
        )

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def ends(self) -> bytes:
        """What comes before the end of the connection."""
        data = b""
        try:
            while more := self.socket.recv(65_536):
                data += more
        except ConnectionResetError:
            pass
        return data

    def handshake(self, mechanism: str) -> None:
        self.request(SaslHandshakeRequest(mechanism=mechanism))

    def request(self, request: Any) -> Any:
        """The response to a request of a login."""
        version = request.latest_version
        self.socket.sendall(frame(request, version))
        size = int.from_bytes(self._exactly(4), "big")
        return read_response(request, version, self._exactly(size))[1]

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            assert more
            data += more
        return data


def lines(cluster: MiniCluster) -> list[dict[str, Any]]:
    events = ("connection.closed", "connection.idle")
    entries = inside(cluster).log.entries
    return [e for e in entries if e["event"] in events and e["address"] == HOSTILE]


@pytest.fixture
def bystander(cluster: MiniCluster) -> Iterator[Any]:
    """A user who is logged in all the while, and gets his responses before and after."""
    admin = pytest.importorskip("confluent_kafka.admin")
    client = admin.AdminClient(cluster.client_config("alice", listener="SASL_SSL"))
    client.list_topics(timeout=LIMIT_S)
    before = len(lines(cluster))
    yield lambda: lines(cluster)[before:]
    began_s = time.monotonic()
    client.list_topics(timeout=LIMIT_S)
    assert time.monotonic() - began_s < LIMIT_S
    inside(cluster).rt.check()


def hello() -> bytes:
    """The first bytes of a client with TLS."""
    outgoing = ssl.MemoryBIO()
    tls = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="a")
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_PLAINTEXT"])
def test_tls_to_a_plain_port_ends_at_once(
    cluster: MiniCluster, bystander: Any, listener: str
) -> None:
    with Peer(cluster, listener) as peer:
        peer.socket.sendall(hello())
        assert peer.ends() == b""
        [line] = bystander()
        assert line["reason"].startswith("a request of 3692")  # its first four bytes as a size


@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL"])
def test_a_plain_request_to_a_port_with_tls_gets_an_alert(
    cluster: MiniCluster, bystander: Any, listener: str
) -> None:
    with Peer(cluster, listener) as peer:
        peer.socket.sendall(frame(SaslHandshakeRequest(mechanism="PLAIN"), 1))
        assert peer.ends()[:1] == b"\x15"
        [line] = bystander()
        assert line["reason"].startswith("TLS: ")


@pytest.mark.parametrize("listener", ["SSL", "SASL_SSL"])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["nothing", "half", "whole"])
def test_a_handshake_that_stops_is_cut_off_as_idle(
    cluster: MiniCluster, bystander: Any, listener: str, share: float
) -> None:
    """After nothing, half of the first flight, and all of it."""
    first = hello()
    with Peer(cluster, listener) as peer:
        peer.socket.sendall(first[: int(len(first) * share)])
        peer.ends()
        [line] = bystander()
        assert line["event"] == "connection.idle"


@pytest.mark.parametrize("size", [RECEIVE_BYTES + 1, 2**31 - 1])
def test_a_frame_before_the_login_is_rejected_by_its_size(
    cluster: MiniCluster, bystander: Any, size: int
) -> None:
    """Its bytes are not waited for: nobody who has not logged in fills the memory."""
    with Peer(cluster, "SASL_PLAINTEXT") as peer:
        peer.socket.sendall(size.to_bytes(4, "big"))
        assert peer.ends() == b""
        [line] = bystander()
        assert line["reason"] == f"a request of {size} bytes"


def test_a_proof_that_was_heard_on_another_connection_proves_nothing(
    cluster: MiniCluster, bystander: Any
) -> None:
    """SCRAM: the nonce of the node is another one."""
    heard: list[bytes] = []

    def login(final: bytes | None = None) -> Any:
        with Peer(cluster, "SASL_PLAINTEXT") as peer:
            peer.handshake("SCRAM-SHA-256")
            first = b"n=alice,r=fyko+d2lbbFgONRv9qkxdawL"
            said = peer.request(SaslAuthenticateRequest(auth_bytes=b"n,," + first)).auth_bytes
            if final is None:
                final = proof(first, said)
                heard.append(final)
            return peer.request(SaslAuthenticateRequest(auth_bytes=final))

    assert login().auth_bytes.startswith(b"v=")
    assert "Authentication failed" in login(heard[0]).error_message
    [line] = bystander()
    assert "Authentication failed" in line["reason"]


def proof(first: bytes, said: bytes) -> bytes:
    """The last message of a client that knows the password (RFC 5802)."""
    fields = dict(part.split(b"=", 1) for part in said.split(b","))
    salt, iterations = base64.b64decode(fields[b"s"]), int(fields[b"i"])
    salted = hashlib.pbkdf2_hmac("sha256", b"alice-secret", salt, iterations)
    key = hmac.digest(salted, b"Client Key", "sha256")
    bare = b"c=biws,r=" + fields[b"r"]
    signed = b",".join((first, said, bare))
    signature = hmac.digest(hashlib.sha256(key).digest(), signed, "sha256")
    proved = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return bare + b",p=" + base64.b64encode(proved)


@pytest.mark.parametrize("listener", ["SASL_PLAINTEXT", "SASL_SSL"])
def test_connections_that_never_log_in_are_cut_off_and_nobody_waits(listener: str) -> None:
    admin = pytest.importorskip("confluent_kafka.admin")
    with secured() as cluster, ExitStack() as stack:
        assert cluster.bootstrap_servers
        peers = [stack.enter_context(Peer(cluster, listener)) for _ in range(CONNECTIONS)]
        began_s = time.monotonic()
        other = admin.AdminClient(cluster.client_config("alice", listener=listener))
        assert other.list_topics(timeout=LIMIT_S).cluster_id
        assert time.monotonic() - began_s < LIMIT_S
        assert [peer.ends() for peer in peers] == [b""] * CONNECTIONS
        assert [line["event"] for line in lines(cluster)] == ["connection.idle"] * CONNECTIONS
