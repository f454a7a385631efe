"""The limits that a broker sets to its connections, and their counts.

``max.connections`` makes the next client wait until another has left, ``max.connections.per.ip``
ends its connection at once. The first three can change while the broker runs.

Source:  SocketServer.ConnectionQuotas, Selector.IdleExpiryManager.
Leaves out: max.connection.creation.rate, limits of one listener (listener.name.….max.connections).
"""

from __future__ import annotations

import socket
from collections import Counter
from collections.abc import Mapping

from msgspec import field

from minicluster.configs.effective import BrokerLevels
from minicluster.values import Value

NO_IDLE_TIMEOUT_MS = -1


class ConnectionLimits(Value, kw_only=True):
    """The limits of one broker by its configs."""

    max_connections: int
    max_connections_per_ip: int
    overrides: Mapping[str, int] = field(default_factory=dict)  # by address
    max_request_bytes: int
    max_idle_ms: int

    @classmethod
    def of(cls, levels: BrokerLevels) -> ConnectionLimits:
        """The limits that hold now."""

        def number(name: str) -> int:
            return int(levels.value(name) or 0)

        return cls(
            max_connections=number("max.connections"),
            max_connections_per_ip=number("max.connections.per.ip"),
            overrides=_by_address(levels.value("max.connections.per.ip.overrides") or ""),
            max_request_bytes=number("socket.request.max.bytes"),
            max_idle_ms=number("connections.max.idle.ms"),
        )

    def of_address(self, address: str) -> int:
        """The number of connections that an address may have."""
        return self.overrides.get(address, self.max_connections_per_ip)


def _by_address(overrides: str) -> dict[str, int]:
    """The limits of ``host:count,…`` by the addresses of the hosts; unknown hosts have none."""
    limits: dict[str, int] = {}
    for entry in filter(None, (part.strip() for part in overrides.split(","))):
        host, _, count = entry.rpartition(":")
        try:
            resolved = socket.getaddrinfo(host.strip("[]"), None, type=socket.SOCK_STREAM)
            limits |= {str(each[4][0]): int(count) for each in resolved}
        except (OSError, ValueError):
            continue
    return limits


class ConnectionQuotas:
    """The connections of each broker, and of each address to it."""

    def __init__(self) -> None:
        self._of_node: Counter[int] = Counter()
        self._of_address: Counter[tuple[int, str]] = Counter()

    def has_slot(self, node_id: int, limits: ConnectionLimits) -> bool:
        """True if the broker takes one more connection now (waitForConnectionSlot)."""
        return self._of_node[node_id] < limits.max_connections

    def add(self, node_id: int, address: str, limits: ConnectionLimits) -> bool:
        """Count a connection; False where its address has all that it may have."""
        if self._of_address[node_id, address] >= limits.of_address(address):
            return False
        self._of_node[node_id] += 1
        self._of_address[node_id, address] += 1
        return True

    def remove(self, node_id: int, address: str) -> None:
        """Count a connection off."""
        for counter, key in ((self._of_node, node_id), (self._of_address, (node_id, address))):
            counter[key] -= 1  # type: ignore[index]
            if not counter[key]:  # type: ignore[index]
                del counter[key]
