"""A client of raw bytes, for what no client library sends."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Self

from minicluster import MiniCluster
from minicluster.protocol import decode, decode_prefix, encode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.messages import ApiVersionsRequest, RequestHeader, ResponseHeader

LIMIT_S = 60.0


def frame(request: Any, version: int, correlation_id: int = 0, client_id: str = "raw") -> bytes:
    """A request as its bytes, with the size before it."""
    api = APIS[request.api_key]
    header = RequestHeader(
        request_api_key=request.api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    body = encode(header, api.request_header_version(version)) + encode(request, version)
    return sized(body)


def sized(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


class RawClient:
    """One socket to a broker. Every wait has a limit."""

    def __init__(
        self,
        cluster: MiniCluster,
        broker: int = 1,
        *,
        source: str | None = None,
        receive_buffer: int = 0,
    ) -> None:
        self.socket = socket.socket()
        self.socket.settimeout(LIMIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        if source is not None:
            self.socket.bind((source, 0))
        assert cluster.listeners is not None
        self.address = cluster.listeners.endpoints.nodes[broker]
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

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            assert more, f"the connection ended after {len(data)} of {count} bytes"
            data += more
        return data

    def receive_frame(self) -> bytes:
        return self.receive(int.from_bytes(self.receive(4), "big"))

    def response(self, request: Any, version: int) -> tuple[int, Any]:
        """The next response, to this request: its correlation id and its body."""
        data = self.receive_frame()
        api = APIS[request.api_key]
        header, end = decode_prefix(ResponseHeader, data, api.response_header_version(version))
        return header.correlation_id, decode(api.response, data[end:], version)

    def round_trip(self) -> None:
        """Send the simplest request, and take its response."""
        request = ApiVersionsRequest(client_software_name="raw", client_software_version="1")
        self.send(frame(request, 3, 77))
        assert self.response(request, 3)[0] == 77

    def is_closed_by_the_broker(self) -> bool:
        """Wait for the end of the connection, which sends nothing before."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionError:
            return True
