"""A client of one connection that sees each byte: for what Kafka's own clients hide or never send.

Every wait has a limit.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.protocol import decode, decode_prefix, encode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.messages import ApiVersionsRequest, RequestHeader, ResponseHeader

LIMIT_S = 60.0
SOFTWARE = ApiVersionsRequest(client_software_name="raw", client_software_version="1")


def request_bytes(request: Any, version: int, correlation_id: int, client_id: str) -> bytes:
    """A request as its bytes: header and body, without the size before them."""
    api = APIS[request.api_key]
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode(header, api.request_header_version(version)) + encode(request, version)


def frame(request: Any, version: int, correlation_id: int = 0, client_id: str = "raw") -> bytes:
    """A request as its bytes, with the size before it."""
    return sized(request_bytes(request, version, correlation_id, client_id))


def sized(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def read_response(request: Any, version: int, data: bytes) -> tuple[int, Any]:
    """The response in bytes without their size: its correlation id and its body."""
    api = APIS[request.api_key]
    header, end = decode_prefix(ResponseHeader, data, api.response_header_version(version))
    return header.correlation_id, decode(api.response, data[end:], version)


class RawClient:
    """One connection to one node."""

    def __init__(
        self,
        cluster: MiniCluster,
        node_id: int = 1,
        client_id: str = "raw",
        *,
        source: str | None = None,
        receive_buffer: int = 0,
    ) -> None:
        assert cluster.bootstrap_servers  # a paced cluster runs by itself from now on
        assert inside(cluster).listeners is not None
        self.client_id = client_id
        self.address = inside(cluster).listeners.endpoints.nodes[node_id]
        self._sent: dict[int, tuple[Any, int]] = {}
        self.socket = socket.socket()
        self.socket.settimeout(LIMIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source is not None:
            self.socket.bind((source, 0))
        self.socket.connect(self.address)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.socket.close()

    # Requests.

    def send(self, request: Any, version: int | None = None) -> None:
        """Send a request, in its latest version by default, and wait for nothing."""
        version = request.latest_version if version is None else version
        correlation_id = len(self._sent) + 1
        self._sent[correlation_id] = request, version
        self.write(frame(request, version, correlation_id, self.client_id))

    def receive(self) -> Any:
        """The next response to what was sent.

        Errors:  ConnectionResetError for RST; EOFError for FIN.
        """
        data = self.receive_frame()
        request, version = self._sent[int.from_bytes(data[:4], "big")]
        return read_response(request, version, data)[1]

    def request(self, request: Any, version: int | None = None) -> Any:
        """Send a request and receive its response."""
        self.send(request, version)
        return self.receive()

    def round_trip(self) -> None:
        """Send the simplest request, and take its response."""
        self.write(frame(SOFTWARE, 3, 77))
        assert self.response(SOFTWARE, 3)[0] == 77

    # Bytes.

    def write(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive_frame(self) -> bytes:
        return self._bytes(int.from_bytes(self._bytes(4), "big"))

    def response(self, request: Any, version: int) -> tuple[int, Any]:
        """The next response, to a request that was written: its correlation id and its body."""
        return read_response(request, version, self.receive_frame())

    def is_silent(self, seconds: float = 0.15) -> bool:
        """True if the connection is open and nothing arrives for a while."""
        self.socket.settimeout(seconds)
        try:
            return self.socket.recv(1, socket.MSG_PEEK) is None
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(LIMIT_S)

    def is_closed_by_the_broker(self) -> bool:
        """Wait for the end of the connection, which sends nothing before."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True

    def _bytes(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise EOFError(f"the connection ended after {len(data)} of {count} bytes")
            data += more
        return data
