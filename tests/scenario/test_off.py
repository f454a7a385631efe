"""Steps that end what others have begun: flush_on, and mutate with ``planted: false``."""

from __future__ import annotations

from pathlib import Path

from minicluster.actors.play.player import play
from minicluster.scenario import parse_scenario

STORY = """
name: a disk that lies for a while
cluster: {brokers: 1, controllers: 1, seed: 3}
steps:
  - {do: create_topic, name: orders, replicas: 1, configs: {flush.messages: 1}}
  - {do: produce, topic: orders, count: 2}
  - {do: flush_off, node: 1}
  - {do: produce, topic: orders, count: 2}
  - {do: flush_on, node: 1}
  - {do: produce, topic: orders, count: 2}
  - {do: kill, node: 1, lose_tail: unflushed}
"""


def test_a_disk_that_flushes_again_keeps_what_comes_then(tmp_path: Path) -> None:
    for script, kept in ((STORY, 6), (STORY.replace("flush_on", "flush_off"), 2)):
        ends: list[int] = []
        played = play(
            parse_scenario(script),
            runs=tmp_path,
            at_end=lambda cluster, ends=ends: ends.append(
                cluster.disks[1].logs["orders-0"].end_offset
            ),
        )
        assert played.failure is None
        assert ends == [kept]


def test_a_fault_is_taken_out_again() -> None:
    steps = "steps:\n  - {do: mutate, fault: Z18}\n  - {do: mutate, fault: Z18, planted: false}\n"
    scenario = parse_scenario(f"name: a fault for a while\ncluster: {{seed: 3}}\n{steps}")
    assert [step.action.planted for step in scenario.steps] == [True, False]
