"""A client that sends one request at a time over a socket, in the bytes of Kafka's protocol."""

from __future__ import annotations

import socket
from typing import Any

from minicluster.protocol import decode, encode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import decode_prefix
from minicluster.protocol.messages import RequestHeader, ResponseHeader

LIMIT_S = 30.0


def framed_request(request: Any, version: int, client_id: str, correlation_id: int = 7) -> bytes:
    """The bytes of a request: header and body, without their length."""
    api = APIS[request.api_key]
    header = RequestHeader(
        request_api_key=api.key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return encode(header, api.request_header_version(version)) + encode(request, version)


def read_response(request: Any, version: int, data: bytes) -> Any:
    """The response in bytes without their length."""
    api = APIS[request.api_key]
    header, end = decode_prefix(ResponseHeader, data, api.response_header_version(version))
    assert header.correlation_id == 7
    return decode(api.response, data[end:], version)


class RawClient:
    """One connection."""

    def __init__(self, address: tuple[str, int], client_id: str = "raw") -> None:
        self.client_id = client_id
        self.socket = socket.create_connection(address, timeout=LIMIT_S)

    def send(self, request: Any, version: int | None = None) -> Any:
        """The response to a request, in its latest version by default."""
        version = request.latest_version if version is None else version
        frame = framed_request(request, version, self.client_id)
        self.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        size = int.from_bytes(self._read(4), "big")
        return read_response(request, version, self._read(size))

    def close(self) -> None:
        self.socket.close()

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            received = self.socket.recv(size - len(data))
            assert received, "the connection has ended"
            data += received
        return data
