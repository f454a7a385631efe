"""Who sent a request to a group coordinator, and where its response goes."""

from __future__ import annotations

from typing import Any

from minicluster.values import dataclass


@dataclass(frozen=True, slots=True)
class ClientContext:
    """Shapes: client_host is an address after a slash, as Java writes it."""

    client_id: str = ""
    client_host: str = "/127.0.0.1"


@dataclass(frozen=True, slots=True)
class Context:
    """The request that an operation responds to, and its client."""

    token: Any
    client: ClientContext
