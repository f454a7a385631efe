"""The ZooKeeper server: sessions, ephemeral and sequential znodes, versions, watches, multis."""

from __future__ import annotations

from minicluster.effects import Effect, Respond
from minicluster.zookeeper.server.effects import LogTransaction, NotifyWatch
from minicluster.zookeeper.server.machine import EXPIRY, ZooKeeperMachine
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
from minicluster.zookeeper.server.watches import WatchEvent, WatchKind


class Server:
    """A server, some sessions, and the watch events of each."""

    def __init__(self) -> None:
        self.machine = ZooKeeperMachine(tick_ms=500)
        self.now_ms = 0
        self.events: list[tuple[int, WatchEvent]] = []
        self.log: list[LogTransaction] = []

    def open(self, timeout_ms: int = 4_000) -> int:
        session = self.take(self.machine.on_connect("connect", 0, timeout_ms, self.now_ms))
        assert isinstance(session, int)
        return session

    def do(self, session: int, request: Request) -> Result:
        result = self.take(self.machine.on_request("request", session, request, self.now_ms))
        assert isinstance(result, Result)
        return result

    def pass_time(self, ms: int) -> None:
        self.now_ms += ms
        self.take(self.machine.on_timer(EXPIRY, self.now_ms))

    def take(self, effects: list[Effect]) -> object:
        response = None
        for effect in effects:
            match effect:
                case Respond():
                    response = effect.response
                case NotifyWatch():
                    assert response is None, "an event follows the response of its write"
                    self.events.append((effect.session, effect.event))
                case LogTransaction():
                    self.log.append(effect)
        return response


def test_a_version_guards_a_write() -> None:
    server = Server()
    one = server.open()
    assert server.do(one, Create("/a", b"x")).ok
    assert server.do(one, SetData("/a", b"y", 0)).ok
    assert server.do(one, SetData("/a", b"z", 0)).code is Code.BADVERSION
    data, stat = server.do(one, GetData("/a")).data_and_stat
    assert (data, stat.version, stat.czxid, stat.mzxid) == (b"y", 1, 2, 3)
    assert server.do(one, Delete("/a", 0)).code is Code.BADVERSION
    assert server.do(one, Delete("/a")).ok
    assert server.do(one, GetData("/a")).code is Code.NONODE


def test_what_fails_takes_a_zxid_of_the_log() -> None:
    server = Server()
    one = server.open()
    assert server.do(one, Create("/a/b")).code is Code.NONODE
    assert server.do(one, Create("/a")).ok
    assert server.do(one, Create("/a")).code is Code.NODEEXISTS
    assert server.do(one, Create("/a/b")).ok
    assert server.do(one, Delete("/a")).code is Code.NOTEMPTY
    assert [t.zxid for t in server.log] == [1, 2, 3, 4, 5, 6]


def test_sequential_znodes_count_the_children_that_their_parent_ever_had() -> None:
    server = Server()
    one = server.open()
    server.do(one, Create("/a"))
    assert server.do(one, Create("/a/n_", sequential=True)).path == "/a/n_0000000000"
    assert server.do(one, Create("/a/n_", sequential=True)).path == "/a/n_0000000001"
    server.do(one, Delete("/a/n_0000000000"))
    assert server.do(one, Create("/a/n_", sequential=True)).path == "/a/n_0000000002"


def test_a_multi_happens_as_a_whole_or_not_at_all() -> None:
    server = Server()
    one = server.open()
    server.do(one, Create("/epoch", b"0"))
    server.do(one, Create("/a"))
    result = server.do(
        one, Multi((Create("/a/b"), SetData("/epoch", b"1", 7), Delete("/a"), Create("/c")))
    )
    assert [part.code for part in result.parts] == [
        Code.OK, Code.BADVERSION, Code.RUNTIMEINCONSISTENCY, Code.RUNTIMEINCONSISTENCY,
    ]  # fmt: skip
    assert server.do(one, GetChildren("/a")).children == ()
    assert server.do(one, GetData("/epoch")).data_and_stat[0] == b"0"
    assert server.do(one, Multi((Check("/epoch", 0), Create("/a/b"), SetData("/epoch", b"1")))).ok
    assert server.do(one, GetChildren("/a")).children == ("b",)


def test_a_session_without_requests_expires_with_its_ephemeral_znodes() -> None:
    server = Server()
    one, two = server.open(), server.open(60_000)
    server.do(one, Create("/mine", ephemeral=True))
    server.do(one, Create("/kept"))
    assert server.do(two, Exists("/mine", watch=True)).ok
    server.pass_time(4_000)
    assert server.do(one, GetData("/kept")).ok, "a request prolongs the session"
    server.pass_time(4_000)
    assert not server.events
    server.pass_time(1_000)
    assert server.events == [(two, WatchEvent(WatchKind.NODE_DELETED, "/mine"))]
    assert server.do(one, GetData("/kept")).code is Code.SESSIONEXPIRED
    assert server.do(two, GetData("/kept")).ok
    assert server.log[-1].kind == "close_session"
    assert [change.path for change in server.log[-1].changes] == ["/mine"]


def test_a_watch_fires_once() -> None:
    server = Server()
    one, two = server.open(), server.open()
    assert server.do(one, Exists("/a", watch=True)).code is Code.NONODE
    assert server.do(one, GetData("/b", watch=True)).code is Code.NONODE
    assert server.do(one, GetChildren("/", watch=True)).ok
    server.do(two, Create("/a"))
    server.do(two, Create("/b"))
    server.do(two, SetData("/a", b"1"))
    assert server.events == [
        (one, WatchEvent(WatchKind.NODE_CREATED, "/a")),
        (one, WatchEvent(WatchKind.NODE_CHILDREN_CHANGED, "/")),
    ]


def test_a_client_connects_again_to_its_session() -> None:
    server = Server()
    one = server.open()
    assert server.take(server.machine.on_connect("again", one, 4_000, server.now_ms)) == one
    server.pass_time(5_000)
    assert server.take(server.machine.on_connect("late", one, 4_000, server.now_ms)) == 0
