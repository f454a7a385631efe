"""After the last fault a supervisor starts a broker again that gave up to register."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from minicluster.actors.play.player import play
from minicluster.scenario import parse_scenario
from minicluster.trace import EXIT

STORY = """
name: a broker has little time left to register when everything heals
cluster:
  brokers: 3
  controllers: 1
  seed: 4002
  config: {initial.broker.registration.timeout.ms: 6s, broker.session.timeout.ms: 9s}
steps:
  - {until: unfenced(brokers), within: 30s}
  - {after: 1s, do: bounce, node: 3, down: 100ms}
  - {after: 1s, do: liveness, bound: 3m}
"""


def test_a_broker_that_gave_up_to_register_starts_again(tmp_path: Path) -> None:
    """The session of its last incarnation outlasts its tries (DUPLICATE_BROKER_REGISTRATION).

    Kafka's BrokerLifecycleManager ends the process then, and leaves the rest to a supervisor.
    """
    played = play(parse_scenario(STORY), runs=tmp_path)

    assert played.failure is None, played.failure
    rows = pq.read_table(played.path / "trace" / "fault.parquet").to_pylist()
    assert [row["action"] for row in rows if row["targets"] == "[3]"][-2:] == [EXIT, "restart"]
