"""What a delay holds up arrives after the delay was lifted, and holds up what follows it.

Found by seed 300358 of the campaign: a Fetch that nothing disturbed waited behind another one, and
was taken for a request that its broker had kept too long (G8).
"""

from __future__ import annotations

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.cluster.time_bounds import healed_ms


def test_the_promises_count_from_the_arrival_of_the_last_delayed_packet() -> None:
    with MiniCluster(brokers=2, controllers=1, seed=1) as cluster:
        orders = cluster.create_topic("orders", replicas=2)
        cluster.wait_until(orders[0].fully_in_sync)
        follower = orders[0].followers[0]
        cluster.delay(follower, orders[0].leader, api="Fetch", mean="8s", minimum="8s")
        cluster.run_for("1s")
        cluster.heal()
        lifted_ms = cluster.now_ms
        since_ms = healed_ms(inside(cluster))
        assert since_ms is not None and since_ms > lifted_ms + 6_000
        cluster.run_for("15s")
        assert healed_ms(inside(cluster)) == since_ms
