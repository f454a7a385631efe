"""The messages between a client and the ZooKeeper server, as values: no bytes of ZooKeeper's own.

Source:  org.apache.zookeeper.proto (ConnectRequest, RequestHeader, WatcherEvent).
"""

from __future__ import annotations

from minicluster.values import dataclass
from minicluster.zookeeper.server.operations import Request, Result
from minicluster.zookeeper.server.watches import WatchEvent

VERSION = 0


@dataclass(frozen=True, slots=True)
class ZooKeeperConnectRequest:
    """Open a session (0), or connect again to one."""

    session: int
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class ZooKeeperConnectResponse:
    """The session; 0 if the requested one has expired."""

    session: int


@dataclass(frozen=True, slots=True)
class ZooKeeperOperationRequest:
    """Read or write."""

    session: int
    request: Request


@dataclass(frozen=True, slots=True)
class ZooKeeperOperationResponse:
    """The result of an operation."""

    result: Result


@dataclass(frozen=True, slots=True)
class ZooKeeperPingRequest:
    """Prolong a session."""

    session: int


@dataclass(frozen=True, slots=True)
class ZooKeeperCloseRequest:
    """End a session."""

    session: int


@dataclass(frozen=True, slots=True)
class ZooKeeperWatchRequest:
    """A watch has fired; the response acknowledges it."""

    session: int
    event: WatchEvent


@dataclass(frozen=True, slots=True)
class ZooKeeperWatchResponse:
    """The client has the event."""
