"""Requests with very many elements: they are read apart from the others, and up to a limit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.listeners import connection
from minicluster.actors.listeners.connection import (
    ELEMENTS_MAX,
    LARGE_BYTES,
    MANY_ELEMENTS,
    ClientConnection,
    Close,
    Decode,
    Deliver,
    Encode,
    Write,
    read_request,
)
from minicluster.actors.listeners.large_messages import LargeMessages
from minicluster.broker.kafka_apis import supported_versions
from minicluster.protocol import ErrorCode, ProtocolError, encode
from minicluster.protocol.api import enabled_versions
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.codec import decode_limited, has_many_elements
from minicluster.protocol.messages import (
    DescribeGroupsRequest,
    DescribeTopicPartitionsRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
)
from minicluster.protocol.schema import FieldSpec
from minicluster.rules import Rules
from tests.listeners.raw_client import RawClient, frame, request_bytes

SERVED = enabled_versions(Rules.KAFKA_4_3, supported_versions(Rules.KAFKA_4_3))
Topic = MetadataRequest.MetadataRequestTopic


@pytest.fixture(scope="module")
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(brokers=1, controllers=1, seed=3, listeners=True, online=False) as built:
        yield built


def naming_nothing(times: int) -> bytes:
    """A Metadata request that names the empty topic again and again, two bytes each time."""
    [once, twice] = (
        request_bytes(MetadataRequest(topics=(Topic(),) * count), 9, 1, "raw") for count in (1, 2)
    )
    at = once.index(b"\x02\x01\x00")  # how many, the empty name, no tags
    assert twice.startswith(once[:at] + b"\x03\x01\x00\x01\x00")
    number, size = times + 1, b""
    while number > 127:
        size, number = size + bytes([number & 127 | 128]), number >> 7
    body = once[:at] + size + bytes([number]) + b"\x01\x00" * times + once[at + 3 :]
    return len(body).to_bytes(4, "big") + body


def test_a_topic_that_is_named_very_often_is_one_topic(cluster: MiniCluster) -> None:
    """Kafka makes a set of the names; half a million of them once cost everybody seconds."""
    with RawClient(cluster) as naming:
        naming.write(naming_nothing(500_000))
        _, response = naming.response(MetadataRequest(), 9)
    [topic] = response.topics
    assert (topic.name, topic.error_code) == ("", ErrorCode.INVALID_TOPIC_EXCEPTION)
    kept = [one.request for one in inside(cluster).recorder.exchanges if one.api == "Metadata"]
    assert [len(request.topics) for request in kept] == [1]


def test_others_are_served_while_a_large_request_is_read(
    cluster: MiniCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def slowly(served: Any, data: bytes) -> Any:
        if len(data) > LARGE_BYTES:
            begun.set()
            assert may_end.wait(60)
        return read_request(served, data)

    monkeypatch.setattr(connection, "read_request", slowly)
    with RawClient(cluster) as large, RawClient(cluster) as leaving, RawClient(cluster) as other:
        large.write(naming_nothing(LARGE_BYTES))
        assert begun.wait(60)
        leaving.write(naming_nothing(LARGE_BYTES))  # it will be gone when its turn comes
        leaving.socket.close()
        for _ in range(3):
            other.round_trip()
        may_end.set()
        assert large.response(MetadataRequest(), 9)[0] == 1
        large.round_trip()
        other.round_trip()
    inside(cluster).rt.check()


def test_a_large_response_arrives_whole(cluster: MiniCluster) -> None:
    groups = tuple(f"group-{number}" for number in range(MANY_ELEMENTS + 1))
    with RawClient(cluster) as asking:
        response = asking.request(DescribeGroupsRequest(groups=groups))
        assert {group.group_id for group in response.groups} == set(groups)
        asking.round_trip()


def test_a_connection_that_has_ended_takes_no_result() -> None:
    machine = ClientConnection(SERVED, max_request_bytes=1_000_000)
    [effect] = machine.on_bytes(naming_nothing(LARGE_BYTES))
    assert isinstance(effect, Decode)
    [too_large] = machine.on_decoded(Close("too many"))
    assert too_large == Close("too many")
    assert machine.on_decoded(Close("too many")) == []
    assert machine.on_encoded(Write(b"")) == []


def test_a_large_response_is_written_apart_from_the_others() -> None:
    machine = ClientConnection(SERVED, max_request_bytes=1_000_000)
    [deliver] = machine.on_bytes(frame(MetadataRequest(topics=None), 9, 7))
    assert isinstance(deliver, Deliver)
    partitions = tuple(
        MetadataResponse.MetadataResponsePartition(partition_index=index)
        for index in range(MANY_ELEMENTS)
    )
    topic = MetadataResponse.MetadataResponseTopic(name="orders", partitions=partitions)
    [effect] = machine.on_response(MetadataResponse(topics=(topic,)))
    assert isinstance(effect, Encode)
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()
    large = LargeMessages(results.put)
    large.put(effect, results.put)
    result = results.get(timeout=60)
    large.close(60)
    assert isinstance(result, Write) and machine.on_encoded(result) == [result]


def test_an_error_in_a_large_message_does_not_end_its_thread() -> None:
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()
    large = LargeMessages(results.put)
    large.put(Encode(None, None), results.put)  # type: ignore[arg-type]
    large.put(Decode(SERVED, b""), results.put)
    assert isinstance(results.get(timeout=60), AttributeError)
    assert results.get(timeout=60) == Close("a header of 0 bytes")
    large.close(60)


# Every API.


def with_elements(api: Any, version: int, count: int) -> Any:
    """A request whose first array has so many elements, that differ where they can."""
    for spec in api.request.schema:
        if spec.type_ == "array" and version in spec.versions:
            return api.request(**{spec.name: tuple(element(spec, n) for n in range(count))})
    return None


def element(spec: FieldSpec, number: int) -> Any:
    if spec.struct is None:
        return f"{number}" if spec.element == "string" else number
    texts = [each.name for each in spec.struct.schema if each.element == "string"]
    one = [name for name in texts if isinstance(getattr(spec.struct(), name), str)][:1]
    return spec.struct(**dict.fromkeys(one, f"{number}"))


@pytest.mark.parametrize("key", SERVED, ids=lambda key: APIS[key].name)
def test_no_request_has_elements_without_a_limit(key: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ELEMENTS_MAX", 50)
    api, version = APIS[key], SERVED[key][-1]
    few, many = (with_elements(api, version, count) for count in (50, 51))
    if many is None:
        pytest.skip("a request without an array")
    delivered = read_request(SERVED, request_bytes(few, version, 1, "raw"))
    assert isinstance(delivered, Deliver) and has_many_elements(delivered.request, 49)
    refused = read_request(SERVED, request_bytes(many, version, 1, "raw"))
    assert isinstance(refused, Close) and refused.reason is not None
    assert "51 elements or more; at most 50 are read" in refused.reason


def test_elements_of_elements_count_as_well() -> None:
    Offsets = ListOffsetsRequest.ListOffsetsTopic
    partitions = tuple(
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index) for index in range(10)
    )
    request = ListOffsetsRequest(topics=(Offsets(name="a", partitions=partitions),) * 10)
    assert has_many_elements(request, 109) and not has_many_elements(request, 110)
    data = encode(request, 7)
    assert decode_limited(ListOffsetsRequest, data, 7, 0, 110) == request
    with pytest.raises(ProtocolError, match="110 elements or more"):
        decode_limited(ListOffsetsRequest, data, 7, 0, 109)


def test_a_set_keeps_what_differs_in_the_order_of_its_first() -> None:
    kinds = (MetadataRequest, 12), (DescribeTopicPartitionsRequest, 0)
    for cls, version in kinds:
        item = next(spec.struct for spec in cls.schema if spec.name == "topics")
        assert item is not None
        topics = tuple(item(name=name) for name in ("b", "a", "b", "c", "a"))
        data = encode(cls(topics=topics), version)
        read: Any = decode_limited(cls, data, version, 0, 3)
        assert [topic.name for topic in read.topics] == ["b", "a", "c"]
        with pytest.raises(ProtocolError, match="3 elements or more; at most 2"):
            decode_limited(cls, data, version, 0, 2)


def test_the_limit_is_above_what_a_cluster_has() -> None:
    """2,000 topics of ten partitions are asked for in one request."""
    assert ELEMENTS_MAX > 2 * 22_000
