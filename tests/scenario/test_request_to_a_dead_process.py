"""A request to a process that died, behind a cut, ends with the cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.network import Completion
from minicluster.actors.play.player import play
from minicluster.protocol.messages import ApiVersionsRequest
from minicluster.scenario import parse_scenario

STORY = """
name: a request to a process that died
cluster:
  controllers: 3
  brokers: 3
  seed: 70055
  config: {broker.session.timeout.ms: 2300, broker.heartbeat.interval.ms: 575,
           replica.lag.time.max.ms: 6000, request.timeout.ms: 5100, log.dirs: "d0,d1",
           min.insync.replicas: 2, offsets.topic.num.partitions: 2,
           transaction.state.log.num.partitions: 2}
steps:
  - {do: create_topic, name: alpha, min_isr: 2}
  - {do: produce, topic: alpha, rate: 5}
  - {do: create_topic, name: beta, partitions: 3, min_isr: 2}
  - {at: 3s, do: loss, src: all, dst: all, p: 0.1}
  - {at: 3s, do: delay, src: all, dst: all, mean: 34ms}
  - {at: 13500ms, do: partition, symmetric: false, lasting: 8s,
     groups: [["broker(1)", "controller(0)", "controller(2)"],
              ["broker(2)", "broker(3)", "controller(1)"]]}
  - {at: 21385ms, do: bounce, node: controller(0), down: 300ms}
  - {at: 24s, do: liveness, bound: 3m}
"""


def test_a_leader_proposes_again_once_it_hears_that_the_controller_died(tmp_path: Path) -> None:
    """An AlterPartition is handled behind a cut in one direction; then its controller is bounced
    and the cut ends. The leader waited for controller.socket.timeout.ms, 30 s."""
    played = play(parse_scenario(STORY), runs=tmp_path)
    assert played.failure is None, played.failure


@pytest.mark.parametrize("runtime", ["simulated", "threaded"])
def test_a_pause_is_no_death_and_a_death_is_told_when_the_link_carries(runtime: Any) -> None:
    ended: list[str | None] = []

    class Caller:
        def deliver(self, completion: Completion, /) -> None:
            ended.append(completion.failure)

    with MiniCluster(seed=1, runtime=runtime, brokers=2, controllers=1) as cluster:
        one, two = cluster.brokers
        cluster.pause(two)
        cluster.cut(two, one)
        inside(cluster).network.request(
            src=1, dst=2, body=ApiVersionsRequest(), version=3, caller=Caller(), timeout_ms=60_000
        )
        cluster.heal()
        cluster.run_for("200ms")
        assert ended == []
        cluster.cut(two, one)
        cluster.kill(two)
        cluster.restart(two)
        cluster.run_for("200ms")
        assert ended == []
        cluster.heal()
        cluster.wait_until(lambda: ended == ["disconnected"], within="10s")
