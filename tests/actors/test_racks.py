"""Brokers in racks: a consumer is sent to the follower in its own (KIP-392)."""

from __future__ import annotations

from typing import Any

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.protocol.messages import FetchRequest
from minicluster.replica.requests.read_from_log import RACK_AWARE

CONFIG = {"broker.rack": "a,b,c", "replica.selector.class": RACK_AWARE}


def fetch(cluster: MiniCluster, topic_id: Any, leader: int, rack: str) -> Any:
    topic = FetchRequest.FetchTopic(
        topic_id=topic_id,
        partitions=(FetchRequest.FetchPartition(partition_max_bytes=1 << 20),),
    )
    request = FetchRequest(max_bytes=1 << 20, rack_id=rack, topics=(topic,))
    running = inside(cluster)
    sent = running.network.request(src=-1, dst=leader, body=request, version=18, caller=None)
    cluster.run_for("100ms")
    [row] = [row for row in running.recorder.exchanges if row.id == sent.id]
    return row.response


def test_each_broker_has_its_rack_and_consumers_read_nearby() -> None:
    with MiniCluster(brokers=3, controllers=1, seed=5, config=CONFIG) as cluster:
        racks = {b.id: b.rack for b in cluster.image.cluster.brokers.values()}
        assert racks == {1: "a", 2: "b", 3: "c"}
        cluster.create_topic("orders", partitions=1, replicas=3)
        cluster.run_for("2s")
        topic = cluster.image.topics.named("orders")
        leader = inside(cluster).leader_id("orders", 0)
        assert topic is not None and leader is not None
        found = {}
        for broker, rack in racks.items():
            response = fetch(cluster, topic.id, leader, rack or "")
            found[broker] = response.responses[0].partitions[0].preferred_read_replica
        assert found == {broker: -1 if broker == leader else broker for broker in racks}
