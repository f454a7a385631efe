"""A connection as a machine: frames, order, and what ends it, without a socket."""

from __future__ import annotations

import random

import pytest

from minicluster.actors.listeners.connection import (
    ON_THEIR_WAY_MAX,
    ClientConnection,
    Close,
    Deliver,
    Write,
)
from minicluster.broker.kafka_apis import supported_versions
from minicluster.protocol import ErrorCode, decode, encode
from minicluster.protocol.messages import (
    ApiVersionsResponse,
    MetadataRequest,
    MetadataResponse,
    RequestHeader,
)
from minicluster.rules import Rules

SERVED = supported_versions(Rules.KAFKA_4_3)


def connection() -> ClientConnection:
    return ClientConnection(SERVED, max_request_bytes=10_000)


def frame(correlation_id: int, *, key: int = 3, version: int = 9) -> bytes:
    header = RequestHeader(
        request_api_key=key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id="app-1",
    )
    body = encode(header, 2) + encode(MetadataRequest(topics=()), 9)
    return len(body).to_bytes(4, "big") + body


def test_a_request_that_arrives_byte_by_byte_is_delivered_once() -> None:
    machine = connection()
    effects = [effect for byte in frame(7) for effect in machine.on_bytes(bytes([byte]))]
    assert effects == [Deliver(MetadataRequest(topics=()), 9, 7, "app-1")]


def test_responses_leave_in_the_order_of_the_requests() -> None:
    machine = connection()
    effects = machine.on_bytes(frame(1) + frame(2) + frame(3))
    order = []
    while effects:
        [deliver] = effects
        assert isinstance(deliver, Deliver)
        [write] = machine.on_response(MetadataResponse(brokers=(), topics=()))
        assert isinstance(write, Write)
        order.append(int.from_bytes(write.data[4:8], "big"))
        effects = machine.on_written()
    assert order == [1, 2, 3]


def test_a_request_waits_until_the_response_before_it_has_left() -> None:
    machine = connection()
    machine.on_bytes(frame(1) + frame(2))
    [_] = machine.on_response(MetadataResponse(brokers=(), topics=()))
    assert machine.on_bytes(frame(3)) == []
    [deliver] = machine.on_written()
    assert isinstance(deliver, Deliver) and deliver.correlation_id == 2


def test_a_client_that_has_ended_its_side_gets_its_responses() -> None:
    machine = connection()
    machine.on_bytes(frame(1) + frame(2)[:-1])
    assert machine.on_end_of_stream() == []
    machine.on_response(MetadataResponse(brokers=(), topics=()))
    assert machine.on_written() == [Close(None)]


def test_a_client_that_never_reads_is_not_read_from() -> None:
    machine = connection()
    machine.on_bytes(frame(1))
    assert machine.reads
    machine.on_bytes(frame(2) * 4_000)
    assert not machine.reads


def test_an_api_versions_request_of_the_future_gets_version_0_and_error_35() -> None:
    machine = connection()
    [effect] = machine.on_bytes(frame(5, key=18, version=99))
    assert isinstance(effect, Write)
    response = decode(ApiVersionsResponse, effect.data[8:], 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(api.api_key, api.min_version, api.max_version) for api in response.api_keys] == [
        (18, 0, SERVED[18][-1])
    ]


@pytest.mark.parametrize(
    "data",
    [
        (2**31 - 1).to_bytes(4, "big"),
        (10_001).to_bytes(4, "big"),
        (-1).to_bytes(4, "big", signed=True),
        (0).to_bytes(4, "big"),
        b"\0\0\0\x05abcde",
        frame(1, key=999),
        frame(1, version=99),
        b"\0\0\0\x0a" + frame(1)[4:14],
    ],
)
def test_what_is_no_request_ends_the_connection(data: bytes) -> None:
    machine = connection()
    [effect] = machine.on_bytes(data)
    assert isinstance(effect, Close)
    assert machine.on_bytes(frame(1)) == []


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_no_frame_makes_a_connection_raise(count: int) -> None:
    chance = random.Random(11)
    for number in range(count):
        key, version = chance.choice([*SERVED, 999]), chance.randrange(-2, 20)
        header = key.to_bytes(2, "big") + version.to_bytes(2, "big", signed=True)
        body = header + number.to_bytes(4, "big") + chance.randbytes(chance.randrange(60))
        effects = connection().on_bytes(len(body).to_bytes(4, "big") + body)
        assert len(effects) == 1, (number, body.hex())


def test_a_response_that_has_left_lets_the_next_request_begin_before_it_arrives() -> None:
    machine = connection()
    machine.on_bytes(frame(1) + frame(2) + frame(3))
    [second] = machine.on_left()
    assert isinstance(second, Deliver) and second.correlation_id == 2
    [first] = machine.on_response(MetadataResponse(brokers=(), topics=()))
    assert isinstance(first, Write) and int.from_bytes(first.data[4:8], "big") == 1
    assert machine.on_written() == []  # the second is in progress
    [third] = machine.on_left()
    assert isinstance(third, Deliver) and third.correlation_id == 3


def test_no_more_responses_are_on_their_way_than_a_window_holds() -> None:
    machine = connection()
    effects = machine.on_bytes(b"".join(frame(number) for number in range(200)))
    delivered = 0
    while effects:
        delivered += len(effects)
        effects = machine.on_left()
    assert delivered == ON_THEIR_WAY_MAX
    machine.on_response(MetadataResponse(brokers=(), topics=()))
    assert len(machine.on_written()) == 1
