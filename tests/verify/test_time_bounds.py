"""Promises about time on a run of a cluster: nothing is judged before its disturbances end."""

from __future__ import annotations

from pathlib import Path

from minicluster import MiniCluster
from tests.verify import trace_cases_time as cases
from tests.verify.in_process import judged

IDS = tuple(cases.PROMISES)


def test_a_run_names_the_end_of_its_disturbances(tmp_path: Path) -> None:
    """A broker that comes back is in sync again in time; while it is down nothing is judged."""
    with MiniCluster(controllers=1, brokers=3, seed=3) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        cluster.produce("orders", count=5)
        cluster.kill(2)
        down = cluster.save(tmp_path / "down")
        cluster.run_for("20s")
        cluster.restart(2)
        cluster.run_for("80s")
        assert sorted(orders[0].isr) == [1, 2, 3]
        back = cluster.save(tmp_path / "back")
    assert not any(cases for cases, _ in judged(down, *IDS).values())
    found = judged(back, *IDS)
    assert not [messages for _, messages in found.values() if messages]
    assert {rule for rule, (cases, _) in found.items() if cases} >= {"G1", "G2", "G3", "G6", "G8"}
