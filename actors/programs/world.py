"""The world that all programs of a cluster share: its clock, its network, the addresses in it."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from minicluster.actors.listeners.memory import MemoryListeners, Peer
from minicluster.actors.network import Network
from minicluster.actors.programs.clocks import Clock
from minicluster.actors.programs.connection import ProgramsCarrier, Transport
from minicluster.actors.runtime import chance, tripwire
from minicluster.security.protocols import LISTENER
from minicluster.values import Value

LINES_MAX = 10_000  # of the programs' logs
LOOPBACK = ("localhost", "127.0.0.1", "::1", "0.0.0.0")


class LogLine(Value):
    """A line that a program has logged.

    Units:   seq: the run's last event by then.
    """

    seq: int
    at_ms: int
    program: str
    incarnation: int
    level: str
    logger: str
    text: str

    def __str__(self) -> str:
        return f"{self.at_ms / 1000:10.3f}s  {self.program} {self.level} {self.logger}: {self.text}"


class Serving(Protocol):
    """A server of a program."""

    node: int

    def accept(self, peername: tuple[str, int]) -> Transport:
        """The program's end of a new connection."""


class World:
    """The simulation as programs meet it.

    Shapes:  nodes: the addresses of the cluster's nodes; secured: the listener of those that are
             not PLAINTEXT. shuffles: chance decides what a real
             system leaves open; without, whatever is found does not hang on it.
    """

    def __init__(
        self,
        network: Network,
        listeners: MemoryListeners,
        nodes: Mapping[tuple[str, int], int],
        secured: Mapping[tuple[str, int], str] = {},
        *,
        shuffles: bool = True,
    ) -> None:
        self.network, self.listeners, self.nodes = network, listeners, dict(nodes)
        self.rt = network.rt
        self._secured = secured
        self.shuffles = shuffles
        self.clock = Clock(self.rt)
        self.servers: dict[tuple[str, int], Serving] = {}
        self.lines: deque[LogLine] = deque(maxlen=LINES_MAX)
        self._stopped: dict[tuple[int, int], list[Callable[[Any], None]]] = {}  # by a cut
        self._latest_ms: dict[tuple[int, int], int] = {}  # the last arrival, between programs
        self._draws = chance.draws(chance.key(self.rt.seed, "programs"), 1)
        network.on_lift = self._lifted
        self._handler = _Lines(self)
        logging.getLogger().addHandler(self._handler)

    def close(self) -> None:
        """Take note of nothing more."""
        logging.getLogger().removeHandler(self._handler)
        self.listeners.close()

    def draw(self) -> int:
        """Chance of the network between programs."""
        return next(self._draws)

    def delay_ms(self) -> int:
        """A draw of how long a packet takes."""
        least_ms, most_ms = self.network.base_delay_ms
        return least_ms + self.draw() % (most_ms - least_ms + 1)

    def place(self, program: str, host: Any, port: Any) -> int | Serving | None:
        """The node or the server at an address; None: there is none."""
        address = str(host), int(port or 0)
        if address in self.nodes:
            return self.nodes[address]
        if address[0] in LOOPBACK:
            address = program, address[1]
        return self.servers.get(address)

    def listener_at(self, host: Any, port: Any) -> str:
        """The listener at an address of a node."""
        return self._secured.get((str(host), int(port)), LISTENER)

    def stops(self, src: int, dst: int) -> bool:
        """True while a connection between two nodes cannot begin."""
        return self.network.blocked(src, dst) or self.network.blocked(dst, src)

    def carry(self, src: int, dst: int, call: Callable[[], None]) -> None:
        """Make a call when bytes that one program sends now have arrived at another."""
        link = src, dst
        if self._stopped.get(link) or self.network.blocked(src, dst):
            self._stopped.setdefault(link, []).append(lambda _: call())
        else:
            self._carry(link, lambda _: call())

    def _carry(self, link: tuple[int, int], call: Callable[[Any], None]) -> None:
        at_ms = max(self.rt.now_ms + self.delay_ms(), self._latest_ms.get(link, 0))
        self._latest_ms[link] = at_ms
        self.rt.post(at_ms, call, None)

    def _lifted(self) -> None:
        self.listeners.served.drop_stale()
        for link in [link for link in self._stopped if not self.network.blocked(*link)]:
            for call in self._stopped.pop(link):
                self._carry(link, call)

    def join(self, client: Peer, src: int, server: Transport, dst: int) -> ProgramsCarrier:
        """Connect two programs; -> the client's carrier."""
        server.carrier = ProgramsCarrier(lambda call: self.carry(dst, src, call), client)
        return ProgramsCarrier(lambda call: self.carry(src, dst, call), server)


class _Lines(logging.Handler):
    """Keeps what programs log, with the cluster's time."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def emit(self, record: logging.LogRecord) -> None:
        running: Any = tripwire.program()
        if running is not None and running.world is self._world:
            try:
                text = self.format(record)
            except Exception as error:  # of a log call that does not fit its arguments
                text = f"{record.msg} ({error})"
            self._world.lines.append(
                LogLine(
                    self._world.network.recorder.sequence,
                    self._world.rt.now_ms,
                    running.name,
                    running.number,
                    record.levelname,
                    record.name,
                    text,
                )
            )
