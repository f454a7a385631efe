"""One connection of a client as a pure machine: bytes in, requests out, responses back as bytes.

One request of a connection is in progress at a time, from its last byte until the last byte of its
response has left, as behind Kafka's muted channel. So responses leave in the order of the requests,
and a client that never reads costs one response.

Source:  Selector, SocketServer.Processor, RequestContext.parseRequest, KafkaApis (KIP-511).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from minicluster.protocol import ErrorCode, ProtocolError, encode
from minicluster.protocol.api import API_VERSIONS
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import decode, decode_prefix
from minicluster.protocol.messages import ApiVersionsResponse, RequestHeader, ResponseHeader

RECEIVE_BYTES = 256 * 1024  # from a socket at a time
READ_AHEAD_BYTES = 64 * 1024  # of the next requests, while one is in progress
_SIZE = 4
_FIRST = 8  # api key, version, correlation id


@dataclass(frozen=True, slots=True)
class Deliver:
    """A request for the broker."""

    request: Any
    version: int
    correlation_id: int
    client_id: str


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes for the client."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Close:
    """The end of the connection, with its reason; None: the client has ended it."""

    reason: str | None


Effect = Deliver | Write | Close


class ClientConnection:
    """The machine.

    Inputs:  ``on_bytes``, ``on_end_of_stream``, ``on_response``, ``on_no_response``,
             ``on_written``.
    """

    def __init__(self, served: Mapping[int, range], max_request_bytes: int) -> None:
        self._served = served
        self._max_request_bytes = max_request_bytes
        self._received = bytearray()
        self._in_progress: Deliver | None = None
        self._muted = False
        self._ended = False
        self._closed = False

    @property
    def reads(self) -> bool:
        """True while more bytes may be read."""
        full = self._muted and len(self._received) >= READ_AHEAD_BYTES
        return not (full or self._ended or self._closed)

    def on_bytes(self, data: bytes) -> list[Effect]:
        """Bytes that arrived, any number."""
        self._received += data
        return self._next()

    def on_end_of_stream(self) -> list[Effect]:
        """No more bytes will come; the requests that are complete get their responses yet."""
        self._ended = True
        return self._next()

    def on_response(self, response: Any) -> list[Effect]:
        """The response to the request in progress.

        Errors:  ProtocolError for a response that the request's version cannot carry.
        """
        deliver = self._in_progress
        assert deliver is not None
        api = APIS[deliver.request.api_key]
        header_version = api.response_header_version(deliver.version)
        header = encode(ResponseHeader(correlation_id=deliver.correlation_id), header_version)
        body = encode(response, deliver.version)
        self._in_progress = None
        return [_framed(header + body)]

    def on_no_response(self) -> list[Effect]:
        """The request in progress gets none (Produce with acks=0)."""
        self._in_progress = None
        return self.on_written()

    def on_written(self) -> list[Effect]:
        """The last byte that was to be written has left; the next request comes in progress."""
        self._muted = False
        return self._next()

    def _next(self) -> list[Effect]:
        received = self._received
        if self._muted or self._closed:
            return []
        if len(received) >= _SIZE:
            size = int.from_bytes(received[:_SIZE], "big", signed=True)
            if not 0 <= size <= self._max_request_bytes:
                return [self._close(f"a request of {size} bytes")]
            if len(received) >= _SIZE + size:
                frame = bytes(memoryview(received)[_SIZE : _SIZE + size])
                del received[: _SIZE + size]
                self._muted = True
                return [self._request(frame)]
        return [self._close(None)] if self._ended else []

    def _request(self, frame: bytes) -> Effect:
        if len(frame) < _FIRST:
            return self._close(f"a header of {len(frame)} bytes")
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
        served = self._served.get(key)
        if served is None:
            return self._close(f"api key {key}, which is not served")
        if version not in served:
            if key == API_VERSIONS:
                return _unsupported_api_versions(int.from_bytes(frame[4:8], "big"), served)
            return self._close(f"{APIS[key].name} v{version}, which is not served")
        api = APIS[key]
        try:
            header, end = decode_prefix(RequestHeader, frame, api.request_header_version(version))
            request = decode(api.request, frame[end:], version, rest_allowed=True)
        except ProtocolError as error:
            return self._close(str(error))
        client_id = header.client_id or ""
        self._in_progress = Deliver(request, version, header.correlation_id, client_id)
        return self._in_progress

    def _close(self, reason: str | None) -> Close:
        self._closed = True
        self._received.clear()
        return Close(reason)


def _framed(data: bytes) -> Write:
    return Write(len(data).to_bytes(_SIZE, "big") + data)


def _unsupported_api_versions(correlation_id: int, served: range) -> Write:
    """Version 0 with the versions of ApiVersions alone, from which a client continues (KIP-511)."""
    own = ApiVersionsResponse.ApiVersion(
        api_key=API_VERSIONS, min_version=served[0], max_version=served[-1]
    )
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(own,))
    return _framed(correlation_id.to_bytes(4, "big") + encode(response, 0))
