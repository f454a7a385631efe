"""The codec against kio: how much faster or slower, on the messages of the hot paths.

Each test times ours with pytest-benchmark and kio in the same process, alternating, and records
the ratio in ``extra_info``: above 1, ours is faster. kio decodes in native code. The bounds are far
below what was measured, so that only a change of kind fails.
"""

from __future__ import annotations

import io
import time
import uuid
from collections.abc import Callable
from typing import Any

import kio.serial
import pytest
from kio.index import load_entity_schema
from kio.static.constants import EntityType

from minicluster.protocol import Message, decode, encode
from minicluster.protocol.messages import AlterPartitionRequest, FetchResponse, MetadataResponse
from minicluster.protocol.records import (
    PartitionChangeRecord,
    PartitionRecord,
    VersionedRecord,
    decode_record,
    encode_record,
)

TOPIC = uuid.UUID("00112233-4455-6677-8899-aabbccddeeff")


def alter_partition(partitions: int) -> AlterPartitionRequest:
    """A leader's proposal of three-member ISRs."""
    request = AlterPartitionRequest
    states = tuple(request.BrokerState(broker_id=n, broker_epoch=100 + n) for n in (1, 2, 3))
    data = tuple(
        request.PartitionData(partition_index=n, leader_epoch=3, new_isr_with_epochs=states)
        for n in range(partitions)
    )
    topic = request.TopicData(topic_id=TOPIC, partitions=data)
    return request(broker_id=1, broker_epoch=101, topics=(topic,))


def fetch_response() -> FetchResponse:
    """Ten partitions with a kibibyte each."""
    data = tuple(
        FetchResponse.PartitionData(partition_index=n, high_watermark=9, records=b"x" * 1024)
        for n in range(10)
    )
    topic = FetchResponse.FetchableTopicResponse(topic_id=TOPIC, partitions=data)
    return FetchResponse(responses=(topic,))


def metadata_response() -> MetadataResponse:
    """Ten topics of ten partitions."""
    response = MetadataResponse
    partitions = tuple(
        response.MetadataResponsePartition(
            partition_index=n, leader_id=1, replica_nodes=(1, 2, 3), isr_nodes=(1, 2, 3)
        )
        for n in range(10)
    )
    topics = tuple(
        response.MetadataResponseTopic(name=f"topic-{n}", topic_id=TOPIC, partitions=partitions)
        for n in range(10)
    )
    return response(cluster_id="c", topics=topics)


CASES: dict[str, tuple[Callable[[], Message], int, str, EntityType]] = {
    "AlterPartitionRequest": (
        lambda: alter_partition(1), 3, "alter_partition", EntityType.request
    ),
    "AlterPartitionRequest-10": (
        lambda: alter_partition(10), 3, "alter_partition", EntityType.request
    ),
    "FetchResponse": (fetch_response, 16, "fetch", EntityType.response),
    "MetadataResponse": (metadata_response, 12, "metadata", EntityType.response),
}  # fmt: skip

LEAST = {
    ("encode", "AlterPartitionRequest"): 3.0,
    ("encode", "AlterPartitionRequest-10"): 3.0,
    ("encode", "FetchResponse"): 1.5,
    ("encode", "MetadataResponse"): 3.0,
    ("decode", "AlterPartitionRequest"): 0.25,
    ("decode", "AlterPartitionRequest-10"): 0.15,
    ("decode", "FetchResponse"): 0.1,
    ("decode", "MetadataResponse"): 0.1,
}


def _seconds(action: Callable[[], Any], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        action()
    return time.perf_counter() - start


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any], times: int = 200) -> float:
    """Their best time over ours, of several alternating rounds."""
    rounds = [(_seconds(ours, times), _seconds(theirs, times)) for _ in range(7)]
    return min(theirs for _, theirs in rounds) / min(ours for ours, _ in rounds)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("way", ["encode", "decode"])
def test_codec_against_kio(benchmark: Any, way: str, name: str) -> None:
    make, version, api, kind = CASES[name]
    message = make()
    data = encode(message, version)
    entity_class: Any = load_entity_schema(api, version, kind)
    reader, writer = kio.serial.entity_reader(entity_class), kio.serial.entity_writer(entity_class)
    entity, _ = reader(data, 0)
    out = io.BytesIO()
    writer(out, entity)
    assert out.getvalue() == data
    cls = type(message)
    if way == "encode":

        def ours() -> Any:
            return encode(message, version)

        def theirs() -> Any:
            writer(io.BytesIO(), entity)
    else:

        def ours() -> Any:
            return decode(cls, data, version)

        def theirs() -> Any:
            reader(data, 0)

    found = ratio(ours, theirs)
    benchmark.extra_info["times_faster_than_kio"] = round(found, 2)
    benchmark(ours)
    assert found > LEAST[way, name]


@pytest.mark.parametrize("way", ["encode", "decode"])
@pytest.mark.parametrize("kind", ["partition", "change"])
def test_metadata_records(benchmark: Any, kind: str, way: str) -> None:
    partition = PartitionRecord(
        partition_id=1,
        topic_id=TOPIC,
        replicas=(1, 2, 3),
        isr=(1, 2, 3),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=(TOPIC, TOPIC, TOPIC),
    )
    change = PartitionChangeRecord(partition_id=1, topic_id=TOPIC, isr=(1, 2), leader=2)
    value = VersionedRecord(partition, 2) if kind == "partition" else VersionedRecord(change, 1)
    data = encode_record(value)
    if way == "encode":
        assert benchmark(encode_record, value) == data
    else:
        assert benchmark(decode_record, data) == value
