"""Configs of Kafka's properties file that change how a cluster behaves."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import RequestRejected
from minicluster.protocol import ErrorCode


def started(**config: Any) -> MiniCluster:
    """A cluster with these configs (an underscore is a dot)."""
    given = {name.replace("_", "."): value for name, value in config.items()}
    return MiniCluster(seed=11, brokers=3, controllers=1, config=given)


def test_topics_stay_where_deletion_is_disabled() -> None:
    """delete.topic.enable; KIP-322."""
    with started(delete_topic_enable="false") as cluster:
        orders = cluster.create_topic("orders")
        with pytest.raises(RequestRejected) as refusal:
            cluster.delete_topic(orders)
        assert refusal.value.error is ErrorCode.TOPIC_DELETION_DISABLED
        assert orders.exists


def test_without_controlled_shutdown_a_broker_ends_at_once() -> None:
    """controlled.shutdown.enable; BrokerServer.shutdown: leaders move once it is fenced."""
    with started(controlled_shutdown_enable=False) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        leader = orders[0].leader
        assert leader is not None
        cluster.controlled_shutdown(leader)
        cluster.wait_until(lambda: not leader.is_running, within="1s")
        assert not leader.in_controlled_shutdown
        assert orders[0].leader == leader
        cluster.wait_until(lambda: orders[0].leader not in (None, leader), within="30s")


def test_leaders_go_back_to_preferred_replicas_in_the_interval_of_the_properties() -> None:
    """leader.imbalance.check.interval.seconds."""
    with started(leader_imbalance_check_interval_seconds=5) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        preferred = orders[0].leader
        assert preferred is not None
        cluster.kill(preferred)
        cluster.wait_until(lambda: orders[0].leader not in (None, preferred), within="30s")
        cluster.restart(preferred)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        cluster.wait_until(lambda: orders[0].leader == preferred, within="6s")


@pytest.mark.parametrize(("flush_messages", "kept"), [(1, 5), (2, 4), (1_000, 0)])
def test_a_log_is_flushed_after_so_many_records(flush_messages: int, kept: int) -> None:
    """flush.messages; UnifiedLog.append: a machine that dies loses what was not flushed."""
    with started() as cluster:
        orders = cluster.create_topic(
            "orders", replicas=1, configs={"flush.messages": str(flush_messages)}
        )
        for _ in range(5):
            cluster.produce(orders, count=1)
        leader = orders[0].leader
        assert leader is not None
        cluster.kill(leader, lose_tail="unflushed")
        assert inside(cluster).disks[leader.id].logs["orders-0"].end_offset == kept


def test_logs_are_flushed_when_they_are_old_enough() -> None:
    """flush.ms, log.flush.scheduler.interval.ms; LogManager.flushDirtyLogs."""
    config = {"log.flush.scheduler.interval.ms": 1_000, "log.initial.task.delay.ms": 1_000}
    with MiniCluster(seed=11, brokers=1, controllers=1, config=config) as cluster:
        soon = cluster.create_topic("soon", replicas=1, configs={"flush.ms": "2000"})
        never = cluster.create_topic("never", replicas=1, configs={"flush.ms": "3600000"})
        for topic in (soon, never):
            cluster.produce(topic, count=3)
        cluster.run_for("4s")
        logs = inside(cluster).disks[cluster.brokers[0].id].logs
        assert (logs["soon-0"].flushed_offset, logs["never-0"].flushed_offset) == (3, 0)


def test_a_segment_is_flushed_when_the_next_one_begins() -> None:
    """UnifiedLog.roll; internal.segment.bytes is Kafka's own way to small segments."""
    with started() as cluster:
        orders = cluster.create_topic(
            "orders", replicas=1, configs={"internal.segment.bytes": "200"}
        )
        for _ in range(5):
            cluster.produce(orders, count=1)
        leader = orders[0].leader
        assert leader is not None
        log = inside(cluster).disks[leader.id].logs["orders-0"]
        assert len(log.segments) > 1
        assert log.flushed_offset == log.segments[-1].base_offset


def test_logs_are_not_compacted_without_the_cleaner() -> None:
    """log.cleaner.enable."""
    ends = []
    for enabled in ("True", False):
        config = {"log.cleaner.enable": enabled, "log.cleaner.backoff.ms": 1_000}
        with MiniCluster(seed=11, brokers=1, controllers=1, config=config) as cluster:
            compacted = {
                "cleanup.policy": "compact",
                "internal.segment.bytes": "200",
                "min.cleanable.dirty.ratio": "0.01",
            }
            orders = cluster.create_topic("orders", replicas=1, configs=compacted)
            for _ in range(20):
                cluster.produce(orders, count=1, keys="one")
            cluster.run_for("60s")
            log = inside(cluster).disks[cluster.brokers[0].id].logs["orders-0"]
            ends.append(sum(len(batch.records) for batch in log.batches))
    assert ends[0] < 20 == ends[1]


def test_the_limits_of_fetches_are_those_of_the_properties() -> None:
    """replica.fetch.*.bytes, controller.quorum.fetch.max.bytes."""
    limits = {
        "replica.fetch.min.bytes": 2,
        "replica.fetch.max.bytes": 2_048,
        "replica.fetch.response.max.bytes": 4_096,
        "controller.quorum.fetch.max.bytes": 8_192,
    }
    with MiniCluster(seed=11, brokers=2, controllers=1, config=limits) as cluster:
        cluster.create_topic("orders", assignment=[[1, 2]])
        cluster.run_for("2s")
        fetches = [one.request for one in inside(cluster).recorder.exchanges if one.api == "Fetch"]
        of_quorum = [body for body in fetches if body.max_bytes == 8_192]
        of_replicas = [body for body in fetches if body.max_bytes == 4_096]
        assert of_quorum and of_replicas
        assert {body.min_bytes for body in of_replicas} == {2}
        named = [
            partition
            for body in of_replicas
            for topic in body.topics
            for partition in topic.partitions
        ]
        assert {partition.partition_max_bytes for partition in named} == {2_048}
