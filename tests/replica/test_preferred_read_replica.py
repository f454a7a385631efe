"""A consumer is sent to a follower in its rack (KIP-392)."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.protocol.messages import FetchRequest
from minicluster.replica.requests.read_from_log import RACK_AWARE
from tests.replica.cluster import Cluster
from tests.replica.controller_by_heart import TOPIC_IDS

RACKS = {1: "a", 2: "b", 3: "b"}


def committed(*, selector: str | None = RACK_AWARE) -> Cluster:
    cluster = Cluster(racks=RACKS, replica_selector=selector)
    cluster.create_topic()
    cluster.produce(1, b"one")
    cluster.advance(1_000)  # the followers' next fetches have shown how far they are
    return cluster


def fetch(cluster: Cluster, broker: int, rack: str, *, offset: int = 0, version: int = 13) -> Any:
    request = FetchRequest(
        max_bytes=1 << 20,
        max_wait_ms=5_000,
        min_bytes=1 << 20,
        rack_id=rack,
        topics=(
            FetchRequest.FetchTopic(
                topic="orders",
                topic_id=TOPIC_IDS["orders"],
                partitions=(
                    FetchRequest.FetchPartition(fetch_offset=offset, partition_max_bytes=1 << 20),
                ),
            ),
        ),
    )
    return cluster.request(broker, request, version)


def test_the_leader_names_the_follower_at_once_and_reads_nothing() -> None:
    cluster = committed()
    data, values = cluster.fetched(fetch(cluster, 1, "b"))
    assert (data.preferred_read_replica, values, data.high_watermark) == (3, [], 1)
    waiting = fetch(cluster, 3, "b")
    cluster.advance(5_000)
    data, values = cluster.fetched(waiting)
    assert (data.preferred_read_replica, values) == (-1, [b"one"])


@pytest.mark.parametrize(("rack", "version"), [("a", 13), ("c", 13), ("", 13), ("b", 10)], ids=str)
def test_the_leader_reads_itself_where_no_follower_is_nearer(rack: str, version: int) -> None:
    cluster = committed()
    waiting = fetch(cluster, 1, rack, version=version)
    assert not cluster.has_response(waiting)
    cluster.advance(5_000)
    data, values = cluster.fetched(waiting)
    assert (data.preferred_read_replica, values) == (-1, [b"one"])


def test_no_selector_is_the_default() -> None:
    cluster = committed(selector=None)
    assert not cluster.has_response(fetch(cluster, 1, "b"))


def test_a_follower_that_is_not_in_sync_or_not_live_is_not_named() -> None:
    cluster = committed()
    cluster.fence_and_elect(3)
    data, _ = cluster.fetched(fetch(cluster, 1, "b"))
    assert data.preferred_read_replica == 2
    cluster.fence_and_elect(2)
    assert not cluster.has_response(fetch(cluster, 1, "b"))


def test_a_follower_that_does_not_hold_the_offset_is_not_named() -> None:
    cluster = committed()
    cluster.cuts = {(2, 1), (3, 1), (1, 2), (1, 3)}
    cluster.produce(1, b"two", acks=1)
    waiting = fetch(cluster, 1, "b", offset=2)  # above the high watermark: at once, with nothing
    data, _ = cluster.fetched(waiting)
    assert data.preferred_read_replica == -1
