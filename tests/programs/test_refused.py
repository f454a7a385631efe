"""What is not simulated ends in one clear line, and never in the real thing."""

from __future__ import annotations

import _thread
import asyncio
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside


def test_each_call_that_would_leave_the_simulation_is_refused(mini_cluster: MiniCluster) -> None:
    refused: dict[str, Callable[[], Any]] = {
        "shop: 127.0.0.1:5432 is not in the simulated network": lambda: socket.create_connection(
            ("127.0.0.1", 5432)
        ),
        "shop: db:5432 is not in the simulated network": lambda: socket.getaddrinfo("db", 5432),
        "shop: subprocess.Popen is not simulated": lambda: subprocess.run(["true"], check=True),
        "shop: os.system is not simulated": lambda: os.system("true"),
        "shop: os.posix_spawn is not simulated": lambda: os.posix_spawn("/bin/true", ["true"], {}),
        "shop: multiprocessing.Process is not simulated": lambda: multiprocessing.Process().start(),
        "shop: _thread.start_new_thread is not simulated": lambda: _thread.start_new_thread(
            print, ()
        ),
        "shop: 127.0.0.1:8125 is not in the simulated network": lambda: socket.socket(
            type=socket.SOCK_DGRAM
        ).sendto(b"orders:1|c", ("127.0.0.1", 8125)),
        "shop: os.kill of process 1 is not simulated": lambda: os.kill(1, signal.SIGTERM),
        "shop: signal.alarm is not simulated": lambda: signal.alarm(1),
        "shop: loop.add_reader is not simulated": lambda: asyncio.get_running_loop().add_reader(
            0, print
        ),
    }

    async def main() -> dict[str, BaseException | None]:
        said: dict[str, BaseException | None] = {}
        for line, call in refused.items():
            try:
                call()
                said[line] = None
            except RuntimeError as error:
                said[line] = error
        for line, there in (
            ("shop: db:5432 is not in the simulated network", ("db", 5432)),
            ("shop: example.org:443 is not in the simulated network", ("example.org", 443)),
        ):
            try:
                await asyncio.open_connection(*there)
                said[line] = None
            except RuntimeError as error:
                said[line] = error
        return said

    app = mini_cluster.app("shop", main)
    mini_cluster.wait_until(lambda: not app.is_running)
    assert app.error is None
    for line, error in app.result.items():
        assert str(error).startswith(line)
        assert "\n" not in str(error)
    assert 'mini_cluster.service("db", 5432, handler)' in str(
        app.result["shop: db:5432 is not in the simulated network"]
    )
    command = [sys.executable, "-c", ""]
    assert subprocess.run(command, check=True).returncode == 0  # in the test all is real


def test_a_program_that_nobody_handles_signals_for_ends_as_it_would(
    mini_cluster: MiniCluster,
) -> None:
    cleaned: list[str] = []

    async def main() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            cleaned.append("up")

    app = mini_cluster.app("shop", main)
    mini_cluster.run_for("1s")
    app.terminate()
    mini_cluster.run_for("1s")
    assert not app.is_running and not cleaned  # Python has no handler for SIGTERM
    app.restart()
    mini_cluster.run_for("1s")
    app.terminate("SIGINT")
    mini_cluster.run_for("1s")
    assert not app.is_running and cleaned == ["up"]


def test_a_signal_that_a_program_sends_to_itself_is_its_own(mini_cluster: MiniCluster) -> None:
    after: list[str] = []

    async def main() -> str:
        ends = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ends.set)
        os.kill(os.getpid(), signal.SIGTERM)
        await ends.wait()
        return "handled"

    async def unhandled() -> None:
        signal.raise_signal(signal.SIGTERM)
        after.append("a line of a dead process")

    async def at_once() -> None:
        os._exit(3)

    handled = mini_cluster.app("handled", main)
    others = mini_cluster.app("unhandled", unhandled), mini_cluster.app("at-once", at_once)
    mini_cluster.run_for("1s")
    assert handled.result == "handled"
    assert not any(app.is_running for app in others) and not after
    assert others[0].error is None and isinstance(others[1].error, SystemExit)


@pytest.mark.parametrize("code", [0, 3])
def test_sys_exit_ends_a_program(mini_cluster: MiniCluster, code: int) -> None:
    async def main() -> None:
        raise SystemExit(code)

    app = mini_cluster.app("shop", main)
    mini_cluster.run_for("1s")
    assert not app.is_running
    assert (app.error is None) == (code == 0)


def test_what_a_test_allows_is_real_and_its_run_does_not_repeat(mini_cluster: MiniCluster) -> None:
    """An echo server on a real socket, reached with asyncio's streams and with a plain socket."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]

        def echo() -> None:
            for _ in range(2):
                accepted, _ = listening.accept()
                with accepted:
                    while data := accepted.recv(100):
                        accepted.sendall(data.upper())

        server = threading.Thread(target=echo, daemon=True)
        server.start()

        async def main() -> tuple[bytes, bytes, bytes]:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"one\n")
            first = await reader.readline()
            writer.write(b"two\n")
            second = await reader.readline()
            writer.close()
            await writer.wait_closed()
            with socket.create_connection(("127.0.0.1", port)) as plain:
                plain.sendall(b"three")
                return first, second, plain.recv(100)

        with pytest.warns(UserWarning, match=r"app shop reaches 127\.0\.0\.1: this run does not"):
            app = mini_cluster.app("shop", main, allow_real="127.0.0.1")
        mini_cluster.wait_until(lambda: not app.is_running)
    assert app.error is None and app.result == (b"ONE\n", b"TWO\n", b"THREE")
    assert not inside(mini_cluster).is_repeatable
