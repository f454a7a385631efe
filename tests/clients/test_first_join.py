"""Kafka's own clients join their groups while ``__consumer_offsets`` appears, with its 50
partitions on three brokers: no coordinator tells them to wait until it has loaded an empty log.
"""

from __future__ import annotations

from collections import Counter

import confluent_kafka
import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.cluster import RuntimeName
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.protocol import ErrorCode

pytestmark = pytest.mark.clients

GROUPS = 6  # enough for each broker to coordinate one
OF_GROUPS = ("JoinGroup", "SyncGroup", "OffsetFetch", "ConsumerGroupHeartbeat")
LIMIT_S = 60.0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize("runtime", ["threaded", "simulated"])
def test_no_group_waits_for_an_empty_log(runtime: RuntimeName, protocol: str) -> None:
    with MiniCluster(seed=1, runtime=runtime, listeners=True) as cluster:
        cluster.create_topic("orders", partitions=GROUPS)
        cluster.produce("orders", count=GROUPS)
        members = [
            confluent_kafka.Consumer(
                {
                    "bootstrap.servers": cluster.bootstrap_servers,
                    "group.id": f"group-{number}",
                    "group.protocol": protocol,
                    "auto.offset.reset": "earliest",
                }
            )
            for number in range(GROUPS)
        ]
        for member in members:
            member.subscribe(["orders"])
        for member in members:
            message = member.poll(LIMIT_S)
            assert message is not None and message.error() is None
        exchanges = [
            each for each in inside(cluster).recorder.exchanges if each.client_id is not None
        ]
        errors = Counter(
            (each.api, each.dst, ErrorCode(each.response.error_code))
            for each in exchanges
            if each.api in OF_GROUPS and each.response is not None
        )
        for member in members:
            member.close()
    told_to_wait = [key for key in errors if key[2] is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert told_to_wait == [], errors
    joined = {node for _, node, error in errors if error is ErrorCode.NONE}
    assert joined == {1, 2, 3}
