"""PLAIN: an authorization id, a user and a password, with zeros between them (RFC 4616).

Source:  PlainSaslServer, PlainServerCallbackHandler.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping

from minicluster.security.mechanism import LoggedIn, SaslFailure

NAME = "PLAIN"
_FIELDS = 3
_DIFFERENT_ID = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class Plain:
    """One exchange: one token decides it."""

    def __init__(self, passwords: Mapping[str, str]) -> None:
        self.logged_in: LoggedIn | None = None
        self._passwords = passwords

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        """Log a user in whose password is right.

        Errors:  SaslFailure, whose text tells the client what is wrong. The password comes before
                 the authorization id.
        """
        fields = token.decode(errors="replace").split("\0", _FIELDS)
        if len(fields) != _FIELDS:
            raise SaslFailure(
                f"Invalid SASL/PLAIN response: expected {_FIELDS} tokens, got {len(fields)}"
            )
        authorization_id, user, password = fields
        if not user:
            raise SaslFailure("Authentication failed: username not specified")
        if not password:
            raise SaslFailure("Authentication failed: password not specified")
        expected = self._passwords.get(user)
        if expected is None or not hmac.compare_digest(expected.encode(), password.encode()):
            raise SaslFailure("Authentication failed: Invalid username or password")
        if authorization_id not in ("", user):
            raise SaslFailure(_DIFFERENT_ID)
        self.logged_in = LoggedIn(user=user)
        return b""
