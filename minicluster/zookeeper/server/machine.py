"""A ZooKeeper server: it orders all writes by zxid and notifies watches.

How to drive it::

    machine = ZooKeeperMachine(tick_ms=500)
    for effect in machine.on_connect(token, session, timeout_ms, now_ms): …   # session 0: a new one
    for effect in machine.on_request(token, session, request, now_ms): …
    for effect in machine.on_ping(token, session, now_ms): …
    for effect in machine.on_close(token, session, now_ms): …
    for effect in machine.on_timer("expiry", now_ms): …

**Invariant:** the watch events of a write leave before its response, and a session never sees a
response out of order (tests/zookeeper/server/test_machine.py).

Leaves out: ACLs, quorums of servers, containers and TTL znodes.
Source:  org.apache.zookeeper.server.FinalRequestProcessor, PrepRequestProcessor.
"""

from __future__ import annotations

from typing import Any

from minicluster.effects import CancelTimer, Effect, Respond, SetTimer
from minicluster.values import replace
from minicluster.zookeeper.server.effects import LogTransaction, NotifyWatch
from minicluster.zookeeper.server.operations import (
    Check,
    Code,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Request,
    Result,
    SetData,
)
from minicluster.zookeeper.server.sessions import Sessions
from minicluster.zookeeper.server.tree import Change, Tree
from minicluster.zookeeper.server.watches import Watches

EXPIRY = "expiry"


class ZooKeeperMachine:
    """One ZooKeeper server; the module shows how to drive it.

    Units:   sessions expire on whole ticks of ``tick_ms``.
    """

    def __init__(self, *, tick_ms: int = 500) -> None:
        self.tree = Tree()
        self.zxid = 0
        self._sessions = Sessions(tick_ms)
        self._watches = Watches()

    def on_connect(self, token: Any, session: int, timeout_ms: int, now_ms: int) -> list[Effect]:
        """Open a session, or connect to one again.

        Shapes:  session is 0 for a new one; the response is its id, 0 if it is gone.
        """
        effects: list[Effect] = []
        if session == 0:
            session = self._sessions.open(timeout_ms, now_ms)
            self.zxid += 1
            effects.append(
                LogTransaction(self.zxid, now_ms, session, "create_session", timeout_ms=timeout_ms)
            )
        elif not self._sessions.touch(session, now_ms):
            session = 0
        return [*effects, Respond(token, session), *self._expiry_timer()]

    def on_ping(self, token: Any, session: int, now_ms: int) -> list[Effect]:
        """Prolong a session.

        Errors:  SESSIONEXPIRED in the response if there is none.
        """
        alive = self._sessions.touch(session, now_ms)
        code = Code.OK if alive else Code.SESSIONEXPIRED
        return [Respond(token, Result(code)), *self._expiry_timer()]

    def on_close(self, token: Any, session: int, now_ms: int) -> list[Effect]:
        """End a session at its client's request.

        Shapes:  -> LogTransaction and NotifyWatch of its ephemeral znodes, then the response.
        """
        closed = self._close(session, now_ms) if session in self._sessions else []
        return [*closed, Respond(token, Result()), *self._expiry_timer()]

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """Expire the sessions without a request or ping in time.

        Shapes:  name is EXPIRY, the only timer.
        """
        assert name == EXPIRY, name
        effects: list[Effect] = []
        for session in self._sessions.expired(now_ms):
            effects += self._close(session, now_ms)
        return [*effects, *self._expiry_timer()]

    def on_request(self, token: Any, session: int, request: Request, now_ms: int) -> list[Effect]:
        """Read or write.

        Shapes:  the response is a ``Result``.
        Errors:  SESSIONEXPIRED and the codes of ZooKeeper, in the result.
        """
        if not self._sessions.touch(session, now_ms):
            return [Respond(token, Result(Code.SESSIONEXPIRED))]
        if isinstance(request, Create | SetData | Delete | Check | Multi):
            return self._write(token, session, request, now_ms)
        result = self.tree.read(request)
        match request:
            case GetChildren(watch=True) if result.ok:
                self._watches.watch_children(request.path, session)
            case GetData(watch=True) if result.ok:
                self._watches.watch_data(request.path, session)
            case Exists(watch=True):  # of a znode that is not there as well
                self._watches.watch_data(request.path, session)
        return [Respond(token, result)]

    def _write(self, token: Any, session: int, request: Request, now_ms: int) -> list[Effect]:
        operations = request.operations if isinstance(request, Multi) else (request,)
        self.zxid += 1
        results, changes = self.tree.write(operations, self.zxid, session)
        codes = tuple(result.code for result in results)
        logged = LogTransaction(
            self.zxid, now_ms, session, "write", operations, codes, tuple(changes)
        )
        if isinstance(request, Multi):
            failed = next((code for code in codes if code is not Code.OK), Code.OK)
            parts = (
                # Kafka creates without create2, whose result would have a stat.
                replace(result, stat=None) if isinstance(operation, Create) else result
                for operation, result in zip(operations, results, strict=True)
            )
            result = Result(failed, parts=tuple(parts))
        else:
            result = results[0]
        return [logged, *self._fire(changes), Respond(token, result)]

    def _close(self, session: int, now_ms: int) -> list[Effect]:
        self._sessions.close(session)
        self._watches.forget(session)
        self.zxid += 1
        deletes = [Delete(path) for path in self.tree.ephemerals_of(session)]
        _, changes = self.tree.write(deletes, self.zxid, session)
        logged = LogTransaction(self.zxid, now_ms, session, "close_session", changes=tuple(changes))
        return [logged, *self._fire(changes)]

    def _fire(self, changes: list[Change]) -> list[Effect]:
        return [
            NotifyWatch(session, event)
            for change in changes
            for session, event in self._watches.fire(change)
        ]

    def _expiry_timer(self) -> list[Effect]:
        deadline_ms = self._sessions.next_deadline_ms()
        return [CancelTimer(EXPIRY) if deadline_ms is None else SetTimer(EXPIRY, deadline_ms)]
