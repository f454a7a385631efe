"""The programs of a cluster, by name and by the node that each is in the network."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import inspect
import os
import sys
import warnings
from collections.abc import Awaitable, Callable, Iterable
from contextvars import Context
from pathlib import Path
from typing import Any

from minicluster.actors.programs import switches
from minicluster.actors.programs.program import Program
from minicluster.actors.programs.world import LogLine, World
from minicluster.errors import UserError
from minicluster.scenario.checks.limits import shown
from minicluster.security.principals import KafkaPrincipal

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None] | None]


class Programs:
    """All programs of one cluster.

    Shapes:  node_of: the id of a new node with a name.
    """

    def __init__(self, world: World, node_of: Callable[[str], int]) -> None:
        self.world = world
        self.by_name: dict[str, Program] = {}
        self.by_node: dict[int, Program] = {}
        self.served: set[str] = set()  # names of those that ``serve`` has started
        self._node_of = node_of
        switches.begin()

    @property
    def lines(self) -> list[LogLine]:
        """The latest lines that programs have logged."""
        return list(self.world.lines)

    def log_rows(self) -> list[dict[str, Any]]:
        """The log lines of programs as rows of ``program_log``, with their events and times."""
        return [
            {
                "vt": line.at_ms,
                "seq": line.seq,
                "node": self.by_name[line.program].node,
                "program": line.program,
                "process": line.incarnation,
                "level": line.level,
                "logger": line.logger,
                "text": line.text,
            }
            for line in self.world.lines
        ]

    @property
    def is_repeatable(self) -> bool:
        """True while no program may reach what is outside of the simulation."""
        return not any(program.allow_real for program in self.by_name.values())

    def add(
        self,
        name: str,
        run: str | Callable[[], Any],
        *,
        principal: KafkaPrincipal | None = None,
        allow_real: Iterable[str] = (),
        context: Context | None = None,
    ) -> Program:
        """Start a program under a name that is free.

        Shapes:  run: a function, or ``module:function``; principal: of its connections that do not
                 log in; allow_real: hosts outside.
        Errors:  UserError for a name that another program has, and where no function is found.
        """
        if name in self.by_name:
            raise UserError(f"app: there is an app {name} already; restart it, or name another")
        function = loaded(run) if isinstance(run, str) else run
        number, node = len(self.by_name), self._node_of(name)
        code = described(function)
        if isinstance(run, str):
            code["run"] = run
        allowed = frozenset(allow_real)
        if allowed:
            reached = ", ".join(sorted(allowed))
            warnings.warn(f"app {name} reaches {reached}: this run does not repeat", stacklevel=2)
        program = Program(
            self.world, name, node, number, function, code, principal, allow_real=allowed
        )
        self.by_name[name] = self.by_node[node] = program
        self.start(program, context)
        return program

    def begin(self, name: str, run: Callable[[], Any], context: Context) -> Program:
        """Run a function as a program of a name, or as its next incarnation."""
        program = self.by_name.get(name)
        if program is None:
            return self.add(name, run, context=context)
        program.run = run
        self.start(program, context)
        return program

    def start(self, program: Program, context: Context | None = None) -> None:
        """Start a program, for the first time or again."""
        switches.look()
        program.start(context)

    def serve(self, host: str, port: int, handler: Handler) -> Program:
        """A program that serves connections to an address, as ``asyncio.start_server`` does."""

        async def run() -> None:
            server = await asyncio.start_server(handler, host, port)
            await server.serve_forever()

        self.served.add(host)
        return self.add(host, run)

    def state(self) -> list[str]:
        """Each program in a line, for people."""
        return [f"app {program.name}: {program.current}" for program in self.by_name.values()]

    def close(self) -> None:
        """End every program; nothing of them runs any more."""
        for program in self.by_name.values():
            if program.is_running:
                program.current.end("stopped")
        switches.end()
        self.world.close()
        for program in self.by_name.values():
            for life in program.incarnations:
                life.release()
            del program.world

    def to_dict(self) -> list[dict[str, Any]]:
        """What ``run.json`` says of the programs: what a replay needs, and how each ended."""
        return [
            {
                "name": program.name,
                "node": program.node,
                **program.code,
                **({} if program.principal is None else {"user": str(program.principal)}),
                "allow_real": sorted(program.allow_real),
                "incarnations": [
                    {
                        "started_ms": life.started_ms,
                        "ended_ms": life.ended_ms if life.ended else None,
                        "ended": life.ended,
                        "error": None if life.error is None else _shown(life.error),
                        "error_read": life.error_read,
                        "paused": life.is_alive and life.is_paused,
                    }
                    for life in program.incarnations
                ],
            }
            for program in self.by_name.values()
        ]

    @property
    def versions(self) -> dict[str, str]:
        """The releases of Python and of the client libraries that are imported."""
        return {"python": sys.version.split()[0], **switches.versions()}


def _shown(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def loaded(run: str) -> Callable[[], Any]:
    """The function that ``module:function`` names, looked for in the current folder as well.

    Errors:  UserError in one line where there is none.
    """
    module_name, colon, names = run.partition(":")
    if not (colon and module_name and names):
        raise UserError(f"run: {shown(run)} is not module:function, such as shop.orders:main")
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)  # as `python -m` has it
    try:
        found: Any = importlib.import_module(module_name)
    except ImportError as error:
        raise UserError(f"run: {run}: cannot import {module_name}: {error}") from None
    for name in names.split("."):
        try:
            found = getattr(found, name)
        except AttributeError:
            raise UserError(f"run: {module_name} has no {names}") from None
    if not callable(found):
        raise UserError(f"run: {run} is no function")
    return found  # type: ignore[no-any-return]


def described(run: Callable[[], Any]) -> dict[str, Any]:
    """A program's code: its module and function, its file, the hash of the module's source."""
    while hasattr(run, "func"):  # functools.partial
        run = run.func
    module = getattr(run, "__module__", None) or type(run).__module__
    name = getattr(run, "__qualname__", type(run).__qualname__)
    try:
        source = inspect.getsourcefile(run if inspect.isroutine(run) else type(run))
        text = Path(source or "").read_bytes()
    except (OSError, TypeError):
        return {"run": f"{module}:{name}", "sha256": None}
    return {"run": f"{module}:{name}", "sha256": hashlib.sha256(text).hexdigest()}
