"""A scenario makes a static quorum dynamic (KIP-853)."""

from __future__ import annotations

from minicluster.actors.cluster.actions.controllers import voters
from minicluster.actors.play.player import play_once
from minicluster.scenario import parse_scenario


def test_a_scenario_raises_kraft_version_and_lets_another_controller_vote() -> None:
    text = """
name: a static quorum becomes dynamic
cluster: {controllers: 4, brokers: 1, seed: 8, config: {initial.controllers: 3}}
steps:
  - {after: 1s, do: add_voter, node: controller(104), may_fail: true}
  - {after: 6s, do: upgrade_kraft_version}
  - {do: add_voter, node: controller(104)}
  - {after: 1s, do: liveness, bound: 60s}
"""
    cluster, failure = play_once(parse_scenario(text))
    assert failure is None, failure
    assert [node.id for node in voters(cluster)] == [101, 102, 103, 104]
