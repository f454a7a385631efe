"""Partitions move, moves are cancelled, topics grow and are made anew (KIP-455)."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.actors.cluster.mini_cluster import MiniCluster
from minicluster.errors import RequestRejected, UserError
from minicluster.protocol import ErrorCode

STORY = Path(__file__).parent / "reassigned.yaml"


def test_a_move_is_listed_until_its_new_replica_is_in_sync() -> None:
    with MiniCluster(brokers=4, controllers=1, seed=455, online=True) as cluster:
        orders = cluster.create_topic("orders", assignment=[[1, 2, 3]])
        cluster.produce(orders, count=10)
        cluster.cut(4, (1, 2, 3))
        cluster.reassign(orders[0], (4, 2))
        cluster.run_for("5s")
        assert orders[0].is_reassigning
        [(name, move)] = cluster.reassignments().items()
        assert name == "orders-0"
        assert (move.adding, move.removing) == ((4,), (1, 3))
        assert set(move.replicas) == {1, 2, 3, 4}
        cluster.heal()
        cluster.wait_until(lambda: not orders[0].is_reassigning, within="30s")
        assert orders[0].state.replicas == (4, 2)
        assert cluster.reassignments() == {}
        assert cluster.produce(orders)[0].offset == 10


def test_a_cancelled_move_leaves_the_replicas_as_they_were() -> None:
    with MiniCluster(brokers=4, controllers=1, seed=456, online=True) as cluster:
        orders = cluster.create_topic("orders", assignment=[[1, 2, 3]])
        cluster.kill(4)
        cluster.reassign("orders-0", (4, 1, 2))
        cluster.reassign("orders-0", None)
        assert orders[0].state.replicas == (1, 2, 3)
        assert not orders[0].is_reassigning
        with pytest.raises(RequestRejected) as refused:
            cluster.reassign("orders-0", None)
        assert refused.value.error is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assert str(refused.value).startswith("reassign orders-0: NO_REASSIGNMENT_IN_PROGRESS")


def test_a_topic_grows_but_does_not_shrink() -> None:
    with MiniCluster(controllers=1, seed=457) as cluster:
        orders = cluster.create_topic("orders", partitions=2)
        cluster.add_partitions(orders, 4)
        assert len(orders) == 4
        cluster.wait_until(orders.fully_in_sync)
        with pytest.raises(RequestRejected, match="INVALID_PARTITIONS"):
            cluster.add_partitions(orders, 3)


def test_new_partitions_take_the_replicas_that_are_named() -> None:
    with MiniCluster(controllers=1, seed=459) as cluster:
        orders = cluster.create_topic("orders")
        cluster.add_partitions(orders, 3, assignment=[[3, 1, 2], [2, 3, 1]])
        assert [partition.replicas.ids for partition in orders][1:] == [(3, 1, 2), (2, 3, 1)]
        assert [partition.leader for partition in orders][1:] == [3, 2]
        with pytest.raises(RequestRejected, match="INVALID_REPLICA_ASSIGNMENT"):
            cluster.add_partitions(orders, 4, assignment=[[1, 2, 3], [1, 2, 3]])


def test_a_topic_made_anew_has_its_replicas_and_configs_but_another_id_and_no_records() -> None:
    with MiniCluster(controllers=1, seed=458) as cluster:
        orders = cluster.create_topic("orders", assignment=[[2, 3, 1], [3, 1, 2]], min_isr=2)
        cluster.produce(orders, count=3)
        before = cluster.image.topics.named("orders")
        again = cluster.recreate_topic(orders)
        after = cluster.image.topics.named("orders")
        assert before is not None and after is not None
        assert before.id != after.id
        assert [partition.state.replicas for partition in again] == [(2, 3, 1), (3, 1, 2)]
        assert cluster.image.configs.value(2, "orders", "min.insync.replicas") == "2"
        cluster.wait_until(again.fully_in_sync)
        assert cluster.produce(again)[0].offset == 0
        with pytest.raises(UserError, match="there is no such topic"):
            cluster.recreate_topic("payments")
