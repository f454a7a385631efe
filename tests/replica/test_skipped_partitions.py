"""Settled partitions: what a leader does not read changes nothing that anybody sees."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.play.campaign import outcome_of
from minicluster.replica.fetching import skipped
from minicluster.scenario.nemesis.generating import generate


class Settling:
    """Counts how many partitions are skipped, or skips none."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, allowed: bool) -> None:
        self.count = 0
        self._right, self._allowed = skipped.is_unchanged, allowed
        monkeypatch.setattr(skipped, "is_unchanged", self._is_unchanged)

    def _is_unchanged(self, *args: Any) -> bool:
        is_unchanged = self._allowed and self._right(*args)
        self.count += is_unchanged
        return is_unchanged


def play(cluster: MiniCluster) -> str:
    """Appends, a follower that lags and comes back, a deletion of records, a move of the leader."""
    with cluster:
        orders = cluster.create_topic("orders", partitions=3, replicas=3, min_isr=1)
        cluster.wait_until(orders.fully_in_sync, within="20s")
        cluster.produce("orders", rate=1)
        cluster.run_for("4s")
        leader, follower = orders[0].leader, orders[0].followers[0]
        cluster.cut(follower, leader, api="Fetch")
        cluster.wait_until(lambda: follower not in orders[0].isr, within="60s")
        cluster.heal()
        cluster.wait_until(orders.fully_in_sync, within="60s")
        cluster.restart(leader)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        cluster.run_for("2s")
        return inside(cluster).recorder.trace_hash


def test_a_run_is_the_same_whether_partitions_are_skipped_or_read_at_each_fetch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashes = []
    for allowed in (True, False):
        with monkeypatch.context() as patch:
            settling = Settling(patch, allowed=allowed)
            config = {"replica.lag.time.max.ms": "1s"}
            hashes.append(play(MiniCluster(seed=1, config=config)))
            assert (settling.count > 10) == allowed
    assert hashes[0] == hashes[1]


def test_a_fetch_that_waits_ends_alike_when_its_topic_is_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hashes = []
    for allowed in (True, False):
        with monkeypatch.context() as patch, MiniCluster(seed=1) as cluster:
            settling = Settling(patch, allowed=allowed)
            orders = cluster.create_topic("orders", partitions=6, replicas=3)
            cluster.wait_until(orders.fully_in_sync, within="20s")
            cluster.run_for("2s")
            cluster.delete_topic("orders")
            cluster.run_for("2s")
            hashes.append(inside(cluster).recorder.trace_hash)
            assert (settling.count > 10) == allowed
    assert hashes[0] == hashes[1]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_disturbances_are_the_same_either_way(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = []
    for allowed in (True, False):
        with monkeypatch.context() as patch:
            settling = Settling(patch, allowed=allowed)
            hashes.append(outcome_of(generate(seed)).trace_hash)
            assert (settling.count > 0) == allowed
    assert hashes[0] == hashes[1]


def test_an_idle_fetch_reads_no_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    with MiniCluster(seed=1) as cluster:
        orders = cluster.create_topic("orders", partitions=20, replicas=3, min_isr=2)
        cluster.wait_until(orders.fully_in_sync, within="20s")
        cluster.run_for("5s")
        settling = Settling(monkeypatch, allowed=True)
        cluster.run_for("10s")
        assert settling.count == 0
        cluster.produce("orders", rate=1)
        cluster.run_for("10s")
        assert 10 <= settling.count <= 100
