"""The machine and a real server give the same results, watch events and transactions."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from minicluster.effects import Effect, Respond
from minicluster.values import replace
from minicluster.zookeeper.server.effects import NotifyWatch
from minicluster.zookeeper.server.machine import ZooKeeperMachine
from minicluster.zookeeper.server.operations import (
    Check,
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
)
from tests.zookeeper.real.kazoo_machine import KazooMachine
from tests.zookeeper.real.server import ServerProcess

pytestmark = pytest.mark.zookeeper

TICK_MS = 500
TIMEOUT_MS = 6_000
REQUESTS = 150
NAMES = ("a", "b", "c")


class Twins:
    """The machine and the real server, with the same requests."""

    def __init__(self, server: ServerProcess) -> None:
        self.machine = ZooKeeperMachine(tick_ms=TICK_MS)
        self.real = KazooMachine(server, tick_ms=TICK_MS)
        self.now_ms = 0
        self.sessions: list[int] = []

    def open(self) -> None:
        effects = self._same("on_connect", "token", 0, TIMEOUT_MS)
        (respond,) = [one for one in effects if isinstance(one, Respond)]
        self.sessions.append(respond.response)

    def do(self, session: int, request: Request) -> Result:
        effects = self._same("on_request", "token", session, request)
        (respond,) = [one for one in effects if isinstance(one, Respond)]
        return respond.response

    def close(self, session: int) -> None:
        self.sessions.remove(session)
        self._same("on_close", "token", session)

    def expire(self, session: int) -> None:
        """Time passes without a word of one session; the others ping."""
        self.sessions.remove(session)
        for _ in range(2 * TIMEOUT_MS // TICK_MS):
            self.now_ms += TICK_MS
            for other in self.sessions:
                self._same("on_ping", "token", other)
            self._same("on_timer", "expiry")

    def _same(self, method: str, *arguments: object) -> list[Effect]:
        ours = _comparable(getattr(self.machine, method)(*arguments, self.now_ms))
        real = _comparable(getattr(self.real, method)(*arguments, self.now_ms))
        assert ours == real, (method, arguments)
        return ours


def _comparable(effects: list[Effect]) -> list[Effect]:
    """The effects without what ZooKeeper leaves open: the order between two sessions."""
    notified = [one for one in effects if isinstance(one, NotifyWatch)]
    others = [_bare(one) for one in effects if not isinstance(one, NotifyWatch)]
    return [*sorted(notified, key=lambda one: one.session), *others]


def _bare(effect: Effect) -> Effect:
    """A response without the difference between no data and empty data, which kazoo hides."""
    if isinstance(effect, Respond) and isinstance(effect.response, Result):
        result = effect.response
        return Respond(effect.token, replace(result, data=result.data or None))
    return effect


@pytest.fixture
def twins(server: ServerProcess) -> Iterator[Twins]:
    both = Twins(server)
    try:
        yield both
    finally:
        both.real.close()


def drawn_write(rng: random.Random, path: str) -> Operation:
    version = rng.choice((-1, -1, 0, 1, 2))
    kind = rng.randrange(6)
    if kind < 3:
        ephemeral, sequential = rng.random() < 0.3, rng.random() < 0.3
        return Create(path, b"data", ephemeral=ephemeral, sequential=sequential)
    if kind < 5:
        return SetData(path, bytes([65 + rng.randrange(26)]), version)
    return Delete(path, version)


def drawn_request(rng: random.Random) -> Request:
    path = "/" + "/".join(rng.choice(NAMES) for _ in range(rng.choice((1, 1, 2, 2, 3))))
    kind = rng.randrange(10)
    if kind < 5:
        return drawn_write(rng, path)
    if kind < 7:
        others = [f"/{rng.choice(NAMES)}" for _ in range(rng.randrange(3))]
        check = Check(rng.choice(("/", f"/{rng.choice(NAMES)}")), rng.choice((-1, 0, 1)))
        return Multi((check, *(drawn_write(rng, one) for one in [path, *others])))
    read = (GetData, Exists, GetChildren)[kind - 7]
    return read(path, watch=True)


@pytest.mark.parametrize("seed", range(3))
def test_drawn_requests_of_three_sessions(twins: Twins, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(3):
        twins.open()
    for _ in range(REQUESTS):
        twins.do(rng.choice(twins.sessions), drawn_request(rng))


def test_a_session_ends_with_its_ephemeral_znodes_and_its_watches(twins: Twins) -> None:
    for _ in range(3):
        twins.open()
    watching, closed, expired = twins.sessions
    for session in (closed, expired):
        twins.do(session, Create(f"/of-{session}", ephemeral=True))
        twins.do(session, Create("/kept-", sequential=True))
        twins.do(watching, Exists(f"/of-{session}", watch=True))
    twins.do(watching, GetChildren("/", watch=True))
    twins.do(expired, GetChildren("/", watch=True))
    twins.close(closed)
    twins.do(watching, GetChildren("/", watch=True))
    twins.expire(expired)
    assert twins.do(watching, GetChildren("/")).children == ("kept-0000000001", "kept-0000000003")
    twins.do(expired, GetData("/"))
    twins.do(closed, GetData("/"))
