"""The event loop of a simulated program: asyncio's own, with the runtime in place of a selector.

A step of the loop is a call that the runtime makes at an instant of the cluster's clock, like the
arrival of a packet. It runs callbacks until none is ready. Nothing sleeps: the next step is due
when the first timer of the loop is, or when something has arrived on a connection.

``call_soon`` stays first in, first out, as asyncio documents it and programs rely on. Chance
decides what a real system leaves open: how long after an arrival the process runs, which of the
connections that are ready comes first, and the order of sets of tasks.

**All uses of asyncio's private names are in this file.** ``test_asyncio.py`` looks whether they
are there.
"""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from asyncio import events
from asyncio.sslproto import SSLProtocol
from collections.abc import Callable
from heapq import heappop
from ssl import create_default_context
from typing import Any, Protocol

from minicluster.actors.programs.refused import loop_refused
from minicluster.actors.runtime import chance
from minicluster.actors.runtime.runtime import Runtime

LATENCY_MAX_MS = 2  # of a process that something has arrived for
SPIN_STEPS = 2_000  # iterations in one step; then they cost a millisecond
_EARLY_MS = 1e-3  # by which a timer may be due before a whole millisecond: floats


class Host(Protocol):
    """The process that a loop belongs to.

    Shapes:  shuffles: chance decides the order of connections and the latency.
    """

    name: str
    rt: Runtime
    source: int  # of chance
    shuffles: bool
    is_alive: bool
    is_paused: bool

    def look_us(self) -> int:
        """The clock."""

    def begin_step(self, loop: SimulatedLoop) -> Any:
        """The process runs from now on; -> what ``end_step`` takes."""

    def end_step(self, before: Any) -> None:
        """It does not run any more."""

    def exited(self, error: SystemExit) -> None:
        """A callback has ended the process: ``sys.exit`` in a task."""

    async def connect(
        self, loop: SimulatedLoop, protocol_factory: Callable[[], Any], host: Any, port: Any
    ) -> Any:
        """A transport to an address of the simulated network, and its protocol."""

    async def listen(
        self, loop: SimulatedLoop, protocol_factory: Callable[[], Any], host: Any, port: Any
    ) -> Any:
        """A server at an address of the simulated network."""

    def resolve(self, host: Any, port: Any) -> list[Any]:
        """The result of ``getaddrinfo``."""

    def block(self, holds: Callable[[], bool], timeout_s: float | None, waiting: list[Any]) -> bool:
        """Wait in the thread that calls this."""

    def run_in_thread(self, future: Any, function: Callable[..., Any], args: Any) -> None:
        """Run a function beside the loop, and set its future."""

    def handle(self, number: int, handler: Any) -> Any:
        """Set the handler of a signal; -> the one before."""


class SeededTask(asyncio.Task[Any]):
    """A task whose place in sets is of the seed, not of its address: ``asyncio.wait``."""

    def __init__(self, coro: Any, *, loop: SimulatedLoop, **options: Any) -> None:
        self._place = loop.next_place()
        super().__init__(coro, loop=loop, **options)

    def __hash__(self) -> int:
        return self._place


class SeededFuture(asyncio.Future[Any]):
    """The same for a future."""

    def __init__(self, *, loop: SimulatedLoop) -> None:
        self._place = loop.next_place()
        super().__init__(loop=loop)

    def __hash__(self) -> int:
        return self._place


class SimulatedLoop(asyncio.BaseEventLoop):
    """A loop of one process: the first runs by itself, others while a thread runs them."""

    # asyncio's own, of which typeshed knows nothing.
    _closed: bool
    _ready: Any
    _scheduled: Any
    _stopping: bool
    _thread_id: int | None
    _timer_cancelled_count: int

    def __init__(self, host: Host, number: int = 0) -> None:
        super().__init__()
        self.host, self.rt = host, host.rt
        self.steps = 0
        self._clock_resolution = 1e-6
        self._selector = self  # of ``_run_once``
        self._arrived: dict[Any, list[Callable[[], None]]] = {}  # by connection
        self._step_at: int | None = None  # the step that is posted
        self._stepping = False
        self._runs = number == 0
        self._waiting: list[Any] = []  # the thread that runs it
        source = chance.draw(host.source, number)
        self._latencies = chance.draws(source, 1, 2)
        self._places = chance.draws(source, 2, 2)
        self._tasks_made = 0
        self.set_task_factory(_new_task)

    # What asyncio asks for.

    def time(self) -> float:
        return self.host.look_us() / 1_000_000

    def select(self, timeout: float | None = None) -> list[Any]:
        """Nothing is ever ready here: arrivals are posted."""
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        """There is no event."""

    def _write_to_self(self) -> None:
        self._wake(self.rt.now_ms)

    def create_future(self) -> asyncio.Future[Any]:
        return SeededFuture(loop=self)

    def next_place(self) -> int:
        """The hash of the next task or future."""
        return next(self._places) >> 3

    def next_name(self) -> str:
        """The name of the next task; asyncio's own count all tasks of the interpreter."""
        self._tasks_made += 1
        return f"Task-{self._tasks_made}"

    def call_soon(  # type: ignore[override]
        self, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.Handle:
        handle = super().call_soon(callback, *args, context=context)
        if not self._stepping:
            self._wake(self.rt.now_ms)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Any, *args: Any, context: Any = None
    ) -> asyncio.TimerHandle:
        handle = super().call_at(when, callback, *args, context=context)
        if not self._stepping:
            self._wake(_due_ms(when))
        return handle

    def run_forever(self) -> None:
        """Let a thread run the loop: it takes its steps while the thread waits here."""
        self._check_closed()  # type: ignore[attr-defined]
        self._check_running()  # type: ignore[attr-defined]
        self._runs = True
        self._wake(self.rt.now_ms)
        try:
            self.host.block(lambda: self._stopping, None, self._waiting)
        finally:
            self._runs = self._stopping = False

    def is_running(self) -> bool:
        return self._thread_id is not None

    # Steps.

    def latency_ms(self) -> int:
        """A draw of how long the process takes to run once something has arrived for it."""
        return next(self._latencies) % (LATENCY_MAX_MS + 1) if self.host.shuffles else 0

    def arrival(self, connection: Any, call: Callable[[], None]) -> None:
        """Something has arrived on a connection, as an event of a selector."""
        self._arrived.setdefault(connection, []).append(call)
        self._wake(self.rt.now_ms + self.latency_ms())

    def arrival_of(self, arrival: tuple[Any, Callable[[], None]]) -> None:
        """The same, for the runtime to call."""
        self.arrival(*arrival)

    def wake(self) -> None:
        """Take a step now: the process has been paused."""
        self._wake(self.rt.now_ms)

    def _wake(self, at_ms: int) -> None:
        if not self._stepping and (self._step_at is None or at_ms < self._step_at):
            self._step_at = at_ms = max(at_ms, self.rt.now_ms)
            self.rt.post(at_ms, self._step, at_ms)

    def _step(self, at_ms: int) -> None:
        host = self.host
        if at_ms != self._step_at or not host.is_alive:
            return  # an earlier step was posted after this one, or the process has ended
        self._step_at = None
        if self._stands:
            return  # it is woken when it continues
        self._stepping = True
        before = host.begin_step(self)
        running, hooks = events._get_running_loop(), sys.get_asyncgen_hooks()
        self.enter()
        spun = 0
        try:
            while host.is_alive and not host.is_paused:
                if self._arrived:
                    self._take_arrivals()
                self._run_once()  # type: ignore[attr-defined]
                spun += 1
                if self._stopping or not (self._ready or self._arrived) or spun == SPIN_STEPS:
                    break
        except SystemExit as error:  # Ctrl-C ends the test
            host.exited(error)
        finally:
            self._thread_id = None
            events._set_running_loop(running)
            sys.set_asyncgen_hooks(*hooks)
            host.end_step(before)
            self._stepping = False
            self.steps += spun
        if self._stopping:
            for carried in self._waiting:
                carried.wake()
        elif self._ready or self._arrived:
            self._wake(self.rt.now_ms + (spun == SPIN_STEPS))
        elif (when := self._first_timer()) is not None:
            self._wake(_due_ms(when))

    def enter(self) -> None:
        """Be the running loop of this thread."""
        self._thread_id = threading.get_ident()
        events._set_running_loop(self)
        sys.set_asyncgen_hooks(
            firstiter=self._asyncgen_firstiter_hook,  # type: ignore[attr-defined]
            finalizer=self._asyncgen_finalizer_hook,  # type: ignore[attr-defined]
        )

    def leave(self) -> None:
        """Wait inside a step while others run."""
        self._thread_id = None
        events._set_running_loop(None)
        sys.set_asyncgen_hooks(None, None)

    @property
    def _stands(self) -> bool:
        return self.host.is_paused or self._stopping or not self._runs

    def _take_arrivals(self) -> None:
        arrived, self._arrived = list(self._arrived.values()), {}
        if len(arrived) > 1 and self.host.shuffles:  # a selector promises no order
            arrived.sort(key=lambda _: next(self._latencies))
        for calls in arrived:
            for call in calls:
                super().call_soon(call)

    def _first_timer(self) -> float | None:
        """When the first timer that is not cancelled is due."""
        scheduled = self._scheduled
        while scheduled and scheduled[0]._cancelled:
            self._timer_cancelled_count -= 1
            heappop(scheduled)._scheduled = False
        return float(scheduled[0]._when) if scheduled else None

    def end(self) -> None:
        """Let no trace of a process that has ended be logged; its tasks are kept as they are."""
        self.set_exception_handler(lambda loop, context: None)
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    def release(self) -> None:
        """Hold nothing of the cluster, which has ended; what is freed later finds a closed loop."""
        self._closed = True
        self._ready.clear()
        self._scheduled.clear()
        self._arrived.clear()
        del self.host, self.rt

    @property
    def suspended(self) -> list[Any]:
        """The tasks and generators that would run their ``finally`` if they were freed."""
        return [*asyncio.all_tasks(self), *self._asyncgens]  # type: ignore[attr-defined]

    # The network, threads, signals.

    async def create_connection(
        self,
        protocol_factory: Callable[[], Any],
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        **options: Any,
    ) -> Any:
        if sock is not None:
            raise loop_refused(self.host.name, "create_connection(sock=…)")
        if ssl:
            return await self._connect_by_tls(protocol_factory, host, port, ssl, options)
        return await self.host.connect(self, protocol_factory, host, port)

    async def _connect_by_tls(
        self, protocol_factory: Callable[[], Any], host: Any, port: Any, context: Any, options: Any
    ) -> Any:
        protocol, ready = protocol_factory(), self.create_future()
        tls = SSLProtocol(
            self,
            protocol,
            create_default_context() if context is True else context,
            ready,
            server_hostname=options.get("server_hostname") or host,
            ssl_handshake_timeout=options.get("ssl_handshake_timeout"),
            ssl_shutdown_timeout=options.get("ssl_shutdown_timeout"),
        )
        transport, _ = await self.host.connect(self, lambda: tls, host, port)
        try:
            await ready
        except BaseException:
            transport.close()
            raise
        return tls._app_transport, protocol

    async def create_server(
        self,
        protocol_factory: Callable[[], Any],
        host: Any = None,
        port: Any = None,
        *,
        ssl: Any = None,
        sock: Any = None,
        **options: Any,
    ) -> Any:
        if sock is not None or ssl:
            raise loop_refused(self.host.name, "create_server(sock=…, ssl=…)")
        return await self.host.listen(self, protocol_factory, host, port)

    async def getaddrinfo(self, host: Any, port: Any, **options: Any) -> Any:
        return self.host.resolve(host, port)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        future = self.create_future()
        self.host.run_in_thread(future, func, args)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Its threads end by themselves."""

    def add_signal_handler(  # type: ignore[override]
        self, sig: int, callback: Any, *args: Any
    ) -> None:
        self.host.handle(sig, lambda *_: self.call_soon(callback, *args))

    def remove_signal_handler(self, sig: int) -> bool:
        return self.host.handle(sig, None) is not None


def _refusing(name: str) -> Any:
    def refuse(self: SimulatedLoop, *args: Any, **options: Any) -> Any:
        raise loop_refused(self.host.name, name)

    return refuse


for _name in (
    "sock_connect", "sock_recv", "sock_recv_into", "sock_recvfrom", "sock_sendall", "sock_sendto",
    "sock_accept", "sock_sendfile", "add_reader", "add_writer", "remove_reader", "remove_writer",
    "create_datagram_endpoint", "create_unix_connection", "create_unix_server", "start_tls",
    "connect_accepted_socket", "subprocess_exec", "subprocess_shell", "connect_read_pipe",
    "connect_write_pipe", "sendfile",
):  # fmt: skip
    setattr(SimulatedLoop, _name, _refusing(_name))


def _new_task(loop: Any, coro: Any, **options: Any) -> SeededTask:
    if options.get("name") is None:
        options["name"] = loop.next_name()
    return SeededTask(coro, loop=loop, **options)


def _due_ms(when: float) -> int:
    return math.ceil(when * 1_000 - _EARLY_MS)
