"""A promise about ISRs counts from the end of an ISR change that a fault has lost."""

from __future__ import annotations

from pathlib import Path

from minicluster.actors.play.player import play
from minicluster.scenario import parse_scenario
from tests.verify.in_process import judged

LOST = """
name: an ISR change is lost before everything heals
cluster:
  brokers: 3
  controllers: 1
  seed: 57
  config: {replica.lag.time.max.ms: 2s, request.timeout.ms: 2s, broker.session.timeout.ms: 2s,
           broker.heartbeat.interval.ms: 500ms}
steps:
  - {do: create_topic, name: orders, assignment: [[1, 2, 3]]}
  - {until: fully_in_sync(orders-0), within: 30s}
  - {do: produce, topic: orders, rate: 10}
  - {do: cut, src: 1, dst: controllers, api: AlterPartition}
  - {do: cut, src: 3, dst: 1, api: Fetch}
"""


def test_a_leader_waits_for_its_lost_request_as_long_as_kafkas_does(tmp_path: Path) -> None:
    """controller.socket.timeout.ms: 30 s, in which the leader proposes nothing else."""
    story = LOST + "  - {after: 5s, do: liveness, bound: 3m}\n"
    played = play(parse_scenario(story), runs=tmp_path)
    assert played.failure is None, played.failure


def test_it_waits_as_long_where_the_scenario_only_heals(tmp_path: Path) -> None:
    """The promises about time that are judged after the run count from the same moment."""
    later = "until: fully_in_sync(orders-0), within: 1s"
    story = LOST + f"  - {{after: 5s, do: heal}}\n  - {{after: 90s, {later}}}\n"
    played = play(parse_scenario(story), runs=tmp_path)
    cases, messages = judged(played.path, "G4")["G4"]
    assert cases and not messages
