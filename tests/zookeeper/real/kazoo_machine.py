"""A real ZooKeeper server with the face of ``ZooKeeperMachine``: each session is a kazoo client.

    ZooKeeperServer (the actor) ── on_request ──▶ KazooMachine ── kazoo ──▶ ZooKeeper
                                ◀── effects ────      │
                                                      └ after a write: read in every session, so
                                                        that its watch events have arrived

| here | kazoo |
|---|---|
| ``Create`` | ``create(path, data, ephemeral=, sequence=, include_data=True)`` |
| ``SetData``, ``Delete`` | ``set(path, data, version)``, ``delete(path, version)`` |
| ``Multi``, ``Check`` | ``transaction()`` with ``create``, ``set_data``, ``delete``, ``check`` |
| ``GetData``, ``GetChildren``, ``Exists`` | ``get``, ``get_children``, ``exists`` with ``watch=`` |

Time stays virtual: when the deadline of a session passes, its connection is lost for good, and the
real server expires it after its own timeout. Session ids are counted as ``Sessions`` does it.

**Invariant:** the sessions' clients make no transaction besides those of the cluster, so that the
zxids of both servers are the same.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kazoo import exceptions as failures
from kazoo.client import KazooClient, TransactionRequest
from kazoo.protocol.connection import _CONNECTION_DROP  # as kazoo's own tests lose a connection
from kazoo.protocol.states import Callback, WatchedEvent, ZnodeStat
from kazoo.retry import KazooRetry

from minicluster.effects import CancelTimer, Effect, Respond, SetTimer
from minicluster.zookeeper.server.effects import LogTransaction, NotifyWatch
from minicluster.zookeeper.server.machine import EXPIRY
from minicluster.zookeeper.server.operations import (
    Check,
    Code,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    Operation,
    Request,
    Result,
    SetData,
    Stat,
)
from minicluster.zookeeper.server.sessions import Sessions
from minicluster.zookeeper.server.tree import Change
from minicluster.zookeeper.server.watches import WatchEvent, WatchKind
from tests.kafka.process import LOOPBACK, free_port
from tests.zookeeper.real.server import ServerProcess

REAL_TIMEOUT_S = 4.0
WITHIN_S = 30.0
OWN = "/zookeeper"
WRITES = Create | SetData | Delete | Check | Multi
WATCH_KINDS = {
    "CREATED": WatchKind.NODE_CREATED,
    "DELETED": WatchKind.NODE_DELETED,
    "CHANGED": WatchKind.NODE_DATA_CHANGED,
    "CHILD": WatchKind.NODE_CHILDREN_CHANGED,
}
CODES = {
    failures.NoNodeError: Code.NONODE,
    failures.BadVersionError: Code.BADVERSION,
    failures.NodeExistsError: Code.NODEEXISTS,
    failures.NotEmptyError: Code.NOTEMPTY,
    failures.NoChildrenForEphemeralsError: Code.NOCHILDRENFOREPHEMERALS,
    failures.RuntimeInconsistency: Code.RUNTIMEINCONSISTENCY,
    failures.RolledBackError: Code.OK,  # of a multi that failed: the operations before the failure
}


@dataclass(slots=True)
class _Client:
    kazoo: KazooClient
    watch: Callable[[WatchedEvent], None]
    events: list[WatchEvent] = field(default_factory=list)
    ephemerals: dict[str, None] = field(default_factory=dict)


class KazooMachine:
    """The real server behind the methods that the actor of the machine calls."""

    def __init__(self, process: ServerProcess, *, tick_ms: int) -> None:
        self._process = process
        self._sessions = Sessions(tick_ms)
        self._clients: dict[int, _Client] = {}
        self._registered: dict[tuple[str, bool, int], int] = {}  # watches, in order
        self._numbers = count()
        self._owners: dict[int, int] = {0: 0}  # session ids by those of the real server

    @property
    def tree(self) -> KazooMachine:
        """The znodes, as the server's machine shows them."""
        return self

    def data_of(self, path: str) -> bytes | None:
        """The data of a znode, None if it has none or is not there."""
        return self.read(GetData(path)).data

    def read(self, operation: Operation) -> Result:
        """Read in any session."""
        return self._read(next(iter(self._clients)), operation)

    def close(self) -> None:
        """End all clients."""
        for client in self._clients.values():
            client.kazoo.stop()
            client.kazoo.close()

    def on_connect(self, token: Any, session: int, timeout_ms: int, now_ms: int) -> list[Effect]:
        """Open a session, or connect to one again."""
        effects: list[Effect] = []
        if session == 0:
            session = self._sessions.open(timeout_ms, now_ms)
            zxid = self._open(session)
            effects.append(
                LogTransaction(zxid, now_ms, session, "create_session", timeout_ms=timeout_ms)
            )
        elif not self._sessions.touch(session, now_ms):
            session = 0
        return [*effects, Respond(token, session), *self._expiry_timer()]

    def on_ping(self, token: Any, session: int, now_ms: int) -> list[Effect]:
        """Prolong a session; its client pings the real server by itself."""
        alive = self._sessions.touch(session, now_ms)
        result = Result(Code.OK if alive else Code.SESSIONEXPIRED)
        return [Respond(token, result), *self._expiry_timer()]

    def on_close(self, token: Any, session: int, now_ms: int) -> list[Effect]:
        """End a session at its client's request."""
        closed: list[Effect] = []
        if session in self._sessions:
            closed = self._end(session, now_ms, lambda client: client.kazoo.stop())
        return [*closed, Respond(token, Result()), *self._expiry_timer()]

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """Let the real server expire the sessions without a request or ping in time."""
        assert name == EXPIRY, name
        effects: list[Effect] = []
        for session in self._sessions.expired(now_ms):
            effects += self._end(session, now_ms, self._lose)
        return [*effects, *self._expiry_timer()]

    def on_request(self, token: Any, session: int, request: Request, now_ms: int) -> list[Effect]:
        """Read or write in a session."""
        if not self._sessions.touch(session, now_ms):
            return [Respond(token, Result(Code.SESSIONEXPIRED))]
        if isinstance(request, WRITES):
            return self._write(token, session, request, now_ms)
        return [Respond(token, self._read(session, request))]

    # Sessions.

    def _open(self, session: int) -> int:
        client = KazooClient(
            self._process.hosts,
            timeout=REAL_TIMEOUT_S,
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=1, max_delay=0.1),
        )
        events: list[WatchEvent] = []

        def watch(event: WatchedEvent) -> None:
            if event.type in WATCH_KINDS:
                found = WatchEvent(WATCH_KINDS[event.type], event.path)
                if found not in events:  # kazoo calls once for each watch, the server sends one
                    events.append(found)

        client.start(WITHIN_S)
        self._clients[session] = _Client(client, watch, events)
        self._owners[client.client_id[0]] = session
        client.exists("/")
        return int(client.last_zxid)

    def _lose(self, client: _Client) -> None:
        """Lose the connection, and wait until the server expires the session."""
        kazoo = client.kazoo
        session = kazoo.client_id[0]
        kazoo.set_hosts(f"{LOOPBACK}:{free_port()}")
        kazoo._call(_CONNECTION_DROP, kazoo.handler.async_result())
        self._wait(lambda: not self._process.has_session(session), "the session does not expire")
        kazoo.stop()

    @staticmethod
    def _wait(holds: Callable[[], bool], why: str) -> None:
        pause = threading.Event()
        for _ in range(int(WITHIN_S / 0.05)):
            if holds():
                return
            pause.wait(0.05)
        raise AssertionError(why)

    def _end(self, session: int, now_ms: int, end: Callable[[_Client], None]) -> list[Effect]:
        """End a session.

        The order of the events that its ephemeral znodes cause is open in ZooKeeper, which holds
        them in a HashSet: here it is that of their creation.
        """
        client = self._clients.pop(session)
        changes = []
        for path in client.ephemerals:
            stat = client.kazoo.exists(path)
            changes.append(Change("delete", path, stat.version, stat.czxid))
        self._sessions.close(session)
        real = client.kazoo.client_id[0]
        end(client)
        assert not self._process.has_session(real), "the session has not ended"
        client.kazoo.close()
        assert self._clients, "the zxid of the last session's end is not seen by any other"
        reader = next(iter(self._clients.values())).kazoo
        for change in changes:
            assert reader.exists(change.path) is None, change.path
        reader.exists("/")
        zxid = int(reader.last_zxid)
        logged = LogTransaction(zxid, now_ms, session, "close_session", changes=tuple(changes))
        order = [kind for change in changes for kind in _events_of(change.path)]
        return [logged, *self._notified(order)]

    def _expiry_timer(self) -> list[Effect]:
        deadline_ms = self._sessions.next_deadline_ms()
        return [CancelTimer(EXPIRY) if deadline_ms is None else SetTimer(EXPIRY, deadline_ms)]

    # Reads.

    def _read(self, session: int, operation: Operation) -> Result:
        client = self._clients[session]
        watch = client.watch if getattr(operation, "watch", False) else None
        result = self._read_of(client.kazoo, operation, watch)
        if watch is not None and (result.ok or isinstance(operation, Exists)):
            key = (operation.path, isinstance(operation, GetChildren), session)
            self._registered.setdefault(key, next(self._numbers))
        return result

    def _read_of(self, kazoo: KazooClient, operation: Operation, watch: Any) -> Result:
        path = operation.path
        try:
            match operation:
                case GetData():
                    data, stat = kazoo.get(path, watch=watch)
                    return Result(path=path, data=data or None, stat=self._stat(stat, path))
                case GetChildren():
                    names, stat = kazoo.get_children(path, watch=watch, include_data=True)
                    names = tuple(sorted(name for name in names if f"{path}{name}" != OWN))
                    return Result(path=path, stat=self._stat(stat, path), children=names)
        except failures.NoNodeError:
            return Result(Code.NONODE, path)
        stat = kazoo.exists(path, watch=watch)
        if stat is None:
            return Result(Code.NONODE, path)
        return Result(path=path, stat=self._stat(stat, path))

    def _stat(self, stat: ZnodeStat, path: str = "") -> Stat:
        if path == "/":  # without the znode that is ZooKeeper's own
            stat = stat._replace(numChildren=stat.numChildren - 1, cversion=stat.cversion + 1)
        return Stat(
            czxid=stat.czxid,
            mzxid=stat.mzxid,
            version=stat.version,
            cversion=stat.cversion,
            ephemeral_owner=self._owners[stat.ephemeralOwner],
            children=stat.numChildren,
        )

    # Writes.

    def _write(self, token: Any, session: int, request: Request, now_ms: int) -> list[Effect]:
        client = self._clients[session]
        operations = request.operations if isinstance(request, Multi) else (request,)
        before = {
            one.path: client.kazoo.exists(one.path) for one in operations if isinstance(one, Delete)
        }
        if isinstance(request, Multi):
            result = self._multi(client.kazoo, operations)
            results = result.parts
        else:
            result = self._single(client.kazoo, request)
            results = (result,)
        zxid = int(client.kazoo.last_zxid)
        changes = self._changes(client, zxid, operations, results, before)
        codes = tuple(one.code for one in results)
        logged = LogTransaction(zxid, now_ms, session, "write", operations, codes, changes)
        return [logged, *self._notified([]), Respond(token, result)]

    def _single(self, kazoo: KazooClient, operation: Operation) -> Result:
        try:
            match operation:
                case Create():
                    path, stat = kazoo.create(
                        operation.path,
                        operation.data or b"",
                        ephemeral=operation.ephemeral,
                        sequence=operation.sequential,
                        include_data=True,
                    )
                    return Result(path=path, stat=self._stat(stat))
                case SetData():
                    stat = kazoo.set(operation.path, operation.data or b"", operation.version)
                    return Result(path=operation.path, stat=self._stat(stat))
                case Delete():
                    kazoo.delete(operation.path, operation.version)
                    return Result(path=operation.path)
        except tuple(CODES) as failure:
            return Result(CODES[type(failure)])
        raise TypeError(f"{operation} is no single write")

    def _multi(self, kazoo: KazooClient, operations: Sequence[Operation]) -> Result:
        transaction: TransactionRequest = kazoo.transaction()
        for one in operations:
            match one:
                case Create():
                    transaction.create(
                        one.path,
                        one.data or b"",
                        ephemeral=one.ephemeral,
                        sequence=one.sequential,
                    )
                case SetData():
                    transaction.set_data(one.path, one.data or b"", one.version)
                case Delete():
                    transaction.delete(one.path, one.version)
                case Check():
                    transaction.check(one.path, one.version)
        parts = tuple(
            self._part(one, result)
            for one, result in zip(operations, transaction.commit(), strict=True)
        )
        failed = next((part.code for part in parts if not part.ok), Code.OK)
        return Result(failed, parts=parts)

    def _part(self, operation: Operation, result: Any) -> Result:
        match result:
            case Exception():
                return Result(CODES[type(result)])
            case str():
                return Result(path=result)
            case ZnodeStat():
                return Result(path=operation.path, stat=self._stat(result))
        return Result(path=operation.path)

    @staticmethod
    def _changes(
        client: _Client,
        zxid: int,
        operations: Sequence[Operation],
        results: Sequence[Result],
        before: dict[str, ZnodeStat | None],
    ) -> tuple[Change, ...]:
        if not all(result.ok for result in results):
            return ()
        changes = []
        for operation, result in zip(operations, results, strict=True):
            match operation:
                case Create():
                    if operation.ephemeral:
                        client.ephemerals[result.path] = None
                    changes.append(
                        Change("create", result.path, 0, zxid, operation.data, operation.ephemeral)
                    )
                case SetData(path, data):
                    assert result.stat is not None, result
                    version, czxid = result.stat.version, result.stat.czxid
                    changes.append(Change("set", path, version, czxid, data))
                case Delete(path):
                    client.ephemerals.pop(path, None)
                    stat = before[path]
                    assert stat is not None, path
                    changes.append(Change("delete", path, stat.version, stat.czxid))
        return tuple(changes)

    # Watch events.

    def _notified(self, order: list[WatchEvent]) -> list[Effect]:
        """The events that have arrived in all sessions: those of one session in their order.

        Shapes:  order is given where ZooKeeper leaves it open.
        """
        arrived: dict[int, threading.Event] = {}
        reads = [client.kazoo.exists_async("/") for client in self._clients.values()]
        for read in reads:
            read.get(timeout=WITHIN_S)
        for session, client in self._clients.items():
            done = arrived[session] = threading.Event()
            client.kazoo.handler.dispatch_callback(Callback("watch", done.set, ()))
        found = []
        for session, client in self._clients.items():
            assert arrived[session].wait(WITHIN_S), "no watch events within the time"
            events, client.events[:] = list(client.events), []
            for place, event in enumerate(events):
                children = event.kind is WatchKind.NODE_CHILDREN_CHANGED
                number = self._registered.pop((event.path, children, session), 0)
                if event.kind is WatchKind.NODE_DELETED:
                    self._registered.pop((event.path, True, session), None)
                at = order.index(event) if order else place
                found.append((at, number, NotifyWatch(session, event)))
        return [notify for _, _, notify in sorted(found, key=lambda one: one[:2])]


def _events_of(path: str) -> tuple[WatchEvent, WatchEvent]:
    above = path.rpartition("/")[0] or "/"
    return (
        WatchEvent(WatchKind.NODE_DELETED, path),
        WatchEvent(WatchKind.NODE_CHILDREN_CHANGED, above),
    )
