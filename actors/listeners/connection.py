"""One connection of a client as a pure machine: bytes in, requests out, responses back as bytes.

One request of a connection is in progress at a time, from its last byte until the last byte of its
response has left, as behind Kafka's muted channel. So responses leave in the order of the requests,
and a client that never reads costs one response, besides those that are still on their way to it.

One thread serves all connections, and a request of some megabytes may take seconds to decode. So
the machine passes large requests and responses on (``Decode``, ``Encode``), for another thread to
read or write their bytes.

Source:  Selector, SocketServer.Processor, RequestContext.parseRequest, KafkaApis (KIP-511).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from minicluster.protocol import ErrorCode, ProtocolError, encode
from minicluster.protocol.api import API_VERSIONS
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import (
    decode_limited,
    decode_prefix,
    has_many_elements,
)
from minicluster.protocol.messages import ApiVersionsResponse, RequestHeader, ResponseHeader
from minicluster.values import Value

RECEIVE_BYTES = 256 * 1024  # from a socket at a time
READ_AHEAD_BYTES = 64 * 1024  # of the next requests, while one is in progress
LARGE_BYTES = 64 * 1024  # of a request
MANY_ELEMENTS = 2_000  # of a response
ON_THEIR_WAY_MAX = 100  # responses: TCP's window, about
ELEMENTS_MAX = 50_000  # of a request: more than a cluster in a test has topics and partitions
_SIZE = 4
_FIRST = 8  # api key, version, correlation id


class Deliver(Value):
    """A request for the broker."""

    request: Any
    version: int
    correlation_id: int
    client_id: str


class Write(Value):
    """Bytes for the client."""

    data: bytes


class Close(Value):
    """The end of the connection, with its reason; None: the client has ended it."""

    reason: str | None


class Decode(Value):
    """A large request, to be read outside of the thread of I/O; then ``on_decoded``."""

    served: Mapping[int, range]
    frame: bytes

    def result(self) -> Deliver | Write | Close:
        """The effect of the request; it takes long."""
        return read_request(self.served, self.frame)


class Encode(Value):
    """A large response, to be written outside of the thread of I/O; then ``on_encoded``."""

    response: Any
    deliver: Deliver

    def result(self) -> Write | Close:
        """The bytes of the response; it takes long."""
        try:
            return write_response(self.response, self.deliver)
        except ProtocolError as error:
            return Close(str(error))


class Authenticate(Value):
    """A frame of a connection with SASL: of its login, or a request of who is logged in.

    Then ``on_login`` or ``on_authenticated``.
    """

    frame: bytes


Effect = Deliver | Write | Close | Decode | Encode | Authenticate


class ClientConnection:
    """The machine.

    Inputs:  ``on_bytes``, ``on_end_of_stream``, ``on_response``, ``on_no_response``,
             ``on_left``, ``on_written``, ``on_decoded``, ``on_encoded``, ``on_login``,
             ``on_authenticated``.
    """

    def __init__(
        self, served: Mapping[int, range], max_request_bytes: int, *, authenticates: bool = False
    ) -> None:
        self._served = served
        self._authenticates = authenticates
        self.max_request_bytes = max_request_bytes  # smaller as long as nobody has logged in
        self._received = bytearray()
        self._waiting: deque[Deliver] = deque()  # whose responses have not arrived
        self.on_their_way = 0  # of these the first, whose responses have left their node
        self._works = False  # a message is read, encoded or written
        self._ended = False
        self._closed = False

    @property
    def _muted(self) -> bool:
        # What comes next may be a login, whose answer must not precede responses on their way.
        waits_for_all = self._authenticates and bool(self._waiting)
        in_progress = len(self._waiting) > self.on_their_way or waits_for_all
        return self._works or in_progress or self.on_their_way >= ON_THEIR_WAY_MAX

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

    def on_left(self) -> list[Effect]:
        """The response to the request in progress has left its node, and not arrived yet."""
        self.on_their_way += 1
        return self._next()

    def on_response(self, response: Any) -> list[Effect]:
        """The response to the first request without one has arrived.

        Errors:  ProtocolError for a response that the request's version cannot carry.
        """
        deliver = self._waiting.popleft()
        self.on_their_way = max(0, self.on_their_way - 1)
        self._works = True
        if has_many_elements(response, MANY_ELEMENTS):
            return [Encode(response, deliver)]
        return [write_response(response, deliver)]

    def on_decoded(self, effect: Deliver | Write | Close) -> list[Effect]:
        """The outcome of a large request."""
        return [] if self._closed else [self._requested(effect)]

    def on_encoded(self, effect: Write | Close) -> list[Effect]:
        """The bytes of a large response."""
        return [] if self._closed else [effect]

    def on_authenticated(self, frame: bytes) -> list[Effect]:
        """The frame is a request of who is logged in."""
        return [] if self._closed else self._read(frame)

    def on_login(self, response: bytes) -> list[Effect]:
        """The answer to a frame of a login, without its length."""
        return [] if self._closed else [_framed(response)]

    def on_no_response(self) -> list[Effect]:
        """The request in progress gets none (Produce with acks=0)."""
        self._waiting.pop()
        return self._next()

    def on_written(self) -> list[Effect]:
        """The last byte that was to be written has left; the next request comes in progress."""
        self._works = False
        return self._next()

    def _next(self) -> list[Effect]:
        received = self._received
        if self._muted or self._closed:
            return []
        if len(received) >= _SIZE:
            size = int.from_bytes(received[:_SIZE], "big", signed=True)
            if not 0 <= size <= self.max_request_bytes:
                return [self._close(f"a request of {size} bytes")]
            if len(received) >= _SIZE + size:
                frame = bytes(memoryview(received)[_SIZE : _SIZE + size])
                del received[: _SIZE + size]
                self._works = True
                return [Authenticate(frame)] if self._authenticates else self._read(frame)
        return [self._close(None)] if self._ended else []

    def _read(self, frame: bytes) -> list[Effect]:
        if len(frame) > LARGE_BYTES:
            return [Decode(self._served, frame)]
        return [self._requested(read_request(self._served, frame))]

    def _requested(self, effect: Deliver | Write | Close) -> Effect:
        """Take note of a request that was read, or that is none."""
        if isinstance(effect, Deliver):
            self._works = False
            self._waiting.append(effect)
        elif isinstance(effect, Close):
            return self._close(effect.reason)
        return effect

    def _close(self, reason: str | None) -> Close:
        self._closed = True
        self._received.clear()
        return Close(reason)


def read_request(served: Mapping[int, range], frame: bytes) -> Deliver | Write | Close:
    """A request in bytes, the response to one in an unknown version, or why it is not served."""
    if len(frame) < _FIRST:
        return Close(f"a header of {len(frame)} bytes")
    key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
    versions = served.get(key)
    if versions is None:
        return Close(f"api key {key}, which is not served")
    if version not in versions:
        if key == API_VERSIONS:
            return _unsupported_api_versions(int.from_bytes(frame[4:8], "big"), versions)
        return Close(f"{APIS[key].name} v{version}, which is not served")
    api = APIS[key]
    try:
        header, end = decode_prefix(RequestHeader, frame, api.request_header_version(version))
        request = decode_limited(api.request, frame, version, end, ELEMENTS_MAX)
    except ProtocolError as error:
        return Close(str(error))
    return Deliver(request, version, header.correlation_id, header.client_id or "")


def write_response(response: Any, deliver: Deliver) -> Write:
    """A response in bytes.

    Errors:  ProtocolError for one that the request's version cannot carry.
    """
    version = APIS[deliver.request.api_key].response_header_version(deliver.version)
    header = encode(ResponseHeader(correlation_id=deliver.correlation_id), version)
    return _framed(header + encode(response, deliver.version))


def _framed(data: bytes) -> Write:
    return Write(len(data).to_bytes(_SIZE, "big") + data)


def _unsupported_api_versions(correlation_id: int, served: range) -> Write:
    """Version 0 with the versions of ApiVersions alone, from which a client continues (KIP-511)."""
    own = ApiVersionsResponse.ApiVersion(
        api_key=API_VERSIONS, min_version=served[0], max_version=served[-1]
    )
    response = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(own,))
    return _framed(correlation_id.to_bytes(4, "big") + encode(response, 0))
