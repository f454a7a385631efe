"""Who sent a request to a group coordinator, and where its response goes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minicluster.values import Value


class ClientContext(Value):
    """Shapes:  client_host: an address after a slash, as Java writes it. may_describe: whether a
    topic may be shown to the client, who subscribes to no others by a pattern.
    """

    client_id: str = ""
    client_host: str = "/127.0.0.1"
    may_describe: Callable[[str], bool] = lambda topic: True


class Context(Value):
    """The request that an operation responds to, and its client."""

    token: Any
    client: ClientContext
