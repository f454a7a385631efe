"""Clusters that follow the KIPs' texts, under chaos: they come back and keep what they promised."""

from __future__ import annotations

import random

import pytest

from minicluster.actors.cluster.actions.disks import repair_all_dirs
from minicluster.actors.cluster.actions.records import pause_load
from minicluster.actors.cluster.mini_cluster import MiniCluster, inside

TEXTS = (
    "failed_replicas_reported_by=alter_replica_state",
    "isr_changes_by=alter_isr_of_kip_497 isr_changes_of_one_fetch_leave_together=true",
    "isr_changes_by=alter_isr_of_kip_704 unclean_leader_recovers=reported",
)


def disturb(cluster: MiniCluster, chance: random.Random) -> None:
    """One disturbance: a crash, lost fetches, a failed directory, another controller."""
    broker = chance.choice(inside(cluster).broker_ids)
    others = [other for other in inside(cluster).broker_ids if other != broker]
    match chance.randrange(5):
        case 0:
            cluster.kill(broker, lose_tail="unflushed")
            cluster.run_for("3s")
            cluster.restart(broker)
        case 1:
            cluster.cut(broker, others, api="Fetch", lasting="35s")
        case 2:
            cluster.fail_dir(broker, chance.randrange(2))
        case 3:
            active = cluster.active_controller
            if active is not None:
                cluster.kill(active)
                cluster.run_for("3s")
                cluster.restart(active)
        case _:
            cluster.cut(broker, cluster.controllers, lasting="12s")
    cluster.run_for(f"{chance.randint(1, 8)}s")


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("seed", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_the_cluster_converges_and_no_acknowledged_record_is_lost(seed: int, text: str) -> None:
    chance = random.Random(seed)
    with MiniCluster(
        seed=seed, rules=f"kafka-4.3 {text}", wire=True, config={"log.dirs": "d0,d1"}
    ) as cluster:
        orders = cluster.create_topic("orders", partitions=4, min_isr=2)
        for index in range(4):
            cluster.produce("orders", index, rate=10)
        for _ in range(6):
            disturb(cluster, chance)
        pause_load(inside(cluster))
        cluster.heal()
        repair_all_dirs(inside(cluster))
        for node in inside(cluster).node_ids:
            if not inside(cluster).is_running(node):
                cluster.restart(node)
        running = inside(cluster)
        cluster.wait_until(lambda: running.all_unfenced() and orders.fully_in_sync(), "180s")
        promised: dict[int, int] = {}
        for row in inside(cluster).recorder.table("history"):
            if (row["f"], row["type"], row["acks"]) == ("send", "ok", -1):
                promised[row["part"]] = max(promised.get(row["part"], -1), row["offset"])
        assert len(promised) == 4
        for index, offset in promised.items():
            leader = orders[index].leader
            assert leader is not None
            assert inside(cluster).disks[leader.id].logs[f"orders-{index}"].end_offset > offset
