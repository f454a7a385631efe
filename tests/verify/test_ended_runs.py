"""A broken rule ends the cluster that breaks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.play.player import play
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.scenario import load_scenario
from minicluster.values import replace


def test_a_single_controller_that_does_not_flush_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other node has its log, and every image is the fold of it."""
    with MiniCluster(controllers=1, brokers=1, seed=3) as cluster:
        cluster.create_topic("orders", replicas=1)
        assert inside(cluster).live_checks.looked_at["E06"] > 9

    cluster = MiniCluster(controllers=1, brokers=1, seed=3).start()
    monkeypatch.setattr("minicluster.quorum.state.node.QuorumNode.flush", lambda node: None)
    with pytest.raises(InvariantViolated, match="rule E06 is broken at offset"), cluster:
        cluster.create_topic("orders", replicas=1)


def test_a_leader_that_counts_what_is_not_held_ends_the_run(tmp_path: Path) -> None:
    zoo = Path(__file__).resolve().parents[1] / "zoo"
    scenario = load_scenario(zoo / "stopped_follower.yaml")
    planted = play(replace(scenario, faults=("S56",)), runs=tmp_path)
    assert planted.failure is not None and planted.failure.rule == "B2"
