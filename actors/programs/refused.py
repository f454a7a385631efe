"""Calls that are not simulated: a program gets one clear line, never the real thing."""

from __future__ import annotations

import _thread
import asyncio
import atexit
import os
import signal
import socket
import subprocess
from collections.abc import Callable
from functools import partial
from multiprocessing.process import BaseProcess
from typing import Any

from minicluster.actors.runtime import tripwire
from minicluster.errors import MiniclusterError


class NotSimulated(MiniclusterError, RuntimeError):
    """A program wanted something that has no virtual time."""


def address_refused(program: str, address: object) -> NotSimulated:
    """The error for a connection to nothing inside the simulation."""
    shown = ":".join(map(str, address[:2])) if isinstance(address, tuple) else str(address)
    host, _, port = shown.rpartition(":")
    return NotSimulated(
        f"{program}: {shown} is not in the simulated network; bring a fake of it: "
        f'mini_cluster.service("{host or shown}", {port or 0}, handler)'
    )


def loop_refused(program: str, name: str) -> NotSimulated:
    """The error for a method of the event loop that needs the system."""
    return NotSimulated(f"{program}: loop.{name} is not simulated; give the program a fake of it")


_FAKE = "give the program a fake of it"
_CALLS: tuple[tuple[Any, str, str, str], ...] = (
    (subprocess.Popen, "__init__", "subprocess.Popen", _FAKE),
    (BaseProcess, "start", "multiprocessing.Process", "start an app for it, or a thread"),
    (_thread, "start_new_thread", "_thread.start_new_thread", "threading.Thread is"),
    *((os, name, f"os.{name}", _FAKE) for name in ("fork", "forkpty", "system")),
    *((os, name, f"os.{name}", _FAKE) for name in ("posix_spawn", "posix_spawnp")),
    *((os, name, f"os.{name}", _FAKE) for name in ("execv", "execve", "killpg", "abort")),
    *((signal, name, f"signal.{name}", "loop.call_later is") for name in ("alarm", "setitimer")),
)


class Refusals:
    """The calls that raise in a program's step, for as long as a cluster has programs."""

    def __init__(self) -> None:
        self._originals: list[tuple[Any, str, Any]] = []
        for owner, name, called, instead in _CALLS:
            if hasattr(owner, name):
                self._put(owner, name, _refusing(called, instead))
        for name in ("connect", "connect_ex", "bind", "sendto"):
            self._put(socket.socket, name, _refusing_address(lambda args: args[-1]))
        for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex"):
            self._put(socket, name, _refusing_address(lambda args: args[:2]))
        self._put(socket, "gethostname", _of_program(lambda program: program.name))
        self._put(socket, "getfqdn", _of_program(lambda program: program.name))
        self._put(os, "getpid", _of_program(lambda program: program.pid))
        self._put(signal, "signal", _handling)
        self._put(signal, "raise_signal", _signalling(lambda program, number: number))
        self._put(os, "kill", _signalling(_of_itself))
        self._put(os, "_exit", _exiting)
        self._put(atexit, "register", _registering)
        self._put(atexit, "unregister", _unregistering)
        for module in (asyncio, asyncio.events):
            self._put(module, "new_event_loop", _of_program(lambda program: program.new_loop()))

    def close(self) -> None:
        """Let every call be the real one again."""
        while self._originals:
            owner, name, original = self._originals.pop()
            setattr(owner, name, original)

    def _put(self, owner: Any, name: str, wrap: Callable[[Callable[..., Any]], Any]) -> None:
        original = getattr(owner, name)
        self._originals.append((owner, name, owner.__dict__.get(name, original)))
        setattr(owner, name, wrap(original))


def _refusing(called: str, instead: str) -> Callable[[Callable[..., Any]], Any]:
    def wrap(original: Callable[..., Any]) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            program: Any = tripwire.program()
            if program is None:
                return original(*args, **kwargs)
            raise NotSimulated(f"{program.name}: {called} is not simulated; {instead}")

        return call

    return wrap


def _refusing_address(
    address_of: Callable[[tuple[Any, ...]], Any],
) -> Callable[[Callable[..., Any]], Any]:
    def wrap(original: Callable[..., Any]) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            program: Any = tripwire.program()
            if program is None or program.allows(address_of(args)):
                return original(*args, **kwargs)
            raise address_refused(program.name, address_of(args))

        return call

    return wrap


def _of_program(answer: Callable[[Any], Any]) -> Callable[[Callable[..., Any]], Any]:
    """A fact of the machine that differs from one to the next."""

    def wrap(original: Callable[..., Any]) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            program: Any = tripwire.program()
            return original(*args, **kwargs) if program is None else answer(program)

        return call

    return wrap


def _registering(original: Callable[..., Any]) -> Any:
    """What a program wants called at its exit is called at the exit of its process."""

    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        program: Any = tripwire.program()
        if program is None:
            return original(function, *args, **kwargs)
        at_exit = partial(function, *args, **kwargs)
        program.at_exit.append(at_exit)
        return function

    return call


def _unregistering(original: Callable[..., Any]) -> Any:
    def call(function: Any) -> None:
        program: Any = tripwire.program()
        if program is None:
            original(function)
        else:
            program.at_exit[:] = [kept for kept in program.at_exit if kept.func != function]

    return call


def _signalling(number_of: Callable[..., int]) -> Callable[[Callable[..., Any]], Any]:
    """A signal that a program sends to itself is one of the simulation, as ``terminate`` is."""

    def wrap(original: Callable[..., Any]) -> Any:
        def call(*args: Any) -> None:
            program: Any = tripwire.program()
            if program is None:
                original(*args)
            else:
                program.signal(number_of(program, *args))
                program.ends_here_if_dead()

        return call

    return wrap


def _of_itself(program: Any, pid: int, number: int) -> int:
    if pid != program.pid:
        raise NotSimulated(
            f"{program.name}: os.kill of process {pid} is not simulated; a test has kill and "
            "terminate of an app"
        )
    return number


def _exiting(original: Callable[..., Any]) -> Any:
    """``os._exit``: no other task is cancelled, and no handler of the exit is called."""

    def call(code: int) -> None:
        program: Any = tripwire.program()
        if program is None:
            original(code)
        else:
            program.exited(SystemExit(code))
            program.ends_here_if_dead()

    return call


def _handling(original: Callable[..., Any]) -> Any:
    """A program's handlers of signals are its own: ``terminate`` calls them."""

    def call(number: Any, handler: Any) -> Any:
        program: Any = tripwire.program()
        return original(number, handler) if program is None else program.handle(number, handler)

    return call
