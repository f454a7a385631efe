"""Promises about time on a run of a cluster: nothing is judged before its disturbances end."""

from __future__ import annotations

from pathlib import Path

from minicluster import MiniCluster
from minicluster.actors.play.player import play_once
from minicluster.scenario import parse_scenario
from minicluster.verify.waits.liveness import RULES
from tests.verify.in_process import judged

IDS = tuple(rule.id for rule in RULES)
UNREGISTERED = """
name: unregistered
cluster: {controllers: 1, brokers: 3, seed: 3}
steps:
  - {do: create_topic, name: orders, replicas: 3}
  - {do: unregister, broker: 2}
  - {after: 30s, expect: not unfenced(2)}
  - {do: liveness}
"""


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


def test_a_broker_that_is_unregistered_while_it_runs_is_disturbed_until_it_restarts(
    tmp_path: Path,
) -> None:
    """As in Kafka, where only a new process registers; heartbeats are just repeated."""
    with MiniCluster(controllers=1, brokers=3, seed=3) as cluster:
        cluster.create_topic("orders", replicas=3)
        cluster.unregister(2)
        cluster.run_for("60s")
        out = cluster.save(tmp_path / "out")
        assert cluster.image.cluster.broker(2) is None
        cluster.restart(2)
        cluster.run_for("80s")
        back = cluster.save(tmp_path / "back")
    assert not any(cases for cases, _ in judged(out, *IDS).values())
    found = judged(back, *IDS)
    assert not [messages for _, messages in found.values() if messages]
    assert found["G1"][0] == 3


def test_liveness_restarts_a_broker_that_was_unregistered_while_it_ran() -> None:
    _, failure = play_once(parse_scenario(UNREGISTERED))
    assert failure is None
