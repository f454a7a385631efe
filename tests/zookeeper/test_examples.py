"""The examples on ZooKeeper: each goes as it is written, and its log shows what it is about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.cluster.running import RunningCluster
from minicluster.actors.play.player import idle_faults, play, play_once
from minicluster.metadata.inter_broker_protocol import InterBrokerProtocol
from minicluster.scenario import load_scenario
from minicluster.values import replace
from minicluster.verify.live import LiveZnodeJudge

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "zookeeper"
STORIES = tuple(path.stem for path in sorted(EXAMPLES.glob("*.yaml")))


def lines_of(story: str, runs: Path) -> list[dict[str, Any]]:
    """The log of a story, in which no rule is broken."""
    scenario = load_scenario(EXAMPLES / f"{story}.yaml")
    played = play(scenario, runs=runs)
    assert played.failure is None
    log = (played.path / "zookeeper" / "log.jsonl").read_text()
    lines = [json.loads(line) for line in log.splitlines()]
    judge = LiveZnodeJudge(InterBrokerProtocol.parse(scenario.inter_broker_protocol or "3.9"))
    for line in lines:
        judge.on_line(line)
    assert judge.findings == []
    return lines


def test_there_is_one_for_each_kip() -> None:
    assert set(STORIES) == {
        "failed_directory", "isr_by_controller", "isr_by_leader", "isr_writes_cross",
        "notification_lost", "unclean_recovery",
    }  # fmt: skip


def states(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in lines if one["op"] == "set" and one["path"].endswith("/state")]


def test_the_controller_is_the_only_writer(tmp_path: Path) -> None:
    lines = lines_of("isr_by_controller", tmp_path)
    assert states(lines) and all("multi" in one for one in states(lines))
    assert not any("isr_change_0" in one.get("path", "") for one in lines)


def test_the_leader_writes_and_notifies_later(tmp_path: Path) -> None:
    lines = lines_of("isr_by_leader", tmp_path)
    own = [one for one in states(lines) if "multi" not in one]
    notified = [one for one in lines if "isr_change_0" in one.get("path", "")]
    assert own and notified
    assert notified[0]["ms"] - own[0]["ms"] >= 5_000


def test_the_recovery_state_is_in_the_znode_until_the_leader_expands(tmp_path: Path) -> None:
    lines = lines_of("unclean_recovery", tmp_path)
    recovering = [one["json"].get("leader_recovery_state", 0) for one in states(lines)]
    assert 1 in recovering and recovering[-1] == 0


@pytest.mark.parametrize("story", ["failed_directory"])
def test_a_lost_directory_is_an_event(story: str, tmp_path: Path) -> None:
    lines = lines_of(story, tmp_path)
    assert any("log_dir_event_0" in one.get("path", "") for one in lines)


def played(story: str, level: str, *faults: str) -> tuple[RunningCluster, str | None]:
    """The cluster at the end of a story at a level, and the rule that it breaks."""
    scenario = load_scenario(EXAMPLES / f"{story}.yaml")
    cluster, failure = play_once(replace(scenario, inter_broker_protocol=level, faults=faults))
    assert failure is None or failure.rule is not None, failure
    return cluster, None if failure is None else failure.rule


def failed_writes(cluster: RunningCluster) -> list[dict[str, Any]]:
    return [one for one in cluster.zookeeper_log.lines if one.get("error") == "BADVERSION"]


def test_the_writes_of_leader_and_controller_cross() -> None:
    """Only the version of the znode is between them; from IBP 2.7-IV2 on there is one writer."""
    cluster, broken = played("isr_writes_cross", "2.6")
    (failed,) = failed_writes(cluster)
    assert broken is None and failed["broker"] == 2 and "multi" not in failed
    cluster, broken = played("isr_writes_cross", "2.6", "Y05")
    assert broken == "K3" and not idle_faults(cluster), "it acts when the leader sends its write"
    for faults in ((), ("Y05",)):
        cluster, broken = played("isr_writes_cross", "2.7-IV2", *faults)
        assert broken is None and not failed_writes(cluster)
        assert idle_faults(cluster) == faults


def seen_isr(cluster: RunningCluster, broker: int) -> tuple[int, ...]:
    """The ISR of orders-0 that a broker shows to clients."""
    process = cluster.processes[broker]
    assert process.zk_broker is not None
    topic = process.zk_broker.requests.cache.topics.named("orders")
    assert topic is not None
    return topic.partitions[0].isr


def test_a_notification_is_lost() -> None:
    """All brokers show the old ISR for good; from IBP 2.7-IV2 on there is nothing to lose."""
    cluster, broken = played("notification_lost", "2.6", "Y04")
    assert broken == "K13"
    assert [seen_isr(cluster, broker) for broker in (1, 2)] == [(2, 3, 4)] * 2
    assert cluster.image.topics.named("orders").partitions[0].isr == (2, 4)  # type: ignore[union-attr]
    cluster, broken = played("notification_lost", "2.7-IV2", "Y04")
    assert broken is None and idle_faults(cluster) == ("Y04",)
    assert seen_isr(cluster, 1) == (2, 4)  # by UpdateMetadata; the next one is on its way
