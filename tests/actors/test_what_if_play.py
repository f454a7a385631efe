"""The cluster of a recorded log, or of a checkpoint, under disturbances."""

from __future__ import annotations

from pathlib import Path

from minicluster.actors.play import what_if as played
from tests.actors.large_checkpoint import checkpoint_of as large_checkpoint_of

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
MANY = 600


def test_replicas_come_back_into_the_isrs_of_a_recorded_log() -> None:
    steps = ("cut 1 2", "fail_dir 3 1", "kill 2", "restart [2]")
    found = played.what_if(LOGS / "jbod", steps, seeds=[1], config={}, watch_ms=40_000)
    [play] = found.seeds
    assert play.failure is None
    cut, failed, killed, restarted = (stage.all for stage in play.stages[1:])
    assert cut.most == (0, 0, 0)  # the controller still reaches both
    assert failed.at_end == (0, 0, 1)  # one replica is in the directory
    assert killed.most[0] > 0 and killed.at_end[0] == 0 and killed.at_end[2] > 1
    assert 8_000 < killed.longest_ms[0] < 11_000  # a session of 9 s
    assert restarted.at_end == failed.at_end


def test_records_are_produced_in_clusters_of_many_partitions(tmp_path: Path) -> None:
    path = large_checkpoint_of(tmp_path, MANY)
    steps = ("kill 2", "produce t0 count=3")
    found = played.what_if(path, steps, seeds=[1], config={}, watch_ms=15_000)
    [play] = found.seeds
    assert play.failure is None
    assert len(play.stages) == 3


def test_a_rack_dies(tmp_path: Path) -> None:
    from tests.actors.test_from_log import checkpoint_of

    path = checkpoint_of(tmp_path, brokers=(0, 1, 2, 3, 4, 5), controllers=(101, 102, 103))
    found = played.what_if(path, ["kill rack(3)"], seeds=[1], config={}, watch_ms=15_000)
    [one] = found.seeds
    assert one.failure is None
    assert {down for left in one.stages[1].left for down in left.down} <= {0, 3}
    assert one.stages[1].all.most[0] > 0
