"""Batches of several records, records that are deleted, and requests that come a second time."""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import RequestRejected


def test_records_of_one_batch_have_offsets_of_their_own() -> None:
    with MiniCluster(controllers=1, seed=5) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        sent = cluster.produce(orders, count=7, batch=3)
        again = cluster.produce(orders, count=4, batch=2, idempotent=True)
        leader = orders[0].leader
        assert leader is not None
        batches = inside(cluster).disks[leader.id].log("orders-0").batches
        assert [batch.count for batch in batches] == [3, 3, 1, 2, 2]
        held = {record.offset: record.value for batch in batches for record in batch.records}
        produced = [*sent, *again]
        assert [one.offset for one in produced] == list(range(11))
        assert held == {one.offset: one.value for one in produced}


def test_a_load_sends_batches_at_its_rate_of_records() -> None:
    with MiniCluster(controllers=1, seed=5) as cluster:
        orders = cluster.create_topic("orders")
        load = cluster.produce(orders, rate=20, batch=5, lasting="1s")
        cluster.run_for("3s")
        assert [one.offset for one in load] == list(range(20))


def test_a_load_in_a_long_run_keeps_its_latest_records_and_its_rate() -> None:
    with MiniCluster(controllers=1, seed=5) as cluster:
        inside(cluster).recorder.own_records_max = 8
        orders = cluster.create_topic("orders")
        load = cluster.produce(orders, rate=20, batch=5, lasting="1s")
        cluster.run_for("3s")
        assert [one.offset for one in load] == list(range(12, 20))


def test_records_below_an_offset_are_deleted_on_every_replica() -> None:
    with MiniCluster(controllers=1, seed=5) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        cluster.produce(orders, count=10, batch=4)
        cluster.run_for("1s")
        assert cluster.delete_records(orders[0], 6) == {"orders-0": 6}
        disks = [inside(cluster).disks[broker.id] for broker in cluster.brokers]
        starts = {disk.log("orders-0").start_offset for disk in disks}
        assert starts == {6}
        with pytest.raises(RequestRejected, match="orders-0: OFFSET_OUT_OF_RANGE"):
            cluster.delete_records("orders-0", 11)
        assert cluster.delete_records("orders-0") == {"orders-0": 10}


def test_a_request_that_was_recorded_comes_again_under_the_old_broker_epoch() -> None:
    """A heartbeat of an incarnation that is gone is refused, and nobody waits for the response."""
    with MiniCluster(controllers=1, seed=5) as cluster:
        cluster.record(2, cluster.controllers, api="BrokerHeartbeat")
        cluster.run_for("3s")
        cluster.bounce(2, down="200ms")
        cluster.run_for("15s")
        stale = [one for one in inside(cluster).recorder.exchanges if one.api == "BrokerHeartbeat"]
        responses = [one.response for one in stale]
        before = len(list(inside(cluster).recorder.in_memory("refusal")))
        cluster.replay(2)
        cluster.run_for("1s")
        refused = list(inside(cluster).recorder.in_memory("refusal"))[before:]
        assert {(row.values["api"], row.values["reason"]) for row in refused} == {
            ("BrokerHeartbeat", "broker epoch mismatch")
        }
        assert [one.response for one in stale] == responses
        assert not inside(cluster).network.conditions
        before = len(list(inside(cluster).recorder.in_memory("refusal")))
        cluster.replay()
        cluster.run_for("1s")
        assert len(list(inside(cluster).recorder.in_memory("refusal"))) == before


def test_what_was_recorded_is_forgotten_where_the_network_heals() -> None:
    with MiniCluster(controllers=1, seed=5) as cluster:
        cluster.record(1, cluster.controllers)
        cluster.run_for("3s")
        handled = len(cluster.held())
        assert handled > 0
        cluster.heal()
        assert cluster.held() == []
        cluster.replay()
