"""A client of one connection that sees each byte: for what Kafka's own clients hide."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self

from minicluster import MiniCluster
from minicluster.protocol import decode, encode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import decode_prefix
from minicluster.protocol.messages import RequestHeader, ResponseHeader

LIMIT_S = 30.0


class RawClient:
    """One connection to one broker."""

    def __init__(self, cluster: MiniCluster, node_id: int, client_id: str) -> None:
        assert cluster.bootstrap_servers
        assert cluster.listeners is not None
        self.client_id = client_id
        self.sent: dict[int, tuple[int, int]] = {}
        address = cluster.listeners.endpoints.nodes[node_id]
        self.socket = socket.create_connection(address, timeout=LIMIT_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, request: Any, version: int) -> None:
        """Send a request and wait for nothing."""
        key = request.api_key
        correlation_id = len(self.sent) + 1
        self.sent[correlation_id] = key, version
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=correlation_id,
            client_id=self.client_id,
        )
        frame = encode(header, APIS[key].request_header_version(version))
        frame += encode(request, version)
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)

    def receive(self) -> Any:
        """The next response.

        Errors:  ConnectionResetError for RST; EOFError for FIN.
        """
        size = int.from_bytes(self._bytes(4), "big")
        frame = self._bytes(size)
        key, version = self.sent[int.from_bytes(frame[:4], "big")]
        _, end = decode_prefix(ResponseHeader, frame, APIS[key].response_header_version(version))
        return decode(APIS[key].response, frame[end:], version)

    def request(self, request: Any, version: int) -> Any:
        """Send a request and receive its response."""
        self.send(request, version)
        return self.receive()

    def is_silent(self, seconds: float = 0.15) -> bool:
        """True if the connection is open and nothing arrives for a while."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) is None
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(LIMIT_S)

    def _bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError
            data += more
        return data
