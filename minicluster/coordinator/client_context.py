"""The client behind a request, as far as a coordinator keeps it.

Source:  AuthorizableRequestContext.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClientContext:
    """Shapes: client_host is an address after a slash, as Java writes it."""

    client_id: str = ""
    client_host: str = "/127.0.0.1"
