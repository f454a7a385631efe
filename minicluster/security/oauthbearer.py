"""OAUTHBEARER with unsecured tokens, for tests: a JWT without a signature says who it is (KIP-255).

    client   n,,^Aauth=Bearer HEADER.CLAIMS.^A^A
    server   nothing, or {"status":"invalid_token"}, after which the client sends ^A and is told
             that he has failed

A token names its user (``sub``) and its end (``exp``), perhaps its beginning (``iat``), in seconds
since 1970.

Source:  RFC 7628; OAuthBearerSaslServer, OAuthBearerClientInitialResponse, OAuthBearerUnsecuredJws,
         OAuthBearerUnsecuredValidatorCallbackHandler.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from minicluster.security.mechanism import LoggedIn, SaslFailure

NAME = "OAUTHBEARER"
_KEEP_ON = b"\x01"
_INVALID = '{"status":"invalid_token"}'
_NAME = r"(?:[\x01-\x2b\x2d-\x3c\x3e-\x7f]|=2C|=3D)+"
_PAIRS = "(?:[A-Za-z]+=[\\x21-\\x7e \t\r\n]+\x01)*"
_INITIAL = re.compile(f"n,(?:a=(?P<authorization_id>{_NAME}))?,\x01(?P<pairs>{_PAIRS})\x01")
_AUTH = re.compile(r"(?i:bearer) +(?P<token>[-_~+/.a-zA-Z0-9]+=*)")


class InvalidToken(Exception):
    """A token that nobody may log in with, with the reason."""


class OAuthBearer:
    """One exchange."""

    def __init__(self) -> None:
        self.logged_in: LoggedIn | None = None
        self._rejected = False

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        """Log in whom a token names.

        Errors:  SaslFailure for a message that is none, another authorization id than the token's
                 user, and once a client has seen why its token was rejected.
        """
        if self._rejected and token == _KEEP_ON:
            raise SaslFailure(_INVALID)
        match = _INITIAL.fullmatch(token.decode(errors="replace"))
        if match is None:
            raise SaslFailure
        pairs = dict(pair.split("=", 1) for pair in match["pairs"].split("\x01") if pair)
        auth = _AUTH.fullmatch(pairs.get("auth", ""))
        if auth is None:
            raise SaslFailure
        try:
            logged_in = user_of(auth["token"], now_ms)
        except InvalidToken:
            self._rejected = True
            return _INVALID.encode()
        authorization_id = match["authorization_id"] or logged_in.user
        if authorization_id != logged_in.user:
            raise SaslFailure(
                f"Authentication failed: Client requested an authorization id ({authorization_id}) "
                f"that is different from the token's principal name ({logged_in.user})"
            )
        self.logged_in = logged_in
        return b""


def user_of(token: str, now_ms: int) -> LoggedIn:
    """The user whom an unsecured token names, and the token's end.

    Errors:  InvalidToken.
    """
    parts = token.split(".")
    if len(parts) != 3:
        raise InvalidToken("a token has three parts with dots between them")
    header, claims = (_object(part) for part in parts[:2])
    if header.get("alg") != "none" or parts[2]:
        raise InvalidToken("an unsecured token has no algorithm and no signature")
    expires, issued = (_seconds(claims, name) for name in ("exp", "iat"))
    if expires is None:
        raise InvalidToken("the token has no end")
    user = claims.get("sub")
    if not isinstance(user, str) or not user.strip():
        raise InvalidToken("the token names nobody")
    if issued is not None and (issued * 1_000 > now_ms or expires <= issued):
        raise InvalidToken("the token has not begun")
    if now_ms >= expires * 1_000:
        raise InvalidToken("the token has expired")
    return LoggedIn(user=user, expires_at_ms=round(expires * 1_000))


def unsecured_token(user: str, *, issued_at_ms: int, expires_at_ms: int) -> str:
    """A token that names a user, as a client of a test sends it."""
    claims = {"sub": user, "iat": issued_at_ms / 1_000, "exp": expires_at_ms / 1_000}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def _object(part: str) -> dict[str, Any]:
    try:
        decoded = base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        value = json.loads(decoded)
    except (binascii.Error, ValueError) as error:
        raise InvalidToken(f"a part is no JSON in base64: {error}") from error
    if not isinstance(value, dict):
        raise InvalidToken("a part is no JSON object")
    return value


def _seconds(claims: dict[str, Any], name: str) -> float | None:
    value = claims.get(name)
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise InvalidToken(f"{name} is no number")
