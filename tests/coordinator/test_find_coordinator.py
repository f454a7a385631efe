"""FindCoordinator: internal topics come when they are first needed, and have a leader."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.broker.requests.find_coordinator import LIMIT_MS
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import FindCoordinatorRequest
from minicluster.protocol.topics import partition_of
from tests.coordinator.client import exchange


def test_the_first_request_creates_the_internal_topic() -> None:
    static = {"offsets.topic.num.partitions": "5", "offsets.topic.replication.factor": "2"}
    with MiniCluster(brokers=3, controllers=1, seed=1, config=static) as cluster:
        found = _find(cluster).coordinators[0]  # it waits until the topic is there
        offsets = cluster.topic("__consumer_offsets")
        assert (len(offsets), len(offsets[0].replicas)) == (5, 2)
        assert found.node_id == offsets[partition_of("orders", 5)].leader.id


def test_without_a_controller_the_wait_for_the_topic_ends() -> None:
    with MiniCluster(brokers=1, controllers=1, seed=1) as cluster:
        cluster.kill(cluster.controllers)
        began_ms = cluster.now_ms
        refused = _find(cluster).coordinators[0]
        assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert cluster.now_ms - began_ms <= LIMIT_MS + 100


def test_the_hash_of_a_key_gives_its_partition_as_javas_does() -> None:
    # Java: Math.abs("orders".hashCode()) % 50; a code of -2147483648 counts as 0.
    assert [partition_of(key, 50) for key in ("orders", "g", "")] == [31, 3, 0]
    assert partition_of("polygenelubricants", 50) == 0


TOPIC_ID = "SiTWz5lESA6SNPzPPgdjMg"


@pytest.mark.parametrize(
    ("key", "error"),
    [
        (f"g:{TOPIC_ID}:0", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (f"g:with:colons:{TOPIC_ID}:0", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (f"{TOPIC_ID}:0", ErrorCode.INVALID_REQUEST),
        (f":{TOPIC_ID}:0", ErrorCode.INVALID_REQUEST),
        ("g:orders:0", ErrorCode.INVALID_REQUEST),
        (f"g:{TOPIC_ID}:first", ErrorCode.INVALID_REQUEST),
        ("", ErrorCode.INVALID_REQUEST),
    ],
)
def test_the_key_of_a_share_group_names_a_partition(key: str, error: ErrorCode) -> None:
    """Source: SharePartitionKey.getInstance; KafkaApis.getCoordinator."""
    with MiniCluster(brokers=1, controllers=1, seed=1) as cluster:
        request = FindCoordinatorRequest(key_type=2, coordinator_keys=(key,))
        (found,) = exchange(cluster, 1, request, version=6).coordinators
        (early,) = exchange(cluster, 1, request, version=5).coordinators
    assert (found.error_code, found.error_message) == (error, "")
    assert (early.error_code, early.error_message) == (ErrorCode.INVALID_REQUEST, "")


def _find(cluster: MiniCluster) -> Any:
    request = FindCoordinatorRequest(key_type=0, coordinator_keys=("orders",))
    return exchange(cluster, 1, request, version=6)
