"""A user's program as a process of the simulation: it starts, is killed, paused, ended, restarted.

Its code is a coroutine function (or a plain one, in a thread of its own). Each start is an
incarnation with a loop and connections of its own. What its modules keep in global names stays from
one to the next: they are imported once.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import inspect
import math
import signal
import socket
from collections.abc import Callable, Mapping
from contextvars import Context
from typing import Any

from minicluster.actors.programs import switches
from minicluster.actors.programs.chance import ProgramChance
from minicluster.actors.programs.clocks import virtual_functions
from minicluster.actors.programs.connection import Transport
from minicluster.actors.programs.loop import SimulatedLoop
from minicluster.actors.programs.real import RealTransport
from minicluster.actors.programs.refused import address_refused
from minicluster.actors.programs.threads import Carried, Threads
from minicluster.actors.programs.world import Serving, World
from minicluster.actors.runtime import chance, tripwire
from minicluster.security.principals import KafkaPrincipal

SYN_RETRIES_S = (1, 2, 4, 8, 16, 32)  # Linux: tcp_syn_retries
FIRST_PORT = 32_768
FIRST_PID = 1_000
_NO_LIMIT_MS = 10**12


class ProgramKilled(BaseException):
    """Unwinds code that waited for the cluster inside its step when its process was killed."""


class Program:
    """A program by its name.

    Shapes:  node: its id in the network. run: what it runs, called at each start; code: where that
             is found, for ``run.json``; principal: of its connections that do not log in, None for
             nobody in particular.
    """

    def __init__(
        self,
        world: World,
        name: str,
        node: int,
        number: int,
        run: Callable[[], Any],
        code: dict[str, Any],
        principal: KafkaPrincipal | None = None,
        *,
        allow_real: frozenset[str] = frozenset(),
    ) -> None:
        self.world, self.name, self.node, self.number, self.run = world, name, node, number, run
        self.code = code
        self.principal = principal
        self.allow_real = allow_real
        self.address = f"10.0.{number // 250}.{number % 250 + 1}"
        self.chances = ProgramChance(world.rt.seed, name)
        self.incarnations: list[Incarnation] = []

    @property
    def current(self) -> Incarnation:
        """The latest incarnation."""
        return self.incarnations[-1]

    @property
    def is_running(self) -> bool:
        """True while its process runs; a paused one runs."""
        return bool(self.incarnations) and self.current.is_alive

    @property
    def error(self) -> BaseException | None:
        """The error with which the latest incarnation has ended."""
        return self.current.error if self.incarnations else None

    def start(self, context: Context | None = None) -> Incarnation:
        """Start it as a new incarnation."""
        incarnation = Incarnation(self, len(self.incarnations) + 1)
        self.incarnations.append(incarnation)
        incarnation.start(context)
        return incarnation

    def kill(self) -> None:
        """End its process at once (SIGKILL)."""
        if self.is_running:
            self.current.end("killed")

    def pause(self) -> None:
        """Stop its steps (SIGSTOP)."""
        self.current.is_paused = True

    def resume(self) -> None:
        """Continue (SIGCONT)."""
        self.current.is_paused = False
        for loop in self.current.loops:
            loop.wake()
        self.current.threads.wake()

    def terminate(self, number: int = signal.SIGTERM) -> None:
        """Send a signal: its handler is called; without one the process ends, as it would.

        SIGINT without a handler cancels the main task, as ``asyncio.run`` has it.
        """
        if self.is_running:
            self.current.signal(number)


class Incarnation:
    """One process of a program.

    Shapes:  ended: None while it runs, else ``ended``, ``killed``, ``failed``, or the signal.
    """

    def __init__(self, program: Program, number: int) -> None:
        self.program, self.number = program, number
        self.world, self.rt, self.name = program.world, program.world.rt, program.name
        self.clock = self.world.clock
        self.chances = program.chances
        self.source = chance.key(self.rt.seed, f"program/{program.name}/{number}")
        self.shuffles = program.world.shuffles
        self.is_alive, self.is_paused = True, False
        self.started_ms, self.ended_ms = self.rt.now_ms, -1
        self.ended: str | None = None
        self.error: BaseException | None = None
        self.error_read = False  # by the test, which then judges it itself (rule P5)
        self.result: Any = None
        self.handlers: dict[int, Any] = {}
        self.at_exit: list[Callable[[], Any]] = []
        self.virtual: Mapping[str, Callable[..., Any]] = virtual_functions(
            self.clock, self.chances, self.sleep
        )
        self.loop = SimulatedLoop(self)
        self.loops = [self.loop]
        self._steps = self.loop  # of these, the one whose step it is
        self.threads = Threads(self)
        self._peers: dict[int, Any] = {}  # the ends of its connections, the oldest first
        self._servers: list[Server] = []
        self._next_port = FIRST_PORT
        self._pieces = chance.draws(self.source, 3, 2)
        self._task: asyncio.Task[Any] | None = None

    def __str__(self) -> str:
        if self.is_alive:
            return "paused" if self.is_paused else "running"
        error = "" if self.error is None else f": {type(self.error).__name__}: {self.error}"
        return f"{self.ended} at {self.ended_ms / 1000:g}s{error}"

    @property
    def pid(self) -> int:
        """The id of the process."""
        return FIRST_PID + 100 * self.program.number + self.number

    # Its life.

    def start(self, context: Context | None) -> None:
        """Run the program's code from the next step on."""
        context = Context() if context is None else context
        self._task = self.loop.create_task(self._main(), name="main", context=context)
        self._task.add_done_callback(self._main_ended)

    async def _main(self) -> Any:
        try:
            if _is_coroutine_function(self.program.run):
                self.result = await self.program.run()
            else:
                self.result = await self.loop.run_in_executor(None, self.program.run)
                if inspect.isawaitable(self.result):
                    self.result = await self.result
        finally:
            # As asyncio.run ends a program: its other tasks are cancelled and waited for.
            others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            others.sort(key=hash)
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)
            await self.loop.shutdown_asyncgens()
            while self.at_exit:  # as Python does, the last one first; a killed process does not
                await self.loop.run_in_executor(None, self.at_exit.pop())

    def _main_ended(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            self.end("cancelled")
            return
        error = task.exception()
        if isinstance(error, SystemExit):
            self.exited(error)
        elif isinstance(error, ProgramKilled):
            self.end("killed")
        elif error is not None:
            self.end("failed", error)
        else:
            self.end("ended")

    def exited(self, error: SystemExit) -> None:
        """The code has called ``sys.exit``."""
        if error.code in (None, 0):
            self.end("ended")
        else:
            self.end("failed", error)

    def end(self, how: str, error: BaseException | None = None) -> None:
        """End the process: no line of it runs any more, and its system ends its connections."""
        if not self.is_alive:
            return
        self.is_alive, self.ended, self.error = False, how, error
        self.ended_ms = self.rt.now_ms
        for server in self._servers:
            server.close()
        for peer in list(self._peers.values()):
            if isinstance(peer, RealTransport):
                peer.abandon()
            elif peer.carrier is not None:
                peer.carrier.abandon()
        self._peers.clear()
        self.threads.end()
        for loop in self.loops:
            loop.end()
            for suspended in loop.suspended:
                _never_free(suspended)

    def release(self) -> None:
        """Hold nothing of the cluster, which has ended: suspended coroutines are kept for good."""
        for loop in self.loops:
            loop.release()
        self._peers.clear()
        self._servers.clear()
        self.virtual = {}
        del self.world, self.rt, self.clock, self.loop, self.loops, self.threads, self._steps

    def signal(self, number: int) -> None:
        """Take a signal."""
        handler = self.handlers.get(number, signal.SIG_DFL)
        if handler is signal.SIG_IGN:
            return
        if callable(handler):
            self.loop.call_soon(handler, number, None)
        elif number == signal.SIGINT and self._task is not None:
            self.loop.call_soon(self._task.cancel)
        else:
            self.end(signal.Signals(number).name)

    def handle(self, number: int, handler: Any) -> Any:
        """Set the handler of a signal; -> the one before."""
        before = self.handlers.pop(number, None)
        if handler is not None:
            self.handlers[number] = handler
        return before

    # Its steps.

    def look_us(self) -> int:
        return self.clock.look_us()

    def new_loop(self) -> SimulatedLoop:
        """Another event loop, which a thread will run."""
        self.loops.append(SimulatedLoop(self, len(self.loops)))
        return self.loops[-1]

    def begin_step(self, loop: SimulatedLoop) -> Any:
        before, self._steps = self._steps, loop
        return before, tripwire.enter_program(self)

    def end_step(self, before: Any) -> None:
        self._steps, of_wire = before
        tripwire.back_to(of_wire)

    def suspend(self) -> None:
        tripwire.back_to((0, None))
        self._steps.leave()

    def resume(self) -> None:
        while self.is_paused and self.is_alive:
            runs_on = lambda: not (self.is_paused and self.is_alive)  # noqa: E731
            self.rt.run_until(runs_on, _NO_LIMIT_MS)
        tripwire.enter_program(self)
        self._steps.enter()
        self.ends_here_if_dead()

    def ends_here_if_dead(self) -> None:
        """Let no further line of this step run once the process has ended within it."""
        if not self.is_alive:
            raise ProgramKilled

    def sleep(self, seconds: float) -> None:
        """``time.sleep``: a coroutine that calls it blocks its loop, as in life."""
        self.block(lambda: False, seconds, [])

    def block(
        self, holds: Callable[[], bool], timeout_s: float | None, waiting: list[Carried]
    ) -> bool:
        """Wait in the thread that calls this; True if the condition holds.

        A step of the loop stands still meanwhile, and the cluster runs on.

        Shapes:  waiting: where a thread is found by who makes the condition hold.
        """
        duration_ms = None if timeout_s is None else math.ceil(timeout_s * 1_000)
        carried = self.threads.current()
        if carried is None:
            return self.rt.run_until(holds, _NO_LIMIT_MS if duration_ms is None else duration_ms)
        waiting.append(carried)
        try:
            return carried.block(holds, duration_ms)
        finally:
            waiting.remove(carried)

    def run_in_thread(self, future: Any, function: Callable[..., Any], args: Any) -> None:
        self.threads.run(future, function, args)

    # Its network.

    def allows(self, address: Any) -> bool:
        """True for a real address that the test has allowed: a host, or one port of it."""
        host, port = address[:2] if isinstance(address, tuple) else (address, "")
        return not self.program.allow_real.isdisjoint((str(host), f"{host}:{port}"))

    def resolve(self, host: Any, port: Any) -> list[Any]:
        if self.world.place(self.name, host, port) is None:
            if self.allows((host, port)):
                return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
            raise address_refused(self.name, (host, port))
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, port))]

    def dial(self, host: Any, port: Any, peer: Any, done: Callable[[Any], None]) -> None:
        """Connect a peer to an address, which takes a round trip, or more behind a cut.

        Shapes:  done: gets the peer's carrier, or an OSError.
        Errors:  NotSimulated for an address that is not in the simulated network.
        """
        found = self.world.place(self.name, host, port)
        if found is None:
            raise address_refused(self.name, (host, port))
        self.keep(peer)
        retries_ms = iter(retry_s * 1_000 for retry_s in SYN_RETRIES_S)

        def answered(outcome: Any) -> None:
            if isinstance(outcome, OSError):
                self.forget(peer)
            else:
                peer.carrier = outcome
            done(outcome)

        def attempt(_: None) -> None:
            if not self.is_alive:
                return
            other = found if isinstance(found, int) else found.node
            if not self.world.stops(self.program.node, other):
                answered(self._connected(found, host, port, peer))
                return
            retry_ms = next(retries_ms, None)
            if retry_ms is None:
                answered(TimeoutError(errno.ETIMEDOUT, f"Connect call failed {(host, port)}"))
            else:
                self.rt.post(self.rt.now_ms + retry_ms, attempt, None)

        self.rt.post(self.rt.now_ms + self.world.delay_ms() + self.world.delay_ms(), attempt, None)

    def _connected(self, found: int | Serving, host: Any, port: Any, peer: Any) -> Any:
        """The carrier of a new connection, or the error where nobody listens."""
        refused = ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed {(host, port)}")
        if isinstance(found, int):
            carrier = self.world.listeners.connect(
                found,
                self.world.listener_at(host, port),
                self.name,
                peer,
                self.program.address,
                self.program.principal,
            )
            return refused if carrier is None else carrier
        if self.world.place(self.name, host, port) is not found:
            return refused  # it has ended meanwhile
        accepted = found.accept((self.program.address, self.next_port()))
        return self.world.join(peer, self.program.node, accepted, found.node)

    async def connect(
        self, loop: SimulatedLoop, protocol_factory: Callable[[], Any], host: Any, port: Any
    ) -> Any:
        switches.look()  # a client may have been imported by this very step
        if self.world.place(self.name, host, port) is None and self.allows((host, port)):
            real = RealTransport(loop, socket.create_connection((host, port)), self.forget)
            self.keep(real)
            real.begin(protocol_factory())
            return real, real.get_protocol()
        transport = self.transport(loop, (str(host), int(port)))
        connected = loop.create_future()

        def begin(outcome: Any) -> None:
            if isinstance(outcome, OSError):
                if not connected.done():
                    connected.set_exception(outcome)
            elif connected.done():  # nobody waits for it any more
                transport.carrier.abandon()
                self.forget(transport)
            else:
                transport.begin(protocol_factory())
                connected.set_result(None)

        done = lambda outcome: loop.arrival(transport, lambda: begin(outcome))  # noqa: E731
        self.dial(host, port, transport, done)
        await connected
        return transport, transport.get_protocol()

    async def listen(
        self, loop: SimulatedLoop, protocol_factory: Callable[[], Any], host: Any, port: Any
    ) -> Any:
        hosts = host if isinstance(host, list | tuple) else [host]
        names = [str(h) for h in hosts if h]
        server = Server(self, loop, protocol_factory, names, int(port or 0))
        server.open()
        self._servers.append(server)
        return server

    def transport(
        self,
        loop: SimulatedLoop,
        peername: tuple[str, int],
        sockname: tuple[str, int] | None = None,
    ) -> Transport:
        """The program's end of a connection."""
        if sockname is None:
            sockname = self.program.address, self.next_port()
        return Transport(
            loop,
            peername=peername,
            sockname=sockname,
            draw=lambda: next(self._pieces),
            closed=self.forget,
        )

    def next_port(self) -> int:
        """A port that no connection of the program has."""
        self._next_port += 1
        return self._next_port

    def keep(self, peer: Any) -> None:
        """A connection begins, which the system ends with the process."""
        self._peers[id(peer)] = peer

    def forget(self, peer: Any) -> None:
        """A connection has ended."""
        self._peers.pop(id(peer), None)


class Server(asyncio.AbstractServer):
    """A server of a program, at an address of the simulated network."""

    def __init__(
        self,
        owner: Incarnation,
        loop: SimulatedLoop,
        protocol_factory: Callable[[], Any],
        hosts: list[str],
        port: int,
    ) -> None:
        self._owner, self._loop, self._protocol_factory = owner, loop, protocol_factory
        self.node = owner.program.node
        self.address = owner.name, port or owner.next_port()
        self._hosts = [owner.name, *(host for host in hosts if host != owner.name)]
        self._ended: Any = None

    def open(self) -> None:
        """Listen.

        Errors:  OSError where another program does.
        """
        servers, port = self._owner.world.servers, self.address[1]
        for host in self._hosts:
            if (host, port) in servers:
                raise OSError(errno.EADDRINUSE, f"address {host}:{port} is in use")
            servers[host, port] = self
        self._ended = self._loop.create_future()

    def accept(self, peername: tuple[str, int]) -> Transport:
        """The program's end of a new connection."""
        transport = self._owner.transport(self._loop, peername, self.address)
        self._owner.keep(transport)
        begin = lambda: transport.begin(self._protocol_factory())  # noqa: E731
        self._loop.arrival(transport, begin)
        return transport

    @property
    def sockets(self) -> tuple[Any, ...]:
        return ()

    def get_loop(self) -> SimulatedLoop:
        return self._loop

    def is_serving(self) -> bool:
        return self._owner.world.servers.get(self.address) is self

    def close(self) -> None:
        servers = self._owner.world.servers
        for address in [a for a, server in servers.items() if server is self]:
            del servers[address]
        if self._owner.is_alive and not self._ended.done():
            self._ended.set_result(None)

    async def start_serving(self) -> None:
        """It does from the beginning."""

    async def serve_forever(self) -> None:
        try:
            await asyncio.shield(self._ended)
        finally:
            self.close()

    async def wait_closed(self) -> None:
        """Its connections end by themselves."""


def _is_coroutine_function(run: Any) -> bool:
    while hasattr(run, "func"):  # functools.partial
        run = run.func
    called = run if inspect.isroutine(run) else type(run).__call__
    return inspect.iscoroutinefunction(called)


def _never_free(suspended: Any) -> None:
    """Keep a coroutine of a killed process for good: freed, it would run its ``finally``."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(suspended))
