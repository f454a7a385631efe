"""The periodic ISR task: what it leaves alone changes nothing that anybody sees."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.nodes.replica_manager import ReplicaManager
from minicluster.replica import machine
from minicluster.replica.partition.isr import run_isr_task
from tests.replica.test_skipped_partitions import play


def test_a_run_is_the_same_whether_partitions_at_rest_are_checked_or_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = {"replica.lag.time.max.ms": "1s"}
    alone = play(MiniCluster(seed=1, config=config))
    monkeypatch.setattr(machine, "is_isr_at_rest", lambda _: False)
    assert play(MiniCluster(seed=1, config=config)) == alone


def test_the_isr_of_an_idle_partition_is_not_checked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []

    def count(partition: Any, now_ms: int) -> None:
        checked.append(partition.name)
        run_isr_task(partition, now_ms)

    with MiniCluster(seed=1) as cluster:
        orders = cluster.create_topic("orders", partitions=6, replicas=3, min_isr=1)
        cluster.wait_until(orders.fully_in_sync, within="20s")
        cluster.run_for("31s")
        monkeypatch.setattr(machine, "run_isr_task", count)
        cluster.run_for("31s")
        assert not checked
        follower, leader = orders[0].followers[0], orders[0].leader
        cluster.cut(follower, leader, api="Fetch")
        cluster.run_for("31s")
        assert not checked
        cluster.produce("orders", rate=1, lasting="2s")
        cluster.wait_until(lambda: follower not in orders[0].isr, within="60s")
        assert set(checked) == {"orders-0"}


def test_many_partitions_are_checked_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A follower that is cut off leaves six ISRs; its leader serves others in between."""
    monkeypatch.setattr(machine, "ISR_TASKS_PER_PART", 2)
    of_steps = [0]
    on_receive = ReplicaManager.on_receive

    def receive(actor: ReplicaManager, message: Any) -> Any:
        of_steps.append(0)
        return on_receive(actor, message)

    def count(partition: Any, now_ms: int) -> None:
        of_steps[-1] += 1
        run_isr_task(partition, now_ms)

    with MiniCluster(brokers=2, seed=1) as cluster:
        orders = cluster.create_topic("orders", partitions=12, replicas=2, min_isr=1)
        cluster.wait_until(orders.fully_in_sync, within="20s")
        monkeypatch.setattr(machine, "run_isr_task", count)
        monkeypatch.setattr(ReplicaManager, "on_receive", receive)
        of_first = [each for each in orders if each.leader == cluster.node(1)]
        cluster.cut(cluster.node(2), cluster.node(1), api="Fetch")
        for each in of_first:
            cluster.produce("orders", each.index, count=1, acks="1")
        cluster.wait_until(lambda: all(len(each.isr) == 1 for each in of_first), within="90s")
        assert len(of_first) > 2
        assert max(of_steps) == 2
