"""The server's side of a SASL mechanism, whichever it is."""

from __future__ import annotations

from typing import Protocol

from minicluster.values import Value


class SaslFailure(Exception):
    """The exchange has failed. The text is for the client; without one he gets the general one.

    Kafka tells a SaslAuthenticationException as it is, and hides every other SaslException.
    """

    def __init__(self, told: str | None = None) -> None:
        super().__init__(told or "the exchange has failed")
        self.told = told


class NoResponse(Exception):
    """The connection ends without an answer: Kafka as shipped meets an unexpected exception."""


class LoggedIn(Value, kw_only=True):
    """Who has logged in.

    Shapes:  expires_at_ms: the end of the credential itself, as that of a token; None has no end.
    """

    user: str
    expires_at_ms: int | None = None
    is_token: bool = False


class SaslMechanism(Protocol):
    """One exchange. ``logged_in`` is set when it is complete."""

    logged_in: LoggedIn | None

    def evaluate(self, token: bytes, now_ms: int) -> bytes:
        """The server's answer to a token of the client.

        Errors:  SaslFailure, NoResponse.
        """
        ...
