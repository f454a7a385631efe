"""A broker that carries its metadata out a few replicas at a time serves as any other."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.nodes.replica_manager import EndReplicas, NextPart, ReplicaManager
from minicluster.replica import apply_delta

PARTITIONS = 6


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_delta, "CHANGES_PER_PART", 1)


def test_a_cluster_lives_through_kills_deletions_and_restarts() -> None:
    with MiniCluster(brokers=3, controllers=1, seed=7) as cluster:
        for round_ in range(2):  # under one name, twice
            orders = cluster.create_topic("orders", partitions=PARTITIONS, replicas=3, min_isr=2)
            cluster.wait_until(orders.fully_in_sync, within="60s")
            for number in range(PARTITIONS):
                cluster.produce(orders, number, count=1)
            broker = cluster.node(1 + round_)
            if round_:
                cluster.kill(broker)
            else:
                cluster.controlled_shutdown(broker)
            cluster.wait_until(lambda broker=broker: broker.is_fenced, within="60s")  # type: ignore[misc]
            cluster.restart(broker)
            cluster.wait_until(orders.fully_in_sync, within="60s")
            ends = [inside(cluster).high_watermark("orders", n) for n in range(PARTITIONS)]
            assert ends == [1] * PARTITIONS
            cluster.delete_topic("orders")
        assert cluster.verify(engine="process").valid


def test_a_broker_that_is_told_to_end_has_carried_its_metadata_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its logs are those of its last image, as in Kafka, which waits for its publishers."""
    on_message = ReplicaManager.on_message

    def without_next_parts(actor: ReplicaManager, message: Any) -> None:
        if not isinstance(message, NextPart):
            on_message(actor, message)

    with MiniCluster(brokers=1, controllers=1, seed=7, online=False) as cluster:
        cluster.wait_until(lambda: not cluster.node(1).is_fenced)
        replicas = inside(cluster).processes[1].replicas
        assert replicas is not None
        monkeypatch.setattr(ReplicaManager, "on_message", without_next_parts)
        cluster.create_topic("orders", partitions=PARTITIONS, replicas=1)
        cluster.create_topic("more", partitions=1, replicas=1)
        cluster.run_for("1s")
        assert len(replicas.partitions) == 1
        replicas.deliver(EndReplicas())
        cluster.run_for("1s")
        assert len(replicas.partitions) == PARTITIONS + 1
