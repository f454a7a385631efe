"""The two ends of a connection at the side of its node: what moves its bytes, and what takes them.

TLS stands between them and is both: a connection to its carrier, a carrier to its connection.
"""

from __future__ import annotations

from typing import Protocol


class Carrier(Protocol):
    """The bytes of one connection, at the side of its node."""

    @property
    def address(self) -> str:
        """The client's, as limits count it."""

    @property
    def client(self) -> str | None:
        """The app inside the simulation; None: a client beyond a socket, by its ``client.id``."""

    def write(self, data: bytes) -> bool:
        """Send bytes; True when all has left. Else ``on_written`` comes when it has."""

    def reads(self, wanted: bool) -> None:
        """Let bytes come, or leave them with the client."""

    def end(self, *, reset: bool) -> None:
        """End the connection: with FIN, or with RST whatever was read."""


class Carried(Protocol):
    """The receiver of a carrier's bytes."""

    @property
    def is_open(self) -> bool: ...

    def touch(self) -> None:
        """Bytes move."""

    def on_bytes(self, data: bytes) -> None:
        """Bytes of the client, any number."""

    def on_end_of_stream(self) -> None:
        """The client sends nothing more."""

    def on_written(self) -> None:
        """The carrier has sent the rest, which it could not send at once."""

    def drop(self, *, reset: bool = False) -> None:
        """End the connection."""
