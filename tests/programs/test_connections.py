"""Connections of programs: what listeners with sockets do, they do in memory as well."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.listeners.memory import WINDOW_BYTES
from minicluster.protocol.messages import DescribeConfigsRequest, MetadataRequest
from tests.listeners.raw_client import frame

ALL_TOPICS = MetadataRequest(topics=None)


@pytest.fixture
def one_broker(mini_cluster_factory: Callable[..., MiniCluster]) -> Callable[..., MiniCluster]:
    return lambda **config: mini_cluster_factory(brokers=1, controllers=1, seed=7, config=config)


async def connect() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("node1", 9091, limit=2**24)


async def response(reader: asyncio.StreamReader) -> int:
    """The correlation id of the next response."""
    size = int.from_bytes(await reader.readexactly(4), "big")
    return int.from_bytes((await reader.readexactly(size))[:4], "big")


def result_of(cluster: MiniCluster, main: Any, name: str = "app") -> Any:
    app = cluster.app(name, main)
    cluster.wait_until(lambda: not app.is_running, within="30m")
    if app.error is not None:
        raise app.error
    return app.result


def lines(cluster: MiniCluster, event: str) -> list[Any]:
    return [entry for entry in inside(cluster).log.entries if entry["event"] == event]


def test_pipelined_requests_do_not_wait_for_the_way_of_earlier_responses(
    one_broker: Callable[..., MiniCluster],
) -> None:
    async def main() -> tuple[list[int], float]:
        reader, writer = await connect()
        began = time.monotonic()
        writer.write(b"".join(frame(ALL_TOPICS, 9, number) for number in range(20)))
        ids = [await response(reader) for _ in range(20)]
        return ids, time.monotonic() - began

    cluster = one_broker()
    ids, took_s = result_of(cluster, main)
    assert ids == [*range(20)] and took_s < 0.2
    cluster.delay("brokers", "app(app)", "500ms", distribution="fixed")
    cluster.restart("app(app)")
    cluster.wait_until(lambda: not cluster.apps[0].is_running)
    ids, took_s = cluster.apps[0].result
    assert ids == [*range(20)] and 0.5 < took_s < 0.7


def test_a_response_that_left_a_dying_broker_arrives_before_the_end(
    one_broker: Callable[..., MiniCluster],
) -> None:
    async def main() -> tuple[int, bytes]:
        reader, writer = await connect()
        writer.write(frame(ALL_TOPICS, 9, 7))
        return await response(reader), await reader.read()

    cluster = one_broker()
    app = cluster.app("app", main)
    cluster.delay("brokers", app, "500ms", distribution="fixed")
    cluster.run_for("200ms")
    cluster.kill(1)
    cluster.wait_until(lambda: not app.is_running)
    assert app.error is None and app.result == (7, b"")


def test_a_request_to_a_killed_broker_ends_its_connection(
    one_broker: Callable[..., MiniCluster],
) -> None:
    async def main() -> bytes:
        reader, writer = await connect()
        await asyncio.sleep(1)
        writer.write(frame(ALL_TOPICS, 9, 7))
        return await reader.read()

    cluster = one_broker()
    app = cluster.app("app", main)
    cluster.run_for("500ms")
    cluster.kill(1, connections="reset")
    cluster.wait_until(lambda: not app.is_running)
    assert isinstance(app.error, ConnectionResetError)

    app.restart()
    cluster.wait_until(lambda: not app.is_running)
    assert isinstance(app.error, ConnectionRefusedError)  # nobody listens


def test_a_connection_through_a_cut_is_tried_until_the_cut_ends(
    one_broker: Callable[..., MiniCluster],
) -> None:
    async def main() -> float:
        began = time.monotonic()
        await connect()
        return time.monotonic() - began

    cluster = one_broker()
    result_of(cluster, main)
    cluster.cut("brokers", "app(app)", lasting="5s")
    cluster.restart("app(app)")
    cluster.wait_until(lambda: not cluster.apps[0].is_running)
    assert 5 < cluster.apps[0].result < 8  # Linux sends SYN again after 1, 3, 7 s
    cluster.cut("brokers", "app(app)")
    cluster.restart("app(app)")
    cluster.wait_until(lambda: not cluster.apps[0].is_running, within="10m")
    assert isinstance(cluster.apps[0].error, TimeoutError)


def test_a_program_that_never_reads_costs_a_window_of_responses(
    one_broker: Callable[..., MiniCluster],
) -> None:
    resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=4, resource_name="1")
    request = DescribeConfigsRequest(
        resources=(resource,), include_synonyms=True, include_documentation=True
    )

    async def main() -> list[int]:
        reader, writer = await asyncio.open_connection("node1", 9091, limit=1)
        writer.write(b"".join(frame(request, 4, number) for number in range(100)))
        await asyncio.sleep(60)
        return [await response(reader) for _ in range(100)]

    cluster = one_broker()
    app = cluster.app("app", main)
    cluster.run_for("5s")
    served = inside(cluster).programs.world.listeners.served
    [connection] = served.connections.values()
    handled = served.requests
    assert WINDOW_BYTES < connection.carrier.unread < 2 * WINDOW_BYTES
    cluster.run_for("30s")
    assert served.requests == handled < 20
    cluster.wait_until(lambda: not app.is_running)
    assert app.error is None and app.result == [*range(100)]


def test_responses_come_in_pieces_now_and_then(one_broker: Callable[..., MiniCluster]) -> None:
    class Pieces(asyncio.Protocol):
        def __init__(self) -> None:
            self.pieces: list[bytes] = []

        def data_received(self, data: bytes) -> None:
            self.pieces.append(data)

    async def main() -> list[bytes]:
        loop = asyncio.get_running_loop()
        transport, protocol = await loop.create_connection(Pieces, "node1", 9091)
        for number in range(100):
            transport.write(frame(ALL_TOPICS, 9, number))
            await asyncio.sleep(0.05)
        return protocol.pieces

    pieces = result_of(one_broker(), main)
    assert 105 < len(pieces) < 125
    whole = b"".join(pieces)
    assert [*ids_of(whole)] == [*range(100)]


def ids_of(data: bytes) -> Iterator[int]:
    while data:
        size = int.from_bytes(data[:4], "big")
        yield int.from_bytes(data[4:8], "big")
        data = data[4 + size :]


def test_the_limits_of_a_broker_hold_for_programs(one_broker: Callable[..., MiniCluster]) -> None:
    async def stays(seconds: float) -> tuple[float, bytes]:
        reader, writer = await connect()
        writer.write(frame(ALL_TOPICS, 9, 7))
        await response(reader)
        answered = time.monotonic()
        await asyncio.sleep(seconds)
        writer.close()
        return answered, await reader.read()

    cluster = one_broker(**{"max.connections": 2})
    first = cluster.app("first", lambda: stays(10))
    cluster.run_for("1s")
    cluster.app("second", lambda: stays(60))
    cluster.run_for("1s")
    third = cluster.app("third", lambda: stays(1))
    cluster.wait_until(lambda: not third.is_running)
    assert third.result[0] >= first.result[0] + 10
    assert lines(cluster, "connection.waits")[0]["reason"] == "max.connections: 2 are open"

    cluster = one_broker(**{"connections.max.idle.ms": 3_000})

    async def idles() -> float:
        reader, writer = await connect()
        writer.write(frame(ALL_TOPICS, 9, 7))
        await response(reader)
        began = time.monotonic()
        assert await reader.read() == b""
        return time.monotonic() - began

    assert result_of(cluster, idles) == pytest.approx(3, abs=0.1)
