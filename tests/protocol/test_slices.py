"""Large requests are cut into slices, and the responses of these are one response."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.protocol import messages as m
from minicluster.protocol.schema import Message
from minicluster.protocol.slices import SLICED, Sliced

Offsets = m.ListOffsetsRequest
Responded = m.ListOffsetsResponse


def offsets_of(**partitions: range) -> Offsets:
    return Offsets(
        replica_id=-1,
        topics=tuple(
            Offsets.ListOffsetsTopic(
                name=name,
                partitions=tuple(Offsets.ListOffsetsPartition(partition_index=n) for n in indexes),
            )
            for name, indexes in partitions.items()
        ),
    )


def responded_to(request: Offsets) -> Responded:
    """A response to what a slice asks for, in another order than the request's."""
    return Responded(
        topics=tuple(
            Responded.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=tuple(
                    Responded.ListOffsetsPartitionResponse(
                        partition_index=wanted.partition_index, offset=7 * wanted.partition_index
                    )
                    for wanted in topic.partitions[::-1]
                ),
            )
            for topic in request.topics[::-1]
        )
    )


def of_request(request: Offsets) -> list[tuple[str, int]]:
    return [(t.name, p.partition_index) for t in request.topics for p in t.partitions]


def test_each_element_is_in_one_slice_and_none_is_larger_than_it_may() -> None:
    sliced = Sliced(("topics", "partitions"), ("topics", "partitions"), size=10)
    request = offsets_of(a=range(4), b=range(23), c=range(7), d=range(3))
    slices = list(sliced.cut(request))
    assert [of_request(part) for part in slices] == [
        [*(("a", n) for n in range(4))],
        [*(("b", n) for n in range(10))],
        [*(("b", n) for n in range(10, 20))],
        [*(("b", n) for n in range(20, 23)), *(("c", n) for n in range(7))],
        [*(("d", n) for n in range(3))],
    ]
    assert all(part.replica_id == request.replica_id for part in slices)
    assert sliced.count(request) == 37


def test_a_topic_of_several_slices_comes_once_in_the_response() -> None:
    sliced = Sliced(("topics", "partitions"), ("topics", "partitions"), size=10)
    request = offsets_of(a=range(4), b=range(23), c=range(7))
    response = sliced.join([responded_to(part) for part in sliced.cut(request)])
    assert [topic.name for topic in response.topics] == ["a", "b", "c"]
    offsets = {
        (topic.name, wanted.partition_index): wanted.offset
        for topic in response.topics
        for wanted in topic.partitions
    }
    assert offsets == {(name, index): 7 * index for name, index in of_request(request)}


def test_what_is_of_the_cluster_comes_once() -> None:
    sliced = SLICED[m.MetadataRequest]
    kind = m.MetadataResponse
    brokers = [kind.MetadataResponseBroker(node_id=n, host="h", port=n) for n in (1, 2, 3)]
    responses = [
        kind(brokers=tuple(brokers[:2]), topics=(kind.MetadataResponseTopic(name="a"),)),
        kind(brokers=tuple(brokers), topics=(kind.MetadataResponseTopic(name="b"),)),
    ]
    joined = sliced.join(responses)
    assert joined.brokers == tuple(brokers)
    assert [topic.name for topic in joined.topics] == ["a", "b"]


def test_a_produce_without_acks_gets_no_response_in_slices_either() -> None:
    assert SLICED[m.ProduceRequest].join([None, None]) is None


@pytest.mark.parametrize("kind", SLICED, ids=lambda kind: kind.__name__)
def test_the_arrays_of_a_cut_request_and_of_its_response_exist(kind: type[Message]) -> None:
    sliced = SLICED[kind]
    response: Any = getattr(m, kind.__name__.replace("Request", "Response"))
    for message, names in ((kind, sliced.elements), (response, sliced.results)):
        structure: Any = message
        for name in names:
            [spec] = [spec for spec in structure.schema if spec.name == name]
            assert spec.type_ == "array"
            structure = spec.struct
