"""Fakes of what a program connects to, and programs that connect to each other."""

from __future__ import annotations

import asyncio

from minicluster import MiniCluster


class Database:
    """A table behind a line protocol."""

    def __init__(self) -> None:
        self.rows: list[bytes] = []
        self.left = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            self.rows.append(line.strip())
            writer.write(b"ok %d\n" % len(self.rows))
            await writer.drain()
        self.left += 1
        writer.close()


async def store(count: int = 5) -> list[bytes]:
    """Store rows, one a second."""
    reader, writer = await asyncio.open_connection("db", 5432)
    said = []
    for number in range(count):
        writer.write(b"row %d\n" % number)
        said.append(await reader.readline())
        await asyncio.sleep(1)
    writer.close()
    await writer.wait_closed()
    return said


def test_a_fake_of_a_database_answers_in_virtual_time(mini_cluster: MiniCluster) -> None:
    database = Database()
    service = mini_cluster.service("db", 5432, database.handle)
    app = mini_cluster.app("shop", store)
    mini_cluster.wait_until(lambda: not app.is_running)
    assert app.result == [b"ok %d\n" % number for number in range(1, 6)]
    assert database.rows[0] == b"row 0"
    mini_cluster.run_for("1s")
    assert database.left == 1
    assert service.is_running and service.name == "db"


def test_a_killed_program_ends_its_connections_and_so_does_a_killed_service(
    mini_cluster: MiniCluster,
) -> None:
    database = Database()
    service = mini_cluster.service("db", 5432, database.handle)
    app = mini_cluster.app("shop", store)
    mini_cluster.run_for("1500ms")
    app.kill()
    mini_cluster.run_for("1s")
    assert database.left == 1

    app.restart()
    mini_cluster.run_for("1500ms")
    service.kill()
    mini_cluster.wait_until(lambda: not app.is_running)
    assert app.result[-1] == b""
    app.restart()
    mini_cluster.run_for("1s")
    assert isinstance(app.error, RuntimeError)  # nobody serves the address: the host is not known
    service.restart()
    app.restart()
    mini_cluster.wait_until(lambda: not app.is_running)
    assert app.error is None and len(app.result) == 5


def test_a_cut_between_programs_delays_what_they_say(mini_cluster: MiniCluster) -> None:
    database = Database()
    service = mini_cluster.service("db", 5432, database.handle)
    app = mini_cluster.app("shop", store)
    mini_cluster.run_for("1500ms")
    mini_cluster.cut(app, service, lasting="10s")
    mini_cluster.run_for("9s")
    assert len(database.rows) == 2
    mini_cluster.wait_until(lambda: not app.is_running, within="20s")
    assert app.result == [b"ok %d\n" % number for number in range(1, 6)]
