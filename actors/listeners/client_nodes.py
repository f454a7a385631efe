"""Kafka's clients as nodes of the network: one node for each ``client.id``, with an id below -1.

Peers choose their ``client.id``. A node without connections that no test has named is therefore
forgotten when as many others were left after it. Ids are never given twice.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterable

FIRST_CLIENT = -2  # ids descend from here; -1 is the cluster's own client
LEFT_CLIENTS_MAX = 1_000  # remembered without a connection


class ClientNodes:
    """The nodes by ``client.id``, in the order in which they were named or sent a request."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._ids = itertools.count(FIRST_CLIENT, -1)
        self._nodes: dict[str, int] = {}
        self._client_ids: dict[int, str] = {}
        self._connections: dict[int, int] = {}
        self._kept: set[int] = set()
        # Without a connection and not kept, the one that left longest ago first.
        self._left = OrderedDict[int, None]()

    @property
    def ids(self) -> tuple[int, ...]:
        """The nodes of the clients that have sent a request."""
        with self._lock:
            return tuple(self._connections)

    @property
    def known(self) -> dict[int, str]:
        """The ``client.id`` of each node."""
        with self._lock:
            return dict(self._client_ids)

    def node(self, client_id: str) -> int:
        """The node of a client that a test names, maybe before it connects; it is kept."""
        with self._lock:
            node_id = self._node(client_id)
            self._keep(node_id)
            return node_id

    def keep(self, node_ids: Iterable[int]) -> None:
        """Keep the nodes that a test has a handle of, or whose links it disturbs."""
        with self._lock:
            for node_id in node_ids:
                if node_id in self._client_ids:
                    self._keep(node_id)

    def sender(self, client_id: str, before: int | None) -> int:
        """The node of a connection's request, by its ``client.id``.

        Shapes:  before: the node of the connection's requests so far, None at the first one.
        """
        with self._lock:
            node_id = self._node(client_id)
            if node_id != before:
                self._connections[node_id] = self._connections.get(node_id, 0) + 1
                self._left.pop(node_id, None)
                if before is not None:
                    self._disconnect(before)
            return node_id

    def disconnected(self, node_id: int) -> None:
        """Count off a connection that has sent a request."""
        with self._lock:
            self._disconnect(node_id)

    def is_connected(self, node_id: int) -> bool:
        """True while the client has a connection on which it has sent a request."""
        return self._connections.get(node_id, 0) > 0

    def _node(self, client_id: str) -> int:
        node_id = self._nodes.get(client_id)
        if node_id is None:
            node_id = self._nodes[client_id] = next(self._ids)
            self._client_ids[node_id] = client_id
        return node_id

    def _keep(self, node_id: int) -> None:
        self._kept.add(node_id)
        self._left.pop(node_id, None)

    def _disconnect(self, node_id: int) -> None:
        self._connections[node_id] -= 1
        if self._connections[node_id] or node_id in self._kept:
            return
        self._left[node_id] = None
        if len(self._left) > LEFT_CLIENTS_MAX:
            oldest, _ = self._left.popitem(last=False)
            del self._connections[oldest]
            del self._nodes[self._client_ids.pop(oldest)]
