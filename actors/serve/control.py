"""The control socket of a serving cluster: a line of JSON each way on the loopback.

One connection is one step. Every bound here keeps a peer that means harm from costing more than
its own connection: bytes of a line, seconds until it is whole, connections at a time.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import threading
from collections.abc import Callable
from typing import Any

from minicluster.actors.listeners.address import LOOPBACK
from minicluster.actors.listeners.endpoints import shown_address
from minicluster.actors.runtime.threaded import STOP_TIMEOUT_S
from minicluster.actors.serve.control_lines import LINE_BYTES_MAX, Response, read_request
from minicluster.errors import UserError
from minicluster.scenario.scenario import Step
from minicluster.values import Value, replace

CONNECTIONS_MAX = 32
LINE_WITHIN_S = 10.0
LAST_WITHIN_S = 0.5
ALIVE_EVERY_S = 5.0  # an empty line, while a step takes its time
TOKEN_BYTES = 24


class Command(Value):
    """A step from the control socket, and where its response goes."""

    step: Step
    respond: Callable[[Response], None]


class ControlServer:
    """The socket and its thread; steps go to ``submit``, which may be called from that thread.

    Shapes:  name: of the cluster, which every response carries.
    """

    def __init__(
        self,
        submit: Callable[[Command], None],
        *,
        name: str,
        line_within_s: float = LINE_WITHIN_S,
    ) -> None:
        self._name = name
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._submit = submit
        self._line_within_s = line_within_s
        self._listening = socket.create_server((LOOPBACK, 0))
        self.address = shown_address(*self._listening.getsockname()[:2])
        self._connections: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._stopping = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="minicluster-control", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End every connection and the thread."""
        with contextlib.suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(STOP_TIMEOUT_S)

    # In the thread.

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._serve())
        finally:
            self._loop.close()

    async def _serve(self) -> None:
        server = await asyncio.start_server(
            self._connected, sock=self._listening, limit=LINE_BYTES_MAX
        )
        await self._stopping.wait()
        server.close()
        if self._connections:  # the last responses leave first
            await asyncio.wait(self._connections, timeout=LAST_WITHIN_S)
        left = list(self._connections)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task: Any = asyncio.current_task()
        self._connections.add(task)
        try:
            if len(self._connections) <= CONNECTIONS_MAX:
                response = await self._response(reader, writer)
                writer.write(replace(response, cluster=self._name).line())
                await asyncio.wait_for(writer.drain(), self._line_within_s)
        except (OSError, asyncio.CancelledError, TimeoutError):
            pass  # the peer has left, or the cluster ends
        finally:
            self._connections.discard(task)
            writer.close()

    async def _response(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> Response:
        try:
            line = await asyncio.wait_for(reader.readuntil(b"\n"), self._line_within_s)
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            text = f"a request is one line of at most {LINE_BYTES_MAX} bytes, sent at once"
            return Response(text=text, exit_code=UserError.exit_code)
        try:
            step = read_request(line, self.token)
        except UserError as error:
            return Response(text=str(error), exit_code=error.exit_code)
        responded: asyncio.Future[Response] = self._loop.create_future()

        def respond(response: Response) -> None:
            def set_response() -> None:
                if not responded.done():
                    responded.set_result(response)

            with contextlib.suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(set_response)

        self._submit(Command(step, respond))
        while True:
            done, _ = await asyncio.wait([responded], timeout=ALIVE_EVERY_S)
            if done:
                return responded.result()
            writer.write(b"\n")
            await writer.drain()
