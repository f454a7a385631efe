"""ZooKeeper's transaction log, one JSON object per operation, as recordings of real runs have it.

Shapes:  zxid, ms, session, broker, op (create, set, delete, check, error, create_session,
         close_session), path, version, czxid, ephemeral, raw, json, multi [i, n], error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.actors.recording.problems import Problems
from minicluster.trace import ZNODES

if TYPE_CHECKING:  # loaded by clusters on ZooKeeper
    from minicluster.zookeeper.server.effects import LogTransaction
    from minicluster.zookeeper.server.tree import Change


class ZooKeeperLog:
    """All transactions of a run, in order of their zxids."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self.lines: list[dict[str, Any]] = []
        self.follower: Callable[[Mapping[str, Any]], None] | None = None

    def append(self, transaction: LogTransaction, broker: int | None) -> None:
        """Add a transaction of a broker's session; None while the session is being created."""
        before = len(self.lines)
        with self._problems.noted("the record of ZooKeeper's log", ZNODES):
            self._append(transaction, broker)
        if self.follower is not None:
            for line in self.lines[before:]:
                self.follower(line)

    def _append(self, transaction: LogTransaction, broker: int | None) -> None:
        head = {
            "zxid": transaction.zxid,
            "ms": transaction.at_ms,
            "session": hex(transaction.session),
            "broker": broker,
        }
        if transaction.kind != "write":
            line = {**head, "op": transaction.kind}
            if transaction.kind == "create_session":
                line["timeout_ms"] = transaction.timeout_ms
            elif transaction.changes:
                line["deleted"] = [change.path for change in transaction.changes]
            self.lines.append(line)
            return
        from minicluster.zookeeper.server.operations import Check, Code

        count = len(transaction.operations)
        changes = iter(transaction.changes)
        for place, (operation, code) in enumerate(
            zip(transaction.operations, transaction.codes, strict=True), 1
        ):
            line = {**head, **({"multi": [place, count]} if count > 1 else {})}
            if code is not Code.OK:
                line |= {"op": "error", "error": code.name}
            elif isinstance(operation, Check):
                line |= {"op": "check", "path": operation.path, "version": operation.version}
            elif transaction.changes:
                line |= _changed(next(changes))
            else:
                line |= {"op": type(operation).__name__.lower(), "path": operation.path}
            self.lines.append(line)

    def write(self, folder: Path) -> None:
        """Write the log into a run's folder."""
        from minicluster.verify.evidence.znode_log import LOG_PATH

        path = folder / LOG_PATH
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(self._text()), encoding="utf-8")

    def _text(self) -> Iterator[str]:
        for line in self.lines:
            yield json.dumps(line, separators=(",", ":")) + "\n"


def _changed(change: Change) -> dict[str, Any]:
    line: dict[str, Any] = {
        "op": change.kind,
        "path": change.path,
        "version": change.version,
        "czxid": change.czxid,
    }
    if change.ephemeral:
        line["ephemeral"] = True
    if change.data is not None:
        line["raw"] = change.data.decode()
        line["json"] = _parsed(line["raw"])
    return line


def _parsed(raw: str | None) -> Any:
    """The JSON of a znode, None where a client has written another text."""
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return None
