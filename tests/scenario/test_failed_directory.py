"""The same directory fails under KIP-858 and under KIP-589: one scenario, two rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster.actors.cluster.mini_cluster import MiniCluster, inside
from minicluster.actors.play.player import play
from minicluster.errors import UserError
from minicluster.scenario import load_scenario
from minicluster.values import replace

STORY = Path(__file__).parent / "failed_directory.yaml"
BY_HEARTBEAT = "kafka-4.3"
BY_REPORT = "kafka-4.3 failed_replicas_reported_by=alter_replica_state"
TWO_DIRECTORIES = {"log.dirs": "d0,d1"}


@pytest.mark.parametrize("rules", [BY_HEARTBEAT, BY_REPORT])
def test_the_story_ends_well_either_way(rules: str, tmp_path: Path) -> None:
    played = play(replace(load_scenario(STORY), rules=rules), runs=tmp_path)
    assert played.failure is None, played.failure


def started(rules: str, **options: Any) -> MiniCluster:
    config = {**TWO_DIRECTORIES, **options.pop("config", {})}
    cluster = MiniCluster(seed=7, rules=rules, config=config, **options)
    cluster.start()
    cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=1)
    cluster.run_for("1s")  # the logs are made, their directories reported
    return cluster


def rpcs(cluster: MiniCluster, api: str) -> list[dict[str, Any]]:
    return [row for row in inside(cluster).recorder.table("rpc") if row["api"] == api]


@pytest.mark.parametrize("rules", [BY_HEARTBEAT, BY_REPORT])
def test_both_ways_lead_to_the_same_partition(rules: str) -> None:
    with started(rules, wire=True) as cluster:
        orders = cluster.topic("orders")
        cluster.fail_dir(1)
        cluster.wait_until(lambda: orders[0].leader == cluster.node(2), within="5s")
        cluster.run_for("3s")
        state = orders[0].state
        assert (state.isr, state.leader_epoch, state.partition_epoch) == ((2, 3), 1, 4)
        assert not cluster.node(1).is_fenced
        reports = rpcs(cluster, "AlterReplicaState")
        reported = [
            r for r in rpcs(cluster, "BrokerHeartbeat") if r["request"].get("offlineLogDirs")
        ]
        assert (bool(reports), bool(reported)) == (rules == BY_REPORT, rules == BY_HEARTBEAT)


def test_an_unreachable_leader_stops_itself_as_shipped_and_stays_in_kip_589() -> None:
    config = {"log.dir.failure.timeout.ms": "5s", "broker.session.timeout.ms": "60s"}
    with started(BY_HEARTBEAT, config=config) as cluster:
        cluster.cut(1, cluster.controllers, api="BrokerHeartbeat")
        cluster.fail_dir(1)
        cluster.run_for("4s")
        assert inside(cluster).is_running(1)
        cluster.wait_until(lambda: not inside(cluster).is_running(1), within="5s")
    with started(BY_REPORT, config=config) as cluster:
        orders = cluster.topic("orders")
        cluster.cut(1, cluster.controllers, api="AlterReplicaState")
        cluster.fail_dir(1)
        cluster.run_for("30s")
        assert inside(cluster).is_running(1) and orders[0].leader == cluster.node(1)
        cluster.heal()
        cluster.wait_until(lambda: orders[0].leader == cluster.node(2), within="60s")


def test_an_unreachable_follower_leaves_the_isr_of_kip_589_because_it_lags() -> None:
    with started(BY_REPORT) as cluster:
        orders, follower = cluster.topic("orders"), cluster.node(3)
        cluster.cut(follower, cluster.controllers, api="AlterReplicaState")
        cluster.fail_dir(follower)
        cluster.produce(orders, acks=1)
        cluster.run_for("1s")
        assert follower in orders[0].isr
        cluster.wait_until(lambda: follower not in orders[0].isr, within="60s")
        assert not follower.is_fenced


@pytest.mark.parametrize("rules", [BY_HEARTBEAT, BY_REPORT])
def test_a_broker_that_starts_with_a_failed_directory_keeps_that_replica_out(rules: str) -> None:
    with started(rules) as cluster:
        orders, broken = cluster.topic("orders"), cluster.node(1)
        cluster.fail_dir(broken)
        cluster.run_for("3s")
        cluster.kill(broken)
        cluster.restart(broken)
        cluster.wait_until(lambda: not broken.is_fenced, within="30s")
        cluster.run_for("30s")
        assert broken not in orders[0].isr


@pytest.mark.parametrize("report", [False, True])
def test_before_3_7_only_a_report_moves_the_leader(report: bool) -> None:
    rules = "kafka-3.9" + (" failed_replicas_reported_by=alter_replica_state" if report else "")
    with started(rules, metadata_version="3.6-IV2") as cluster:
        orders = cluster.topic("orders")
        cluster.fail_dir(1)
        cluster.run_for("10s")
        assert (orders[0].leader != cluster.node(1)) == report


def test_all_that_is_offline_is_reported_to_a_new_controller() -> None:
    with started(BY_REPORT) as cluster:
        orders = cluster.topic("orders")
        cluster.fail_dir(3)
        cluster.wait_until(lambda: len(orders[0].isr) == 2, within="5s")
        active = cluster.active_controller
        assert active is not None
        cluster.kill(active)
        cluster.wait_until(lambda: cluster.active_controller not in (None, active), within="30s")
        cluster.run_for("5s")
        reported = [r["dst"] for r in rpcs(cluster, "AlterReplicaState") if r["error"] == "NONE"]
        assert len(reported) == 2 and reported[0] != reported[1]


def test_a_directory_that_has_failed_already_gets_a_note_and_one_that_is_none_an_error() -> None:
    with started(BY_HEARTBEAT) as cluster:
        cluster.repair_dir(1)
        cluster.fail_dir(1)
        cluster.run_for("1s")
        cluster.fail_dir(1)
        cluster.kill(2)
        cluster.fail_dir(2, directory=1)
        notes = [(r["action"], r["phase"]) for r in inside(cluster).recorder.table("fault")]
        assert notes == [
            ("repair_dir", "note"), ("fail_dir", "start"),
            ("fail_dir", "note"),  # of the broker, once it is offline there
            ("fail_dir", "note"),
            ("kill", "start"), ("fail_dir", "start"),
        ]  # fmt: skip
        for wrong, expected in (
            (2, "has 2 log directories"),
            (-1, "directory: -1 is not a whole number"),
        ):
            with pytest.raises(UserError, match=expected):
                cluster.fail_dir(1, directory=wrong)
        with pytest.raises(UserError, match="has 0 log directories"):
            cluster.fail_dir(101)
