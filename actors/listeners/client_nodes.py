"""Kafka's clients as nodes of the network: one node for each ``client.id``, with an id below -1."""

from __future__ import annotations

import threading

FIRST_CLIENT = -2  # ids descend from here; -1 is the cluster's own client


class ClientNodes:
    """The nodes by ``client.id``, in the order in which they were named or sent a request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes: dict[str, int] = {}
        self._connections: dict[int, int] = {}

    @property
    def ids(self) -> tuple[int, ...]:
        """The nodes of the clients that have sent a request."""
        return tuple(self._connections)

    @property
    def known(self) -> dict[int, str]:
        """The ``client.id`` of each node."""
        with self._lock:
            return {node_id: client_id for client_id, node_id in self._nodes.items()}

    def node(self, client_id: str) -> int:
        """The node of a client; a test may name it before it connects."""
        with self._lock:
            return self._nodes.setdefault(client_id, FIRST_CLIENT - len(self._nodes))

    def connected(self, node_id: int, change: int) -> None:
        """Count a connection that has sent its first request, or that has ended."""
        self._connections[node_id] = self._connections.get(node_id, 0) + change

    def is_connected(self, node_id: int) -> bool:
        """True while the client has a connection on which it has sent a request."""
        return self._connections.get(node_id, 0) > 0
