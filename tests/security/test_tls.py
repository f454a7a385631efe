"""TLS over any carrier: a handshake, bytes both ways, certificates of clients."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

import pytest

from minicluster.actors.listeners.tls import TlsConnection, distinguished_name
from minicluster.actors.security.authority import Authority


@dataclass
class Wire:
    """A carrier whose bytes a test moves, and the connection behind TLS."""

    address: str = "127.0.0.1"
    client: str | None = None
    sent: bytearray = field(default_factory=bytearray)
    received: bytearray = field(default_factory=bytearray)
    ended: bool = False
    is_open: bool = True
    at_end: bool = False

    def write(self, data: bytes) -> bool:
        self.sent += data
        return True

    def reads(self, wanted: bool) -> None: ...

    def end(self, *, reset: bool) -> None:
        self.ended = True

    def on_bytes(self, data: bytes) -> None:
        self.received += data

    def on_end_of_stream(self) -> None:
        self.at_end = True

    def on_written(self) -> None: ...

    def touch(self) -> None: ...

    def drop(self, *, reset: bool = False) -> None:
        self.ended = True


class Client:
    """A client's TLS, in memory as well."""

    def __init__(self, context: ssl.SSLContext, name: str = "localhost") -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)

    def talk(self, server: TlsConnection, wire: Wire, size: int = 1 << 20) -> None:
        """Shake hands, whatever the pieces in which bytes arrive."""
        for _ in range(20):
            try:
                self.tls.do_handshake()
                done = True
            except ssl.SSLWantReadError:
                done = False
            self.send(server, size)
            self._incoming.write(bytes(wire.sent))
            wire.sent.clear()
            if done:
                return
        raise AssertionError("no handshake")

    def send(self, server: TlsConnection, size: int = 1 << 20) -> None:
        data = self._outgoing.read()
        for at in range(0, len(data), size):
            server.on_bytes(data[at : at + size])

    def read(self, wire: Wire) -> bytes:
        self._incoming.write(bytes(wire.sent))
        wire.sent.clear()
        return self.tls.read(1 << 20)


def _served(context: ssl.SSLContext) -> tuple[TlsConnection, Wire]:
    wire = Wire()
    server = TlsConnection(context, wire, wire)
    return server, wire


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
def test_bytes_cross_both_ways_in_pieces_of_any_size(size: int) -> None:
    """What a client writes arrives in the clear, and what the node writes as well."""
    authority = Authority()
    server, wire = _served(authority.server_context())
    client = Client(authority.client_context())
    client.talk(server, wire, size)
    client.tls.write(b"a request")
    client.send(server, size)
    assert wire.received == b"a request"
    assert server.write(b"a response" * 20_000)
    assert client.read(wire).startswith(b"a response")


def test_a_clients_certificate_names_it() -> None:
    """As Java writes a distinguished name: the last part first."""
    authority = Authority()
    server, wire = _served(authority.server_context(client_auth="required"))
    Client(authority.client_context("dave")).talk(server, wire)
    assert server.peer == "CN=dave,OU=tests,O=minicluster"


def test_a_requested_certificate_may_be_missing() -> None:
    """The client is anonymous then."""
    authority = Authority()
    server, wire = _served(authority.server_context(client_auth="requested"))
    Client(authority.client_context()).talk(server, wire)
    assert server.peer is None


def test_bytes_in_the_clear_end_the_connection_with_an_alert() -> None:
    """As a client of PLAINTEXT on a port of SSL sees it."""
    server, wire = _served(Authority().server_context())
    server.on_bytes(b"GET / HTTP/1.1\r\n\r\n")
    assert wire.ended and wire.sent.hex() == "15030300020250"  # internal_error, as Kafka's
    assert server.problem == "HTTP_REQUEST"


def test_a_client_does_not_trust_another_authority_or_name() -> None:
    """Nor a certificate that has ended."""
    authority = Authority()
    for context, name, problem in (
        (Authority().client_context(), "localhost", "local issuer"),
        (authority.client_context(), "broker.example", "Hostname mismatch"),
    ):
        server, wire = _served(authority.server_context())
        with pytest.raises(ssl.SSLCertVerificationError, match=problem):
            Client(context, name).talk(server, wire)
    server, wire = _served(authority.server_context(has_expired=True))
    with pytest.raises(ssl.SSLCertVerificationError, match="expired"):
        Client(authority.client_context()).talk(server, wire)


def test_names_are_escaped() -> None:
    """A comma in a name is no separator."""
    subject = ((("organizationName", "Org, Inc"),), (("commonName", "#1"),))
    assert distinguished_name({"subject": subject}) == "CN=\\#1,O=Org\\, Inc"
