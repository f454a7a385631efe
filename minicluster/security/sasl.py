"""A login by SASL on one connection: which frames may come, and what is said to each.

    state        may come                                     leads to
    -----------  -------------------------------------------  ------------------------------------
    INITIAL      ApiVersions, SaslHandshake                   VERSIONED, AUTHENTICATE
    VERSIONED    SaslHandshake                                AUTHENTICATE
    AUTHENTICATE SaslAuthenticate, or a token without a       AUTHENTICATE, COMPLETE
                 header after SaslHandshake v0
    WRONG        nothing: a login again by another mechanism  FAILED
    COMPLETE     SaslHandshake, if the session has an end     AUTHENTICATE
    FAILED       nothing

What else comes before the handshake ends the connection without a response. After it, the request
gets ILLEGAL_SASL_STATE in its own form, and the connection ends. An ApiVersions that is rejected
changes no state.

A session has an end if its listener (connections.max.reauth.ms) or its credential has one. A client
may log in again before, as the same principal and by the same mechanism, once a second; until that
is complete only its login may continue. At the first request after the end the connection is
closed.

Source:  KIP-43, KIP-152, KIP-255, KIP-368; SaslServerAuthenticator, KafkaChannel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from enum import Enum, auto
from typing import Any

from minicluster.faults import Faults
from minicluster.java_order import hash_map_order, string_hash
from minicluster.planting import Planted, step
from minicluster.protocol import ErrorCode, ProtocolError, decode, encode
from minicluster.protocol import messages as m
from minicluster.protocol.api import API_VERSIONS
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import decode_prefix
from minicluster.protocol.error_responses import error_response
from minicluster.rules import Rules
from minicluster.security import oauthbearer, plain, scram
from minicluster.security.mechanism import LoggedIn, NoResponse, SaslFailure, SaslMechanism
from minicluster.security.principals import USER, KafkaPrincipal
from minicluster.values import Value, dataclass

_HANDSHAKE = m.SaslHandshakeRequest.api_key
_AUTHENTICATE = m.SaslAuthenticateRequest.api_key
_REAUTHENTICATION_INTERVAL_MS = 1_000
_FIRST_BYTES = 8  # api key, version, correlation id


class SaslState(Enum):
    """Where a login stands; the table above."""

    INITIAL = auto()
    VERSIONED = auto()
    AUTHENTICATE = auto()
    WRONG = auto()
    COMPLETE = auto()
    FAILED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslSettings:
    """The offer of a listener.

    Shapes:  max_reauth_ms: by mechanism, connections.max.reauth.ms; 0 and none: no end;
             receive_bytes_max: of a frame of a login, sasl.server.max.receive.size.
    """

    mechanisms: tuple[str, ...]
    max_reauth_ms: Mapping[str, int] = field(default_factory=dict)
    plain_passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    receive_bytes_max: int = 524_288


class SaslContext(Value, kw_only=True):
    """The part of a node that a login needs.

    Shapes:  api_versions: the response to a valid ApiVersions request and its version; new_nonce:
             text by chance.
    """

    settings: SaslSettings
    accounts: scram.Accounts
    new_nonce: Callable[[], str]
    api_versions: Callable[[m.ApiVersionsRequest, int], Any]
    rules: Rules
    faults: Faults = Faults.NONE


class SaslOutcome(Value, kw_only=True):
    """The outcome of a frame.

    Shapes:  response: a frame without its length; closes: the connection ends after it, when
             connection.failed.authentication.delay.ms have passed; reason: for the log.
    """

    response: bytes | None = None
    closes: bool = False
    reason: str | None = None


class _Request(Value):
    """A request with its header."""

    body: Any
    version: int
    correlation_id: int

    def framed(self, response: Any) -> bytes:
        api = APIS[self.body.api_key]
        header = m.ResponseHeader(correlation_id=self.correlation_id)
        encoded = encode(header, api.response_header_version(self.version))
        return encoded + encode(response, self.version)


class SaslAuthenticator(Planted):
    """The logins of one connection, the first and the later ones."""

    def __init__(self, context: SaslContext) -> None:
        super().__init__(context.faults)
        self.state = SaslState.INITIAL
        self.principal: KafkaPrincipal | None = None
        self.is_token_authenticated = False
        self.session_expires_at_ms: int | None = None
        self._context = context
        offered = context.settings.mechanisms
        self._mechanisms = tuple(hash_map_order(offered, string_hash))
        self._mechanism_name = ""
        self._mechanism: SaslMechanism | None = None
        self._has_headers = False
        self._began_again_at_ms: int | None = None

    @property
    def is_complete(self) -> bool:
        """True while requests of a principal may come."""
        return self.state is SaslState.COMPLETE

    @step
    def has_expired(self, now_ms: int) -> bool:
        """Whether the session is over: its next request ends the connection."""
        return self.session_expires_at_ms is not None and now_ms > self.session_expires_at_ms

    def begins_again(self, api_key: int, now_ms: int) -> bool:
        """Whether a request of a session is the beginning of another login.

        If so, its frame goes to ``on_frame``; the session's end is not looked at.
        """
        if api_key != _HANDSHAKE or self.session_expires_at_ms is None or not self.is_complete:
            return False
        began = self._began_again_at_ms
        if began is not None and now_ms - began < _REAUTHENTICATION_INTERVAL_MS:
            return False
        self._began_again_at_ms = now_ms
        self.state = SaslState.VERSIONED
        return True

    def on_frame(self, frame: bytes, now_ms: int) -> SaslOutcome:
        """A frame of a connection that is not logged in, without its length."""
        if len(frame) > self._context.settings.receive_bytes_max:
            return self._failed(f"a frame of {len(frame)} bytes during the login")
        try:
            if self.state in (SaslState.INITIAL, SaslState.VERSIONED):
                return self._on_first_requests(frame)
            if self.state is SaslState.AUTHENTICATE:
                if self._has_headers:
                    return self._on_authenticate(frame, now_ms)
                return self._on_bare_token(frame, now_ms)
        except (ProtocolError, NoResponse) as error:
            return self._failed(str(error) or "a login that cannot be read")
        return self._failed(f"a login again by another mechanism than {self._mechanism_name}")

    def _on_first_requests(self, frame: bytes) -> SaslOutcome:
        key = int.from_bytes(frame[:2], "big", signed=True)
        if len(frame) < _FIRST_BYTES or key not in (API_VERSIONS, _HANDSHAKE):
            return self._failed("neither ApiVersions nor SaslHandshake comes first")
        if key == _HANDSHAKE:
            return self._on_handshake(self._request(frame))
        if self.state is not SaslState.INITIAL:
            return self._failed("a second ApiVersions before the handshake")
        version = int.from_bytes(frame[2:4], "big", signed=True)
        if version not in self._versions(API_VERSIONS):
            rejected = unsupported_api_versions(frame, self._versions(API_VERSIONS))
            return SaslOutcome(response=rejected)
        request = self._request(frame)
        response = self._context.api_versions(request.body, request.version)
        if response.error_code == ErrorCode.NONE:
            self.state = SaslState.VERSIONED
        return SaslOutcome(response=request.framed(response))

    def _on_handshake(self, request: _Request) -> SaslOutcome:
        name = request.body.mechanism
        self._has_headers = self._has_headers or request.version >= 1
        if name not in self._mechanisms:
            unsupported = m.SaslHandshakeResponse(
                error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=self._mechanisms
            )
            # A connection that is logged in ends at once, without the response.
            response = request.framed(unsupported) if self.principal is None else None
            return self._failed(f"unsupported SASL mechanism {name!r}", response)
        if self.principal is not None and name != self._mechanism_name:
            self.state = SaslState.WRONG
        else:
            self._mechanism_name = name
            self._mechanism = self._new_mechanism(name)
            self.state = SaslState.AUTHENTICATE
        offered = m.SaslHandshakeResponse(mechanisms=self._mechanisms)
        return SaslOutcome(response=request.framed(offered))

    def _new_mechanism(self, name: str) -> SaslMechanism:
        if name == plain.NAME:
            return plain.Plain(self._context.settings.plain_passwords)
        if name == oauthbearer.NAME:
            return oauthbearer.OAuthBearer()
        context = self._context
        return scram.Scram(
            scram.MECHANISMS[name], context.accounts, context.new_nonce, context.rules
        )

    def _on_bare_token(self, token: bytes, now_ms: int) -> SaslOutcome:
        """A token without a header, after SaslHandshake v0. A failure has no response."""
        try:
            response, logged_in = self._evaluated(token, now_ms)
        except SaslFailure as failure:
            return self._failed(str(failure))
        if logged_in is not None:
            self._complete(logged_in, now_ms)
        return SaslOutcome(response=response)

    def _on_authenticate(self, frame: bytes, now_ms: int) -> SaslOutcome:
        request = self._request(frame)
        if request.body.api_key != _AUTHENTICATE:
            rejected = error_response(
                request.body, ErrorCode.ILLEGAL_SASL_STATE, version=request.version
            )
            name = type(request.body).__name__
            return self._failed(f"{name} in the middle of a login", request.framed(rejected))
        try:
            token, logged_in = self._evaluated(request.body.auth_bytes, now_ms)
        except SaslFailure as failure:
            again = "re-authentication" if self.principal is not None else "authentication"
            told = failure.told or (
                f"Authentication failed during {again} due to invalid credentials with SASL "
                f"mechanism {self._mechanism_name}"
            )
            rejected = m.SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=told
            )
            return self._failed(told, request.framed(rejected))
        lifetime_ms = self._complete(logged_in, now_ms) if logged_in is not None else 0
        response = m.SaslAuthenticateResponse(auth_bytes=token, session_lifetime_ms=lifetime_ms)
        return SaslOutcome(response=request.framed(response))

    def _evaluated(self, token: bytes, now_ms: int) -> tuple[bytes, LoggedIn | None]:
        """The mechanism's answer, and who has logged in by it.

        Errors:  SaslFailure; also for another principal than the session's.
        """
        assert self._mechanism is not None
        answer = self._mechanism.evaluate(token, now_ms)
        logged_in = self._mechanism.logged_in
        if logged_in is not None and self.principal not in (None, _principal(logged_in)):
            new, old = _principal(logged_in), self.principal
            raise SaslFailure(
                f"Cannot change principals during re-authentication from {old.type}.{old.name}: "
                f"{new.type}.{new.name}"
            )
        return answer, logged_in

    def _complete(self, logged_in: LoggedIn, now_ms: int) -> int:
        """Begin the session; its length in ms, 0 for one without an end."""
        self.state = SaslState.COMPLETE
        self.principal = _principal(logged_in)
        self.is_token_authenticated = logged_in.is_token
        lengths = []
        max_reauth_ms = self._context.settings.max_reauth_ms.get(self._mechanism_name, 0)
        if max_reauth_ms > 0:
            lengths.append(max_reauth_ms)
        if logged_in.expires_at_ms is not None:
            lengths.append(max(0, logged_in.expires_at_ms - now_ms))
        self.session_expires_at_ms = now_ms + min(lengths) if lengths else None
        return min(lengths, default=0)

    def _request(self, frame: bytes) -> _Request:
        """A request with its header.

        Errors:  ProtocolError.
        """
        key, version = (int.from_bytes(frame[at : at + 2], "big", signed=True) for at in (0, 2))
        api = APIS.get(key)
        if len(frame) < _FIRST_BYTES or api is None or version not in self._versions(key):
            raise ProtocolError("SASL", "", f"api key {key} v{version} is not served")
        header, end = decode_prefix(m.RequestHeader, frame, api.request_header_version(version))
        return _Request(decode(api.request, frame[end:], version), version, header.correlation_id)

    def _versions(self, key: int) -> range:
        return APIS[key].versions(self._context.rules)

    def _failed(self, reason: str, response: bytes | None = None) -> SaslOutcome:
        self.state = SaslState.FAILED
        return SaslOutcome(response=response, closes=True, reason=reason)


def unsupported_api_versions(frame: bytes, versions: range) -> bytes:
    """The response to an ApiVersions of an unknown version: v0, with its own versions (KIP-511)."""
    own = m.ApiVersionsResponse.ApiVersion(
        api_key=API_VERSIONS, min_version=versions[0], max_version=versions[-1]
    )
    response = m.ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=(own,))
    return frame[4:8] + encode(response, 0)


def _principal(logged_in: LoggedIn) -> KafkaPrincipal:
    return KafkaPrincipal(USER, logged_in.user)
