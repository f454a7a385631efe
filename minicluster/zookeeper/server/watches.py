"""Watches: each fires once, to the sessions that have set it.

Source:  org.apache.zookeeper.server.WatchManager, DataTree.
"""

from __future__ import annotations

from enum import Enum

from minicluster.values import Value
from minicluster.zookeeper.server.tree import Change, parent_of


class WatchKind(Enum):
    """Types of a watch event, with ZooKeeper's names."""

    NODE_CREATED = "NodeCreated"
    NODE_DELETED = "NodeDeleted"
    NODE_DATA_CHANGED = "NodeDataChanged"
    NODE_CHILDREN_CHANGED = "NodeChildrenChanged"


class WatchEvent(Value):
    """The event of a watch, at the path that was watched."""

    kind: WatchKind
    path: str


class Watches:
    """The watches of all sessions, on data and on children."""

    def __init__(self) -> None:
        self._data: dict[str, dict[int, None]] = {}
        self._children: dict[str, dict[int, None]] = {}

    def watch_data(self, path: str, session: int) -> None:
        """Fire at the creation, change or deletion of a znode."""
        self._data.setdefault(path, {})[session] = None

    def watch_children(self, path: str, session: int) -> None:
        """Fire when a znode gets or loses a child, or at its deletion."""
        self._children.setdefault(path, {})[session] = None

    def forget(self, session: int) -> None:
        """Remove all watches of a session."""
        for watched in (self._data, self._children):
            for sessions in watched.values():
                sessions.pop(session, None)

    def fire(self, change: Change) -> list[tuple[int, WatchEvent]]:
        """The events of one change, by session; their watches are gone."""
        path = change.path
        fired: dict[tuple[int, WatchEvent], None] = {}
        if change.kind == "set":
            self._take(self._data, path, WatchKind.NODE_DATA_CHANGED, path, fired)
            return list(fired)
        if change.kind == "create":
            self._take(self._data, path, WatchKind.NODE_CREATED, path, fired)
        else:
            self._take(self._data, path, WatchKind.NODE_DELETED, path, fired)
            self._take(self._children, path, WatchKind.NODE_DELETED, path, fired)
        above = parent_of(path)
        self._take(self._children, above, WatchKind.NODE_CHILDREN_CHANGED, above, fired)
        return list(fired)

    @staticmethod
    def _take(
        watched: dict[str, dict[int, None]],
        key: str,
        kind: WatchKind,
        path: str,
        fired: dict[tuple[int, WatchEvent], None],
    ) -> None:
        for session in watched.pop(key, ()):
            fired[(session, WatchEvent(kind, path))] = None
