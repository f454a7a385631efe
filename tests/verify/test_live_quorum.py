"""E06 while a cluster runs: on the hand-written runs, and on a real one."""

from __future__ import annotations

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.verify import LiveJudge
from tests.verify.examples.by_rule import RUNS_BAD, RUNS_NEAR, Case


def broken(case: Case) -> set[str]:
    judge = LiveJudge()
    for row in case().rows["raft_event"]:
        judge.on_raft_event(row)
    return {finding.rule for finding in judge.findings} & {"E06"}


@pytest.mark.parametrize("case", RUNS_BAD["E06"], ids=lambda case: case.name)
def test_a_run_that_breaks_it_is_found(case: Case) -> None:
    assert broken(case) == {"E06"}


@pytest.mark.parametrize("case", RUNS_NEAR["E06"], ids=lambda case: case.name)
def test_a_near_miss_passes(case: Case) -> None:
    assert broken(case) == set()


def test_a_single_controller_that_does_not_flush_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other node has its log, and every image is the fold of it."""
    with MiniCluster(controllers=1, brokers=1, seed=3) as cluster:
        cluster.create_topic("orders", replicas=1)
        assert inside(cluster).live_checks.looked_at["E06"] > 9

    cluster = MiniCluster(controllers=1, brokers=1, seed=3).start()
    monkeypatch.setattr("minicluster.quorum.state.node.QuorumNode.flush", lambda node: None)
    with pytest.raises(InvariantViolated, match="rule E06 is broken at offset"), cluster:
        cluster.create_topic("orders", replicas=1)
