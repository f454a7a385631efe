"""Peers that send what no client sends, or do not read: the others get their responses."""

from __future__ import annotations

import os
import random
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.listeners.connection import READ_AHEAD_BYTES, RECEIVE_BYTES
from minicluster.errors import UserError
from minicluster.protocol import ErrorCode, decode, encode
from minicluster.protocol.messages import (
    ApiVersionsResponse,
    DescribeConfigsRequest,
    MetadataRequest,
    RequestHeader,
)
from tests.listeners.raw_client import LIMIT_S, RawClient, frame, sized

MAX_REQUEST = 1_000_000
ALL_TOPICS = MetadataRequest(topics=None)


def small(**config: Any) -> MiniCluster:
    return MiniCluster(
        brokers=1, controllers=1, seed=3, listeners=True, config=config, online=False
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with small(**{"socket.request.max.bytes": MAX_REQUEST}) as built:
        yield built


@pytest.fixture
def bystander(cluster: MiniCluster) -> Iterator[RawClient]:
    """A client that is connected all the while, and gets its responses before and after."""
    with RawClient(cluster) as client:
        client.round_trip()
        yield client
        client.round_trip()
        inside(cluster).rt.check()


def lines(cluster: MiniCluster, event: str) -> list[str]:
    return [str(e.get("reason", "")) for e in inside(cluster).log.entries if e["event"] == event]


def header(key: int, version: int) -> bytes:
    return encode(
        RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=5, client_id="raw"
        ),
        1,
    )


HOSTILE = {
    "2 GB": ((2**31 - 1).to_bytes(4, "big"), "2147483647 bytes"),
    "a byte too many": ((MAX_REQUEST + 1).to_bytes(4, "big"), "1000001 bytes"),
    "a negative size": (b"\xff\xff\xff\xff", "-1 bytes"),
    "no bytes": (sized(b""), "0 bytes"),
    "half a header": (sized(header(3, 9)[:9]), "RequestHeader"),
    "no body": (sized(header(3, 9)), "Request"),
    "garbage": (random.Random(1).randbytes(300), "bytes"),
    "text": (b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "bytes"),
    "an unknown API": (sized(header(999, 0)), "999"),
    "an API of brokers alone": (sized(header(56, 3)), "56"),
    "an unknown version": (sized(header(3, 99)), "Metadata v99"),
    "an old version": (sized(header(0, 2)), "Produce v2"),
    "a huge array": (sized(header(3, 8) + b"\x7f\xff\xff\xff"), "MetadataRequest"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_request_ends_its_connection_with_one_line(
    name: str, cluster: MiniCluster, bystander: RawClient
) -> None:
    data, named = HOSTILE[name]
    before = lines(cluster, "connection.closed")
    with RawClient(cluster) as hostile:
        hostile.write(data)
        assert hostile.is_closed_by_the_broker()
    [line] = lines(cluster, "connection.closed")[len(before) :]
    assert named in line
    assert len(line) < 300


def test_a_version_of_api_versions_that_is_not_served_gets_version_0(
    cluster: MiniCluster, bystander: RawClient
) -> None:
    with RawClient(cluster) as newer:
        newer.write(sized(header(18, 99)))
        data = newer.receive_frame()
        assert int.from_bytes(data[:4], "big") == 5
        response = decode(ApiVersionsResponse, data[4:], 0)
        assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
        assert [api.api_key for api in response.api_keys] == [18]
        newer.round_trip()  # the connection goes on


def test_a_client_of_one_byte_at_a_time_is_served_at_the_end(
    cluster: MiniCluster, bystander: RawClient
) -> None:
    request = frame(ALL_TOPICS, 9, 7)
    with RawClient(cluster) as slow:
        for at in range(len(request)):
            slow.write(request[at : at + 1])
            bystander.round_trip()  # the byte has been read: one thread serves both in turn
        assert slow.response(ALL_TOPICS, 9)[0] == 7


def test_a_client_that_ends_its_side_gets_the_responses_to_what_it_has_sent(
    cluster: MiniCluster, bystander: RawClient
) -> None:
    with RawClient(cluster) as ending:
        ending.write(b"".join(frame(ALL_TOPICS, 9, number) for number in range(3)) + b"\0\0")
        ending.socket.shutdown(socket.SHUT_WR)
        assert [ending.response(ALL_TOPICS, 9)[0] for _ in range(3)] == [0, 1, 2]
        assert ending.is_closed_by_the_broker()


def test_pipelined_requests_get_their_responses_in_order(
    cluster: MiniCluster, bystander: RawClient
) -> None:
    count = 1_000
    with RawClient(cluster) as eager:
        data = b"".join(frame(ALL_TOPICS, 9, number) for number in range(count))
        sender = threading.Thread(target=eager.write, args=(data,))
        sender.start()
        assert [eager.response(ALL_TOPICS, 9)[0] for _ in range(count)] == [*range(count)]
        sender.join()


def test_a_client_that_never_reads_costs_one_response(
    cluster: MiniCluster, bystander: RawClient
) -> None:
    resource_of_broker = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=4, resource_name="1"
    )
    request = DescribeConfigsRequest(
        resources=(resource_of_broker,), include_synonyms=True, include_documentation=True
    )
    count = 100  # some 100 KB each: more than the kernel keeps for a socket
    data = b"".join(frame(request, 4, number) for number in range(count))
    assert inside(cluster).listeners is not None
    served = inside(cluster).listeners.served
    before = len(served.connections)
    with RawClient(cluster, receive_buffer=4_096) as deaf:
        sender = threading.Thread(target=deaf.write, args=(data,))
        sender.start()
        cluster.wait_until(lambda: len(served.connections) > before)
        connection = list(served.connections.values())[-1]
        unsent = connection.carrier.unsent
        stuck = -1
        while stuck != len(unsent) or not stuck:  # the kernel's buffers fill
            stuck = len(unsent)
            requests = served.requests
            for _ in range(20):
                bystander.round_trip()
        assert served.requests == requests + 20  # none of the deaf one's
        one = len(unsent)
        assert 0 < one < 1_000_000
        assert len(connection.machine._received) <= READ_AHEAD_BYTES + RECEIVE_BYTES
        received = [deaf.receive_frame()[:4] for _ in range(count)]  # it reads after all
        assert received == [number.to_bytes(4, "big") for number in range(count)]
        sender.join()


def test_a_thousand_idle_connections_disturb_nobody(
    cluster: MiniCluster, bystander: RawClient
) -> None:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 2_500:
        pytest.skip("this process may not open 2,000 sockets")
    threads = threading.active_count()
    assert inside(cluster).listeners is not None
    before = inside(cluster).listeners.connections
    with ExitStack() as idle:
        for _ in range(1_000):
            idle.enter_context(RawClient(cluster))
        cluster.wait_until(lambda: inside(cluster).listeners.connections == before + 1_000)
        bystander.round_trip()
        assert threading.active_count() == threads
    cluster.wait_until(lambda: inside(cluster).listeners.connections == before)


def test_a_process_without_free_descriptors_accepts_again_when_there_are_some(
    cluster: MiniCluster, bystander: RawClient
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    before = len(lines(cluster, "connection.waits"))
    with ExitStack() as stack:
        waiting = [stack.enter_context(socket.socket()) for _ in range(8)]
        first_free = os.dup(0)
        os.close(first_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + 3, hard))
        try:
            for each in waiting:
                each.connect(bystander.address)
            cluster.wait_until(lambda: len(lines(cluster, "connection.waits")) > before)
            bystander.round_trip()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for each in waiting:
            each.settimeout(LIMIT_S)
            each.sendall(frame(ALL_TOPICS, 9))
            assert each.recv(1)


def test_with_max_connections_open_the_next_client_waits_for_one_to_leave() -> None:
    with small(**{"max.connections": 2}) as cluster, RawClient(cluster) as first:
        with RawClient(cluster) as second:
            first.round_trip()
            second.round_trip()
            third = RawClient(cluster)
            third.write(frame(ALL_TOPICS, 9, 7))
            cluster.wait_until(lambda: lines(cluster, "connection.waits"))
            first.round_trip()
        with third:
            assert third.response(ALL_TOPICS, 9)[0] == 7
        assert lines(cluster, "connection.waits") == ["max.connections: 2 are open"]


def test_an_address_with_all_its_connections_gets_no_further_one() -> None:
    limits = {"max.connections.per.ip": 2, "max.connections.per.ip.overrides": "127.0.0.3:1"}
    with small(**limits) as cluster, RawClient(cluster) as first:
        with RawClient(cluster) as second, RawClient(cluster) as third:
            second.round_trip()
            assert third.is_closed_by_the_broker()
            [line] = lines(cluster, "connection.refused")
            assert line == "max.connections.per.ip: 127.0.0.1 has 2"
            with RawClient(cluster, source="127.0.0.2") as elsewhere:
                elsewhere.round_trip()
            with RawClient(cluster, source="127.0.0.3") as only:
                only.round_trip()
                with RawClient(cluster, source="127.0.0.3") as more:
                    assert more.is_closed_by_the_broker()
            cluster.set_config("max.connections.per.ip", 3)
            cluster.wait_until(lambda: limit_of(cluster, "max.connections.per.ip") == "3")
            with RawClient(cluster) as now_allowed:
                now_allowed.round_trip()
        first.round_trip()


def limit_of(cluster: MiniCluster, name: str) -> str | None:
    """A config as broker 1 has published it."""
    broker = inside(cluster).processes[1].broker
    assert broker is not None
    return broker.apis.state.broker_levels.value(name)


def test_a_connection_that_is_idle_too_long_is_closed_and_an_active_one_is_not() -> None:
    # The clock is the machine's, which may stop a process for some hundred milliseconds.
    with small(**{"connections.max.idle.ms": "1500ms"}) as cluster, RawClient(cluster) as active:
        with RawClient(cluster) as idle:
            idle.round_trip()
            idle.socket.setblocking(False)
            while True:
                active.round_trip()
                try:
                    assert idle.socket.recv(1) == b""
                    break
                except BlockingIOError:
                    continue
        active.round_trip()
        assert len(lines(cluster, "connection.idle")) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.connections", "many"),
        ("max.connections", -1),
        ("socket.request.max.bytes", 0),
        ("connections.max.idle.ms", "for ever"),
    ],
)
def test_a_limit_that_is_none_is_refused_in_one_line(name: str, value: object) -> None:
    with pytest.raises(UserError, match=name) as refused:
        small(**{name: value})
    assert "\n" not in str(refused.value)
