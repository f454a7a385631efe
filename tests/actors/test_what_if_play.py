"""Recorded logs under disturbances: with and without the logs of replicas they show the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster.actors.play import what_if as played
from minicluster.errors import UserError
from minicluster.verify.what_if.outcome import Stage, WhatIf

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"


def outcome(name: str, *steps: str, watch_ms: int = 40_000) -> WhatIf:
    return played.what_if(LOGS / name, steps, seeds=[1], config={}, watch_ms=watch_ms)


def shown(stage: Stage) -> object:
    return (
        stage.all.most,
        stage.all.at_end,
        [(topic.name, topic.most, topic.at_end) for topic in stage.topics],
        [str(partition) for partition in stage.left],
    )


STORIES = {
    "cluster": ("kill 2", "isolate 1 lasting=20s", "restart 2", "controlled_shutdown 1"),
    "jbod": ("cut 1 2", "fail_dir 3 1", "kill 2", "restart [2]"),
}


@pytest.mark.parametrize("name", STORIES)
def test_replicas_without_logs_keep_the_same_isrs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = outcome(name, *STORIES[name])
    monkeypatch.setattr(played, "LOGS_PARTITIONS_MAX", 0)
    quiet = outcome(name, *STORIES[name])
    [of_whole], [of_quiet] = whole.seeds, quiet.seeds
    assert of_whole.failure is of_quiet.failure is None
    for one, other in zip(of_whole.stages[1:], of_quiet.stages[1:], strict=True):
        assert shown(one) == shown(other), one.text
        for place in range(3):
            apart = abs(one.all.longest_ms[place] - other.all.longest_ms[place])
            assert apart < 3_000, one.text


def test_records_need_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(played, "LOGS_PARTITIONS_MAX", 0)
    with pytest.raises(UserError, match=r"step 2 .*simulated without logs"):
        outcome("jbod", "kill 2", "produce orders count=1")


def test_a_rack_dies(tmp_path: Path) -> None:
    from tests.actors.test_from_log import checkpoint_of

    path = checkpoint_of(tmp_path, brokers=(0, 1, 2, 3, 4, 5), controllers=(101, 102, 103))
    found = played.what_if(path, ["kill rack(3)"], seeds=[1], config={}, watch_ms=15_000)
    [one] = found.seeds
    assert one.failure is None
    assert {down for left in one.stages[1].left for down in left.down} <= {0, 3}
    assert one.stages[1].all.most[0] > 0
