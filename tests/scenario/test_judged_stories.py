"""Stories whose runs are judged, all in one job: each goes as written and breaks no rule."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from minicluster.actors.cluster.mini_cluster import MiniCluster, inside
from minicluster.actors.play.player import play
from minicluster.scenario import load_scenario
from minicluster.verify import Report, verify
from minicluster.verify.evidence.reading import read_run
from tests.verify.check_run import check_run
from tests.verify.test_cut_logs import FEW_CUTS, check

Story = Callable[[MiniCluster], None]

BY_REPORT = "kafka-4.3 failed_replicas_reported_by=alter_replica_state"
BY_HEARTBEAT = "kafka-4.3"


def voters_change_while_the_controller_decides(cluster: MiniCluster) -> None:
    """Control records and decisions share the log; neither takes the other's offsets."""
    active = cluster.active_controller
    for number in range(4):
        cluster.add_voter(104)
        cluster.create_topic(f"a{number}")
        cluster.remove_voter(104)
        cluster.create_topic(f"b{number}")
    assert cluster.active_controller == active


def all_controllers_compact(cluster: MiniCluster) -> None:
    """No log has its beginning any more when another controller takes over."""
    for number in range(6):
        cluster.create_topic(f"t{number}", partitions=2, min_isr=2)
        if number % 3 == 2:
            cluster.delete_topic(f"t{number}")
    cluster.compact(cluster.controllers)
    cluster.fail_over()
    cluster.create_topic("after")
    cluster.run_for("2s")


def a_halted_broker_does_not_start_before_its_directory_is_mended(cluster: MiniCluster) -> None:
    """It then comes back as after an unclean shutdown: no note of a clean end was left."""
    orders = cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=2)
    cluster.run_for("1s")
    cluster.produce("orders", count=5)
    cluster.fail_dir(1, directory=1)
    cluster.wait_until(lambda: cluster.node(1).is_fenced, within="20s")
    cluster.restart(1)
    cluster.run_for("1s")
    assert not inside(cluster).is_running(1)
    cluster.repair_dir(1, directory=1)
    cluster.restart(1)
    cluster.wait_until(orders.fully_in_sync, within="60s")
    rows = [r for r in inside(cluster).recorder.table("rpc") if r["api"] == "BrokerRegistration"]
    assert {r["request"]["previousBrokerEpoch"] for r in rows if r["src"] == 1} == {-1}


def the_last_member_loses_its_log(cluster: MiniCluster) -> None:
    """orders-0 has come down to one ISR member, which restarts without its log: no fault."""
    orders = cluster.create_topic("orders", assignment=[[1, 2]], min_isr=1)
    cluster.produce(orders, count=5)
    cluster.kill(2)
    cluster.wait_until(lambda: orders[0].isr == (cluster.node(1),), within="60s")
    cluster.produce(orders, count=3)
    cluster.kill(1, lose_tail="all")
    cluster.restart(1)
    cluster.wait_until(lambda: orders[0].leader == cluster.node(1), within="60s")
    cluster.restart(2)
    cluster.wait_until(orders[0].fully_in_sync, within="60s")


def the_directory_of_the_lone_member_fails(cluster: MiniCluster) -> None:
    """Broker 1 is alone in the ISR when its directory fails: the election is unclean."""
    cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=1, unclean=True)
    orders = cluster.topic("orders")
    cluster.produce("orders", count=3)
    cluster.cut([2, 3], 1, api="Fetch")
    cluster.produce("orders", count=3, acks=1)
    cluster.wait_until(lambda: orders[0].isr == (cluster.node(1),), within="90s")
    cluster.heal()
    cluster.fail_dir(1)
    cluster.wait_until(lambda: orders[0].leader not in (None, cluster.node(1)), within="10s")
    assert not cluster.node(1).is_fenced
    cluster.run_for("5s")


def a_fetch_is_under_way_when_its_directory_fails(cluster: MiniCluster) -> None:
    """It brings the replica back until it lags.

    Kafka's controller looks at directories only when they fail.
    """
    cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=1)
    orders = cluster.topic("orders")
    cluster.run_for("2s")
    cluster.delay(3, 1, mean="900ms", api="Fetch")
    cluster.run_for("2s")
    cluster.fail_dir(3)
    cluster.wait_until(lambda: cluster.node(3) not in orders[0].isr, within="5s")
    cluster.wait_until(lambda: cluster.node(3) in orders[0].isr, within="5s")
    cluster.run_for("60s")
    assert cluster.node(3) in orders[0].isr, "there is nothing that it lacks"
    cluster.produce("orders", acks=1)
    cluster.run_for("60s")
    assert cluster.node(3) not in orders[0].isr, "it fetches no more"


TWO_DIRECTORIES = {"log.dirs": "d0,d1"}
WITHOUT_ELR: dict[str, Any] = {
    "controllers": 1,
    "seed": 5,
    "config": {"eligible.leader.replicas.enable": False},
}
STORIES: dict[str, tuple[Story, dict[str, Any]]] = {
    "voters": (
        voters_change_while_the_controller_decides,
        {
            "controllers": 4,
            "seed": 8,
            "config": {"kraft.version": 1, "initial.controllers": 3},
        },
    ),
    "compacted": (
        all_controllers_compact,
        {"seed": 4, "config": {"metadata.log.max.record.bytes.between.snapshots": 2_000}},
    ),
    "halted": (
        a_halted_broker_does_not_start_before_its_directory_is_mended,
        {"seed": 11, "config": {**TWO_DIRECTORIES, "metadata.log.dir": "d1"}, "wire": True},
    ),
    "lost-log-3.9": (the_last_member_loses_its_log, {**WITHOUT_ELR, "rules": "kafka-3.9"}),
    "lost-log-4.3": (the_last_member_loses_its_log, {**WITHOUT_ELR, "rules": "kafka-4.3"}),
    "failed-by-report": (
        the_directory_of_the_lone_member_fails,
        {"seed": 7, "rules": BY_REPORT, "config": TWO_DIRECTORIES},
    ),
    "failed-by-heartbeat": (
        the_directory_of_the_lone_member_fails,
        {"seed": 7, "rules": BY_HEARTBEAT, "config": TWO_DIRECTORIES},
    ),
    "fetch-under-way": (
        a_fetch_is_under_way_when_its_directory_fails,
        {"seed": 8, "config": {**TWO_DIRECTORIES, "replica.fetch.wait.max.ms": 200}},
    ),
}
FILES = ("quorum", "reassigned")
FOLDER = Path(__file__).parent


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("runs")
    found = {}
    for name, (story, shape) in STORIES.items():
        with MiniCluster(run_id=name, **shape) as cluster:
            story(cluster)
            found[name] = cluster.save(folder / name)
    for name in FILES:
        played = play(load_scenario(FOLDER / f"{name}.yaml"), runs=folder)
        assert played.failure is None, played.failure
        found[name] = played.path
    return found


@pytest.fixture(scope="module")
def reports(runs: dict[str, Path]) -> dict[str, Report]:
    return dict(zip(runs, verify(*runs.values(), engine="process").each, strict=True))


@pytest.mark.parametrize("name", [*STORIES, *FILES])
def test_a_story_breaks_no_rule(name: str, reports: dict[str, Report]) -> None:
    assert reports[name].valid, reports[name].to_text()


@pytest.mark.parametrize("name", ["lost-log-3.9", "lost-log-4.3"])
def test_the_online_rules_find_nothing_either(name: str, runs: dict[str, Path]) -> None:
    assert check_run(read_run(runs[name], name)).findings == []


def test_a_reassignment_has_cases(reports: dict[str, Report]) -> None:
    assert reports["reassigned"].rule("E28").looked_at > 0


@pytest.mark.parametrize(
    ("name", "verdict"), [("failed-by-report", "not_promised"), ("failed-by-heartbeat", "valid")]
)
def test_an_unclean_election_after_a_failed_replica_is_no_false_alarm(
    name: str, verdict: str, reports: dict[str, Report]
) -> None:
    """C5. Under KIP-589 the log holds no failed replica, so it does not show the candidates."""
    assert reports[name].rule("C5").verdict == verdict


def test_what_a_fetch_under_way_brings_back_is_not_promised(reports: dict[str, Report]) -> None:
    result = reports["fetch-under-way"].rule("D1")

    assert result.not_promised and result.looked_at


def test_every_step_about_controllers_found_somebody_and_did_something(
    runs: dict[str, Path],
) -> None:
    """All that a scenario can do to them is in one story (KIP-595, KIP-630, KIP-853)."""
    rows = pq.read_table(runs["quorum"] / "trace" / "fault.parquet").to_pylist()
    notes = {(row["action"], row["detail"].split(":")[0]) for row in rows if row["phase"] == "note"}
    assert notes == {("set_config", "set retention.ms")}  # while three of five are gone
    targets: dict[str, list[object]] = {}
    for row in rows:
        if row["phase"] == "start":
            targets.setdefault(row["action"], []).extend(json.loads(row["targets"]))
    actions = "compact cut isolate kill partition pause resign restart slow_disk snapshot wipe"
    assert " ".join(sorted(targets)) == actions
    assert all(targets.values())
    assert sorted(targets["snapshot"]) == [101, 102, 103, 104, 105]  # type: ignore[type-var]
    assert targets["wipe"] == [105]
    assert len(targets["partition"]) == 4  # one way, to the other controllers
    assert all(src != dst for src, dst in targets["partition"])  # type: ignore[misc,attr-defined]


def test_a_reassignment_stays_innocent_when_its_log_is_truncated(
    runs: dict[str, Path], tmp_path: Path
) -> None:
    check({runs["reassigned"]: load_scenario(FOLDER / "reassigned.yaml")}, tmp_path, 2, FEW_CUTS)
