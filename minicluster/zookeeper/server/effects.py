"""The effects of the ZooKeeper server, beside responses and timers."""

from __future__ import annotations

from minicluster.effects import Effect
from minicluster.zookeeper.server.operations import Code, Operation
from minicluster.zookeeper.server.tree import Change
from minicluster.zookeeper.server.watches import WatchEvent


class NotifyWatch(Effect):
    """Send a watch event to the client of a session."""

    session: int
    event: WatchEvent


class LogTransaction(Effect):
    """Append a transaction to ZooKeeper's log.

    Shapes:  kind is create_session, close_session or write; a write has its operations, one code
             for each, and what has changed; close_session has the ephemeral znodes that went.
    """

    zxid: int
    at_ms: int
    session: int
    kind: str
    operations: tuple[Operation, ...] = ()
    codes: tuple[Code, ...] = ()
    changes: tuple[Change, ...] = ()
    timeout_ms: int = 0
