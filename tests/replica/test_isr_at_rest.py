"""The periodic ISR task: what it leaves alone changes nothing that anybody sees."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
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
