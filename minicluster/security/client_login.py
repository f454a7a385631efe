"""A login by SASL PLAIN as its client: a node of this process at one of another.

    SaslHandshake     →  the mechanisms
    SaslAuthenticate  →  logged in, or why not

Source:  SaslClientAuthenticator (KIP-43, KIP-152).
"""

from __future__ import annotations

from typing import Any

from minicluster.protocol import ErrorCode, decode, encode
from minicluster.protocol import messages as m
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import decode_prefix
from minicluster.security.mechanism import SaslFailure
from minicluster.security.plain import NAME as PLAIN
from minicluster.values import Value

_VERSION = 1  # of both requests: tokens have headers


class Credentials(Value):
    """Who logs in."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Credentials({self.user!r})"


class ClientLogin:
    """One login. Frames are without their length.

    Errors:  ``on_response`` raises ProtocolError for a frame that is none, SaslFailure with the
             server's reason for a login that it rejects.
    """

    def __init__(self, credentials: Credentials) -> None:
        token = f"\0{credentials.user}\0{credentials.password}".encode()
        self._requests: list[Any] = [
            m.SaslHandshakeRequest(mechanism=PLAIN),
            m.SaslAuthenticateRequest(auth_bytes=token),
        ]

    @property
    def is_complete(self) -> bool:
        """The server has taken the last request."""
        return not self._requests

    def frame(self) -> bytes:
        """The request that is to be sent now."""
        request = self._requests[0]
        header = m.RequestHeader(
            request_api_key=request.api_key, request_api_version=_VERSION, client_id=""
        )
        version = APIS[request.api_key].request_header_version(_VERSION)
        return encode(header, version) + encode(request, _VERSION)

    def on_response(self, frame: bytes) -> None:
        """The response to that request."""
        request = self._requests.pop(0)
        api = APIS[request.api_key]
        _, end = decode_prefix(m.ResponseHeader, frame, api.response_header_version(_VERSION))
        response: Any = decode(api.response, frame[end:], _VERSION)
        if response.error_code != ErrorCode.NONE:
            name = ErrorCode.name_of(response.error_code)
            raise SaslFailure(getattr(response, "error_message", None) or f"{api.name}: {name}")
