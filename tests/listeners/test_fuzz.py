"""Frames of every kind from a seed: no actor fails, and another client gets its responses."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.broker.kafka_apis import supported_versions
from minicluster.protocol.messages import ListOffsetsRequest
from tests.listeners.frames import Frames
from tests.listeners.raw_client import RawClient, frame

FRAMES_PER_CONNECTION = 5
CONNECTIONS_PER_CHECK = 40


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(brokers=1, controllers=1, seed=3, listeners=True) as built:
        built.create_topic("orders", partitions=2, replicas=1)
        built.create_topic("compacted", replicas=1, configs={"cleanup.policy": "compact"})
        yield built


def check(cluster: MiniCluster, bystander: RawClient) -> None:
    """Every actor has handled what came before, and is well."""
    bystander.round_trip()
    request = ListOffsetsRequest(
        replica_id=-1,
        topics=(
            ListOffsetsRequest.ListOffsetsTopic(
                name="orders",
                partitions=(
                    ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1),
                ),
            ),
        ),
    )
    bystander.write(frame(request, 5, 9))
    bystander.response(request, 5)
    inside(cluster).rt.check()


@pytest.mark.parametrize(
    ("seed", "count"), [(1, 2_000), pytest.param(2, 100_000, marks=pytest.mark.slow)]
)
def test_no_frame_disturbs_the_cluster(cluster: MiniCluster, seed: int, count: int) -> None:
    topics = cluster.image.topics
    ids = tuple(topics.named(name).id for name in ("orders", "compacted"))  # type: ignore[union-attr]
    frames = Frames(seed, supported_versions(inside(cluster).rules), ids)
    assert inside(cluster).listeners is not None
    before = inside(cluster).listeners.requests
    with RawClient(cluster) as bystander:
        for number, some in enumerate(frames.connections(count, FRAMES_PER_CONNECTION)):
            with RawClient(cluster) as fuzzing:
                try:
                    fuzzing.write(b"".join(some))
                    fuzzing.socket.shutdown(socket.SHUT_WR)
                    while fuzzing.socket.recv(65_536):
                        pass
                except ConnectionError:
                    pass
                except TimeoutError:
                    inside(cluster).rt.check()  # an actor that has failed ends no connection
                    raise
            if number % CONNECTIONS_PER_CHECK == 0:
                check(cluster, bystander)
        check(cluster, bystander)
    assert inside(cluster).listeners.requests - before > count // 3  # the others are no requests
