"""The peers that can take a request now: one per node id, and a back-off after failures.

One request per node id, of any API: so a follower has no Fetch in flight beside its FetchSnapshot,
and a voter gets no second Vote beside the first. A success frees the id at once, a failure after
the back-off, silence after the request timeout. A response that comes after that timeout still
counts, as in Kafka, as long as nobody has looked at its entry: an entry exists while a request is
outstanding or its node is backed off, and is dropped, once that is over, when it is looked at.

Source:  RequestManager, ConnectionState; order of the scan: that of Java's HashMap over the ids
         as text, which decides which overdue entries a scan drops before it stops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from minicluster.java_order import hash_map_order, string_hash
from minicluster.quorum.state.voters import Node


class Connection(Struct):
    """The outstanding request to one node id, or its back-off."""

    correlation_id: int | None = None
    request_type: type = object
    sent_ms: int = 0
    failed_ms: int | None = None


class RequestManager:
    """The outstanding requests and back-offs of one node."""

    def __init__(
        self,
        *,
        bootstrap_servers: Sequence[Node],
        retry_backoff_ms: int,
        request_timeout_ms: int,
        bootstrap_index: Callable[[int], int],
    ) -> None:
        self.bootstrap_servers = tuple(bootstrap_servers)
        self._retry_backoff_ms = retry_backoff_ms
        self.request_timeout_ms = request_timeout_ms
        self._bootstrap_index = bootstrap_index
        self._connections: dict[int, Connection] = {}

    # --- state -----------------------------------------------------------------------------

    @property
    def are_any(self) -> bool:
        """A request is outstanding, or a node is backed off."""
        return bool(self._connections)

    def has_timed_out(self, node_id: int, now_ms: int) -> bool:
        """A request to the node has waited for the whole request timeout."""
        connection = self._connections.get(node_id)
        return connection is not None and self._is_overdue(connection, now_ms)

    def is_backing_off(self, node_id: int, now_ms: int) -> bool:
        """The node gets no request yet, after a failure."""
        connection = self._connections.get(node_id)
        return (
            connection is not None
            and connection.failed_ms is not None
            and now_ms < connection.failed_ms + self._retry_backoff_ms
        )

    def is_ready(self, node_id: int, now_ms: int) -> bool:
        """The node can take a request; an entry that has run out is dropped."""
        connection = self._connections.get(node_id)
        if connection is None:
            return True
        if self._is_overdue(connection, now_ms) or self._is_backed_off(connection, now_ms):
            del self._connections[node_id]
            return True
        return False

    def wait_ms(self, node_id: int, now_ms: int) -> int:
        """The wait until the node can take a request."""
        connection = self._connections.get(node_id)
        if connection is None:
            return 0
        return max(0, self._free_at_ms(connection) - now_ms)

    def has_any_in_flight(self, now_ms: int) -> bool:
        """Any request is outstanding; entries passed on the way that have run out are dropped."""
        if not self._connections:
            return False
        for node_id in self._scan_order():
            connection = self._connections[node_id]
            if self._is_overdue(connection, now_ms) or self._is_backed_off(connection, now_ms):
                del self._connections[node_id]
            elif connection.correlation_id is not None:
                return True
        return False

    def find_ready_bootstrap_server(self, now_ms: int) -> Node | None:
        """A bootstrap server, from a drawn index on; none while any request is outstanding."""
        if not self.bootstrap_servers or self.has_any_in_flight(now_ms):
            return None
        first = self._bootstrap_index(len(self.bootstrap_servers))
        for step in range(len(self.bootstrap_servers)):
            node = self.bootstrap_servers[(first + step) % len(self.bootstrap_servers)]
            if self.is_ready(node.id, now_ms):
                return node
        return None

    def bootstrap_wait_ms(self, now_ms: int) -> int | None:
        """The wait until a bootstrap server can take a request; None: until a response comes."""
        if not self.bootstrap_servers:
            return None
        waits = [
            self._free_at_ms(c) - now_ms
            for c in self._connections.values()
            if c.correlation_id is not None
        ]
        if waits:
            return min((wait for wait in waits if wait > 0), default=0)
        return min(self.wait_ms(node.id, now_ms) for node in self.bootstrap_servers)

    def outstanding(self, correlation_id: int) -> tuple[int, type] | None:
        """The node id and type of an outstanding request, late or not; None if it was dropped."""
        for node_id, connection in self._connections.items():
            if connection.correlation_id == correlation_id:
                return node_id, connection.request_type
        return None

    # --- events -----------------------------------------------------------------------------

    def on_sent(self, node_id: int, correlation_id: int, request_type: type, now_ms: int) -> None:
        """A request was sent."""
        self._connections[node_id] = Connection(correlation_id, request_type, now_ms)

    def on_result(self, node_id: int, correlation_id: int, success: bool, now_ms: int) -> None:
        """Its response was handled; a request that a change of role has dropped stays dropped."""
        connection = self._connections.get(node_id)
        if connection is None or connection.correlation_id != correlation_id:
            return
        if success:
            del self._connections[node_id]
        else:
            connection.correlation_id = None
            connection.failed_ms = now_ms

    def drop(self, node_id: int) -> None:
        """Forget the outstanding request to one node."""
        self._connections.pop(node_id, None)

    def reset(self) -> None:
        """Forget all outstanding requests and back-offs."""
        self._connections.clear()

    # --- inside -----------------------------------------------------------------------------

    def _free_at_ms(self, connection: Connection) -> int:
        if connection.failed_ms is not None:
            return connection.failed_ms + self._retry_backoff_ms
        return connection.sent_ms + self.request_timeout_ms

    def _is_overdue(self, connection: Connection, now_ms: int) -> bool:
        return (
            connection.correlation_id is not None
            and now_ms >= connection.sent_ms + self.request_timeout_ms
        )

    def _is_backed_off(self, connection: Connection, now_ms: int) -> bool:
        return (
            connection.failed_ms is not None
            and now_ms >= connection.failed_ms + self._retry_backoff_ms
        )

    def _scan_order(self) -> list[int]:
        return hash_map_order(self._connections, lambda node_id: string_hash(str(node_id)))
