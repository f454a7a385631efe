"""Each response of a broker can be written in the version of its request."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from minicluster.broker.kafka_apis import APIS, supported_versions
from minicluster.effects import Respond
from minicluster.log import Record, RecordBatch, Records
from minicluster.protocol import ErrorCode, UnsupportedVersion, encode
from minicluster.protocol import messages as m
from minicluster.protocol.error_responses import error_response
from minicluster.rules import Rules
from tests.broker.test_kafka_apis import ORDERS, REQUESTS, Story
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import TOPIC_IDS

ALL = supported_versions(Rules.KAFKA_3_9)
NEW = supported_versions(Rules.KAFKA_4_3)


def versions(*requests: Any) -> list[tuple[Any, int]]:
    """Each request in each version that can carry it."""
    return [(r, v) for r, v in _offered(requests) if _has_version(r, v)]


def _has_version(request: Any, version: int) -> bool:
    try:
        encode(request, version)
    except UnsupportedVersion:
        return False
    return True


def _offered(requests: tuple[Any, ...]) -> Iterator[tuple[Any, int]]:
    for request in requests:
        low, high = ALL[request.api_key][0], NEW[request.api_key][-1]
        first = request.valid_versions[0]
        yield from ((request, version) for version in range(max(low, first), high + 1))


def test_every_api_of_the_table_has_versions() -> None:
    assert list(NEW) == sorted(request.api_key for request in APIS)
    assert all(len(NEW[key]) for key in NEW)


@pytest.mark.parametrize(
    ("request_", "version"), versions(*REQUESTS, m.DeleteTopicsRequest(topic_names=("orders",)))
)
def test_an_error_about_everything(request_: Any, version: int) -> None:
    encode(error_response(request_, ErrorCode.REQUEST_TIMED_OUT, version=version), version)


REQUESTED = m.MetadataRequest.MetadataRequestTopic


@pytest.mark.parametrize(
    ("request_", "version"),
    versions(
        m.MetadataRequest(
            topics=(REQUESTED(name="orders"), REQUESTED(name="bills"), REQUESTED(name="a b"))
        ),
        m.MetadataRequest(topics=(REQUESTED(name=None, topic_id=ORDERS),)),
        m.ApiVersionsRequest(client_software_name="test", client_software_version="1"),
        m.DescribeClusterRequest(),
    ),
)
def test_what_is_served_from_the_image(request_: Any, version: int) -> None:
    (response, *_) = Story().request(request_, version)
    assert isinstance(response, Respond)
    encode(response.response, version)


def _data_requests() -> list[Any]:
    batch = RecordBatch.of([Record(0, 5, None, b"v")], leader_epoch=-1)
    topic = {"name": "orders", "topic_id": TOPIC_IDS["orders"]}
    return [
        m.ProduceRequest(
            acks=1,
            topic_data=(
                m.ProduceRequest.TopicProduceData(
                    **topic,
                    partition_data=tuple(
                        m.ProduceRequest.PartitionProduceData(index=i, records=Records((batch,)))
                        for i in (0, 1)
                    ),
                ),
            ),
        ),
        *(
            m.FetchRequest(
                max_bytes=1_000,
                topics=(
                    m.FetchRequest.FetchTopic(
                        topic="orders",
                        topic_id=TOPIC_IDS["orders"],
                        partitions=tuple(
                            m.FetchRequest.FetchPartition(
                                partition=i,
                                fetch_offset=offset,
                                current_leader_epoch=epoch,
                                partition_max_bytes=1_000,
                            )
                            for i in (0, 1)
                        ),
                    ),
                ),
            )
            for offset, epoch in ((0, -1), (99, -1), (0, 7))
        ),
        *(
            m.ListOffsetsRequest(
                replica_id=-1,
                topics=(
                    m.ListOffsetsRequest.ListOffsetsTopic(
                        name="orders",
                        partitions=tuple(
                            m.ListOffsetsRequest.ListOffsetsPartition(
                                partition_index=i, timestamp=timestamp
                            )
                            for i in (0, 1)
                        ),
                    ),
                ),
            )
            for timestamp in (-2, -1, 0, 1 << 40)
        ),
        m.OffsetForLeaderEpochRequest(
            topics=(
                m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic="orders",
                    partitions=tuple(
                        m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
                            partition=i, leader_epoch=0
                        )
                        for i in (0, 1)
                    ),
                ),
            )
        ),
        m.DeleteRecordsRequest(
            topics=(
                m.DeleteRecordsRequest.DeleteRecordsTopic(
                    name="orders",
                    partitions=tuple(
                        m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=i, offset=0)
                        for i in (0, 1)
                    ),
                ),
            )
        ),
    ]


@pytest.mark.parametrize("broker", [1, 2, 3], ids=["leader", "follower", "stranger"])
def test_what_replicas_respond(broker: int) -> None:
    cluster = Cluster()
    cluster.create_topic(replicas=(1, 2), isr=(1,))
    cluster.produce(1, b"a", acks=1)
    cluster.advance(20)
    for request, version in versions(*_data_requests()):
        token = cluster.request(broker, request, version)
        encode(cluster.response(token), version)
