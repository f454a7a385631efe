"""What is not simulated ends in one clear line, and never in the real thing."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from minicluster import MiniCluster


def test_each_call_that_would_leave_the_simulation_is_refused(mini_cluster: MiniCluster) -> None:
    refused: dict[str, Callable[[], Any]] = {
        "shop: 127.0.0.1:5432 is not in the simulated network": lambda: socket.create_connection(
            ("127.0.0.1", 5432)
        ),
        "shop: db:5432 is not in the simulated network": lambda: socket.getaddrinfo("db", 5432),
        "shop: subprocess.Popen is not simulated": lambda: subprocess.run(["true"], check=True),
        "shop: os.system is not simulated": lambda: os.system("true"),
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
    assert subprocess.run(["true"], check=True).returncode == 0  # in the test all is real


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


@pytest.mark.parametrize("code", [0, 3])
def test_sys_exit_ends_a_program(mini_cluster: MiniCluster, code: int) -> None:
    async def main() -> None:
        raise SystemExit(code)

    app = mini_cluster.app("shop", main)
    mini_cluster.run_for("1s")
    assert not app.is_running
    assert (app.error is None) == (code == 0)
