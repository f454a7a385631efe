"""TLS between a carrier and its connection: the same over sockets and over memory.

::

    carrier ──ciphertext──▶ TlsConnection ──bytes──▶ ServedConnection
    carrier ◀─ciphertext─── TlsConnection ◀──bytes── ServedConnection

OpenSSL works on two buffers in memory (``ssl.MemoryBIO``), so nothing here waits. The name in a
client's certificate is known once the handshake is complete.

Source:  SslTransportLayer, SslChannelBuilder, DefaultKafkaPrincipalBuilder.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Any

from minicluster.actors.listeners.carrier import Carried, Carrier

_CHUNK = 64 * 1024
_INTERNAL_ERROR = bytes.fromhex("15030300020250")
"""The fatal alert with which Java's TLS answers bytes in the clear."""
_SHORT = {
    "commonName": "CN",
    "organizationalUnitName": "OU",
    "organizationName": "O",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "streetAddress": "STREET",
    "countryName": "C",
    "domainComponent": "DC",
    "userId": "UID",
}
"""The names of attributes that RFC 2253 knows (X500Principal.getName)."""


class TlsConnection:
    """The server's side of TLS: a carrier to the connection behind it, a connection to its carrier.

    Shapes:  peer: the distinguished name of the client's certificate, as in RFC 2253; None without
             one, and before the handshake is complete.
    """

    def __init__(
        self,
        context: ssl.SSLContext,
        carrier: Carrier,
        connection: Carried,
        on_problem: Callable[[str], None] = lambda problem: None,
    ) -> None:
        self.connection = connection
        self.address, self.client = carrier.address, carrier.client
        self.peer: str | None = None
        self.problem: str | None = None
        self._on_problem = on_problem
        self._carrier = carrier
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._is_ready = False

    # As a connection, from the carrier.

    @property
    def is_open(self) -> bool:
        return self.connection.is_open

    def touch(self) -> None:
        self.connection.touch()

    def drop(self, *, reset: bool = False) -> None:
        self.connection.drop(reset=reset)

    def on_bytes(self, data: bytes) -> None:
        """Bytes of the client as they came."""
        self._incoming.write(data)
        try:
            if not self._is_ready:
                self._shake_hands()
            if self._is_ready:
                self._pass_on()
        except ssl.SSLWantReadError:
            self._send()
        except ssl.SSLError as error:
            self._fail(error)

    def on_end_of_stream(self) -> None:
        """The client sends nothing more."""
        self._incoming.write_eof()
        self.connection.on_end_of_stream()

    def on_written(self) -> None:
        """The carrier has sent the rest, which it could not send at once."""
        self.connection.on_written()

    # As a carrier, from the connection.

    def write(self, data: bytes) -> bool:
        view = memoryview(data)
        while view:
            written = self._tls.write(view[:_CHUNK])
            view = view[written:]
        return self._send()

    def reads(self, wanted: bool) -> None:
        self._carrier.reads(wanted)

    def end(self, *, reset: bool) -> None:
        self._carrier.end(reset=reset)

    def _shake_hands(self) -> None:
        self._tls.do_handshake()
        self._is_ready = True
        certificate = self._tls.getpeercert()
        if certificate:
            self.peer = distinguished_name(certificate)
        self._send()

    def _pass_on(self) -> None:
        """Give on what can be read; the end of TLS is the end of the stream."""
        while True:
            try:
                data = self._tls.read(_CHUNK)
            except ssl.SSLZeroReturnError:
                data = b""
            if not data:
                self.connection.on_end_of_stream()
                return
            self.connection.on_bytes(data)

    def _send(self) -> bool:
        return self._carrier.write(self._outgoing.read()) if self._outgoing.pending else True

    def _fail(self, error: ssl.SSLError) -> None:
        """End the connection, with the alert that says why."""
        self.problem = error.reason or str(error)
        if self.is_open:
            self._on_problem(f"TLS: {self.problem}")
        if not (self._is_ready or self._outgoing.pending):
            self._carrier.write(_INTERNAL_ERROR)  # of bytes that are not TLS, OpenSSL says nothing
        self._send()
        self.connection.drop()


def distinguished_name(certificate: dict[str, Any]) -> str:
    """The subject of a certificate as Java writes it: the last part first (RFC 2253)."""
    parts = []
    for attributes in reversed(certificate.get("subject", ())):
        parts.append("+".join(f"{_SHORT.get(n, n)}={_escaped(v)}" for n, v in attributes))
    return ",".join(parts)


def _escaped(value: str) -> str:
    escaped = "".join(f"\\{char}" if char in ',+"\\<>;' else char for char in value)
    if escaped.startswith(("#", " ")):
        escaped = "\\" + escaped
    return escaped[:-1] + "\\ " if escaped.endswith(" ") and len(value) > 1 else escaped
