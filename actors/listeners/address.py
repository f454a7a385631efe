"""The place where a cluster listens, as its caller names it."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from minicluster.errors import UserError
from minicluster.security.protocols import LISTENER
from minicluster.values import Value

LOOPBACK = "127.0.0.1"
PORT_MAX = 65_535
DEFAULT_PORT = 9_092


class ListenAddress(Value, kw_only=True):
    """The place where brokers listen: the first at the port, the others at the ports after it.

    The second listener of each broker has the ports after those of the first. Controllers listen at
    any free ports of the same host.

    Shapes:  host: a name or an address of this machine; port: 0 for any free ports; advertised:
             the host that responses name (default: the host itself); listeners: as MiniCluster
             takes them, a protocol or several names.
    Errors:  UserError for a port out of range, and for the address of every interface without a
             host to advertise: no client connects to 0.0.0.0.
    """

    host: str = LOOPBACK
    port: int = 0
    advertised: str | None = None
    listeners: str | Sequence[str] = LISTENER

    def __post_init__(self) -> None:
        if not 0 <= self.port <= PORT_MAX:
            raise UserError(f"port: {self.port} is not from 0 to {PORT_MAX}")
        if self.advertised is None and _is_wildcard(self.host):
            raise UserError(
                f"{self.host} is every address of this machine; name the one that clients connect "
                "to as well, to be advertised"
            )

    def of_broker(self, index: int) -> tuple[str, int]:
        """The address of a broker, by its place among the brokers.

        Errors:  UserError where the ports end.
        """
        port = self.port + index if self.port else 0
        if port > PORT_MAX:
            raise UserError(f"port: {self.port} leaves no port for broker {index + 1}")
        return self.host, port


def _is_wildcard(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_unspecified
    except ValueError:
        return not host
