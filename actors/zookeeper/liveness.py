"""The liveness properties of a cluster on ZooKeeper after the last fault, and their bounds."""

from __future__ import annotations

from minicluster.actors.cluster.cluster import Cluster
from minicluster.actors.nodes.config import ClusterConfig
from minicluster.actors.play.liveness import (
    Promise,
    leaderless,
    out_of_sync,
    pending,
    promised,
    uncommitted,
)
from minicluster.metadata.image.partition import PartitionRegistration
from minicluster.metadata.image.topics import TopicsImage
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.zookeeper.broker.isr_writer import CHECK_INTERVAL_MS, MAX_DELAY_MS


def promises_on_zookeeper(config: ClusterConfig, at_most_ms: int) -> tuple[Promise, ...]:
    """The promises with the bounds that a cluster's timeouts give them, the earliest first."""
    session_ms = config.zookeeper_session_timeout_ms + config.zookeeper_tick_ms
    alive_ms = 3 * session_ms + 5_000
    led_ms = alive_ms + 3 * config.request_timeout_ms
    in_sync_ms = led_ms + 2 * config.replica_lag_time_max_ms + 5_000
    notified_ms = in_sync_ms + MAX_DELAY_MS + CHECK_INTERVAL_MS
    bounds = (
        ("G1", "every broker runs and is registered", alive_ms, not_registered),
        ("G2", "one broker is the controller", alive_ms, no_controller),
        ("G7", "every partition has a leader that has recovered", in_sync_ms, leaderless),
        ("G6", "every replica is in its ISR", in_sync_ms, out_of_sync),
        ("G5", "all that leaders hold is committed", in_sync_ms + 1_000, uncommitted),
        ("G4", "no ISR change is pending", in_sync_ms + 2 * config.request_timeout_ms, pending),
        ("G3", "every broker has the state of every partition", notified_ms, behind),
    )
    return promised(bounds, at_most_ms)


def not_registered(cluster: Cluster) -> list[str]:
    """The brokers without a process, or without a znode (G1)."""
    stuck = []
    for broker_id in cluster.broker_ids:
        if broker_id not in cluster.processes:
            stuck.append(f"broker {broker_id} is down")
            continue
        registration = cluster.image.cluster.broker(broker_id)
        if registration is None or registration.fenced:
            stuck.append(f"broker {broker_id} is not registered")
    return stuck


def no_controller(cluster: Cluster) -> list[str]:
    """The brokers that are controllers, unless /controller alone is one (G2)."""
    named = cluster.active_controller_id()
    active = [
        node_id
        for node_id, process in cluster.processes.items()
        if process.zk_broker is not None and process.zk_broker.controller.state.is_active
    ]
    return [] if active == [named] else [f"/controller is {named}, active are {active}"]


def behind(cluster: Cluster) -> list[str]:
    """The partitions whose state a broker does not have as it is in ZooKeeper (G3)."""
    stuck = []
    for node_id, process in cluster.processes.items():
        if process.zk_broker is None:
            continue
        requests = process.zk_broker.requests
        for topic, index, state in cluster.image.topics.partitions():
            shown = _partition(requests.cache.topics, topic.name, index)
            if shown is None or _metadata(shown) != _metadata(state):
                has = "nothing" if shown is None else _metadata(shown)
                stuck.append(f"broker {node_id} shows {has} of {topic.name}-{index}")
            # StopReplica goes to live brokers alone: another one keeps what it was removed from.
            named = TopicPartition(topic.name, index)
            if named not in requests.hosted or node_id not in state.replicas:
                continue
            # LeaderAndIsr alone changes what a replica's broker has, and follows no ISR change.
            known = _partition(requests.image.topics, topic.name, index)
            if known is None or _leadership(known) != _leadership(state):
                has = "nothing" if known is None else _leadership(known)
                stuck.append(f"broker {node_id} has {has} of {topic.name}-{index}")
    return stuck


def _partition(topics: TopicsImage, topic: str, index: int) -> PartitionRegistration | None:
    image = topics.named(topic)
    return None if image is None else image.partitions.get(index)


def _leadership(state: PartitionRegistration) -> str:
    return f"leader {state.leader} of epoch {state.leader_epoch}"


def _metadata(state: PartitionRegistration) -> str:
    isr = f"ISR {list(state.isr)}, partition epoch {state.partition_epoch}"
    return f"{_leadership(state)}, {isr}"
