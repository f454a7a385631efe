"""The messages between a client and the ZooKeeper server, as values: no bytes of ZooKeeper's own.

Source:  org.apache.zookeeper.proto (ConnectRequest, RequestHeader, WatcherEvent).
"""

from __future__ import annotations

from minicluster.values import Value
from minicluster.zookeeper.server.operations import Request, Result
from minicluster.zookeeper.server.watches import WatchEvent

VERSION = 0


class ZooKeeperConnectRequest(Value):
    """Open a session (0), or connect again to one."""

    session: int
    timeout_ms: int


class ZooKeeperConnectResponse(Value):
    """The session; 0 if the requested one has expired."""

    session: int


class ZooKeeperOperationRequest(Value):
    """Read or write."""

    session: int
    request: Request


class ZooKeeperOperationResponse(Value):
    """The result of an operation."""

    result: Result


class ZooKeeperPingRequest(Value):
    """Prolong a session."""

    session: int


class ZooKeeperCloseRequest(Value):
    """End a session."""

    session: int


class ZooKeeperWatchRequest(Value):
    """A watch has fired; the response acknowledges it."""

    session: int
    event: WatchEvent


class ZooKeeperWatchResponse(Value):
    """The client has the event."""
