"""A listener's side of TLS: its certificate can end, and be renewed, while the cluster runs."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl  # OpenSSL takes a tenth of the import of a cluster, most of which have no TLS


class ServerTls:
    """The context of new connections; those that are open keep theirs.

    Shapes:  make: a context whose certificate has expired, or not; has_expired: as it is now.
    """

    def __init__(
        self, make: Callable[[bool], ssl.SSLContext], has_expired: Callable[[], bool]
    ) -> None:
        self._make, self._has_expired = cache(make), has_expired

    @property
    def context(self) -> ssl.SSLContext:
        """That of a connection which begins now."""
        return self._make(self._has_expired())
