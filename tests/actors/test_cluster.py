"""A cluster as a test uses it: it elects, registers, replicates, fails and comes back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.errors import RequestRejected, UserError, WaitTimeout
from minicluster.protocol import ErrorCode
from minicluster.trace import TABLES
from tests.log.controller_directory import read_controller_directory


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(seed=5) as built:
        yield built


def test_a_started_cluster_has_one_active_controller_and_no_fenced_broker(
    cluster: MiniCluster,
) -> None:
    assert cluster.active_controller in cluster.controllers
    assert [broker.is_fenced for broker in cluster.brokers] == [False, False, False]
    assert [broker.broker_epoch > 0 for broker in cluster.brokers] == [True, True, True]


def test_a_new_topic_has_a_leader_and_its_full_isr(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", partitions=3, min_isr=2)
    assert len(orders) == 3
    assert orders.fully_in_sync()
    for partition in orders:
        assert partition.leader == partition.replicas[0]
        assert set(partition.followers) == set(cluster.brokers) - {partition.leader}
        assert (partition.leader_epoch, partition.partition_epoch) == (0, 0)


def test_a_record_that_is_acknowledged_is_on_every_replica(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", min_isr=2)
    outcomes = cluster.produce(orders, count=5)
    assert [outcome.offset for outcome in outcomes] == [0, 1, 2, 3, 4]
    assert orders[0].high_watermark == 5
    disks = [inside(cluster).disks[broker.id] for broker in cluster.brokers]
    ends = [disk.logs["orders-0"].end_offset for disk in disks]
    assert ends == [5, 5, 5]


def test_a_compacted_topic_takes_records_with_a_key_alone(cluster: MiniCluster) -> None:
    latest = cluster.create_topic("latest", configs={"cleanup.policy": "compact"})
    [refused] = cluster.produce(latest)
    [taken] = cluster.produce(latest, keys="customer-1")
    assert (refused.failure, taken.offset) == ("INVALID_RECORD", 0)


def test_a_follower_that_cannot_fetch_leaves_the_isr_and_comes_back(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", min_isr=2)
    cluster.produce(orders, rate=10)
    follower = orders[0].followers[0]

    cluster.cut(follower, orders[0].leader, api="Fetch")
    cluster.wait_until(lambda: follower not in orders[0].isr, within="50s")
    assert not follower.is_fenced

    cluster.heal()
    cluster.wait_until(orders[0].fully_in_sync, within="60s")
    assert orders[0].leader_epoch == 0


def test_a_broker_without_heartbeats_at_the_controllers_is_fenced(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", min_isr=2)
    follower = orders[0].followers[0]
    cluster.cut(follower, cluster.controllers)
    cluster.wait_until(lambda: follower.is_fenced, within="20s")
    assert follower not in orders[0].isr
    cluster.heal()
    cluster.wait_until(orders[0].fully_in_sync, within="60s")
    assert not follower.is_fenced


def test_the_leadership_of_a_crashed_broker_moves_and_no_acknowledged_record_is_lost(
    cluster: MiniCluster,
) -> None:
    orders = cluster.create_topic("orders", min_isr=2)
    cluster.produce(orders, count=10)
    crashed = orders[0].leader
    assert crashed is not None
    cluster.kill(crashed, lose_tail="unflushed")
    cluster.wait_until(lambda: orders[0].leader not in (None, crashed), within="30s")
    assert orders[0].leader_epoch == 1

    epoch = crashed.broker_epoch
    cluster.restart(crashed)
    cluster.wait_until(orders[0].fully_in_sync, within="60s")
    assert crashed.broker_epoch > epoch
    [after] = cluster.produce(orders)
    assert after.offset == 10


def test_another_controller_takes_over_and_the_cluster_goes_on(cluster: MiniCluster) -> None:
    active = cluster.active_controller
    cluster.kill(active)
    cluster.wait_until(lambda: cluster.active_controller not in (None, active), within="10s")
    cluster.create_topic("orders", min_isr=2)
    cluster.restart(active)
    cluster.run_for("5s")
    disks = inside(cluster).disks
    logs = [disks[node.id].logs["__cluster_metadata-0"] for node in cluster.controllers]
    assert max(log.end_offset for log in logs) - min(log.end_offset for log in logs) <= 1


def test_a_controlled_shutdown_hands_over_first_and_is_remembered(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", partitions=3, min_isr=2)
    leader = orders[0].leader
    assert leader is not None
    cluster.controlled_shutdown(leader)
    cluster.wait_until(lambda: not leader.is_running, within="30s")
    assert leader.in_controlled_shutdown
    assert all(partition.leader not in (None, leader) for partition in orders)
    cluster.restart(leader)
    cluster.wait_until(orders.fully_in_sync, within="60s")
    assert not leader.in_controlled_shutdown


def test_a_restart_behind_a_controlled_shutdown_begins_from_a_clean_end(
    cluster: MiniCluster,
) -> None:
    """The next incarnation names the epoch of a clean end, by which it keeps its ELRs (KIP-966)."""
    cluster.create_topic("orders", partitions=3, min_isr=2)
    broker = cluster.brokers[0]
    epoch, incarnation = broker.broker_epoch, inside(cluster).processes[broker.id].incarnation
    cluster.controlled_shutdown(broker)
    cluster.restart(broker)
    assert inside(cluster).processes[broker.id].incarnation == incarnation  # not killed
    cluster.wait_until(lambda: broker.broker_epoch > epoch, within="30s")
    cluster.wait_until(lambda: not broker.is_fenced, within="30s")
    again = inside(cluster).processes[broker.id].broker
    assert again is not None and again.lifecycle.config.previous_broker_epoch == epoch


def test_a_restart_waits_for_the_end_of_a_controlled_shutdown(cluster: MiniCluster) -> None:
    """As a supervisor does: a shutdown that no controller grants ends after five minutes."""
    cluster.create_topic("orders", min_isr=2)  # it runs, and may not just stop
    broker = cluster.brokers[0]
    incarnation = inside(cluster).processes[broker.id].incarnation
    cluster.cut(broker, cluster.controllers)
    cluster.controlled_shutdown(broker)
    cluster.run_for("3s")
    cluster.restart(broker)
    cluster.run_for("290s")
    assert inside(cluster).processes[broker.id].incarnation == incarnation
    cluster.run_for("10s")
    assert inside(cluster).processes[broker.id].incarnation != incarnation
    cluster.heal()
    cluster.wait_until(lambda: not broker.is_fenced, within="60s")


def test_a_controlled_shutdown_that_is_not_granted_ends_after_five_minutes(
    cluster: MiniCluster,
) -> None:
    """Source: KafkaBroker.shutdown, BrokerServer.shutdown."""
    cluster.create_topic("orders", min_isr=2)
    broker = cluster.brokers[0]
    cluster.cut(broker, cluster.controllers)
    cluster.controlled_shutdown(broker)
    cluster.run_for("299s")
    assert broker.is_running
    cluster.run_for("2s")
    assert not broker.is_running


def test_a_broker_that_is_killed_while_it_shuts_down_stays_down(cluster: MiniCluster) -> None:
    cluster.create_topic("orders", min_isr=2)
    broker = cluster.brokers[0]
    cluster.controlled_shutdown(broker)
    cluster.restart(broker)
    cluster.kill(broker)
    cluster.run_for("10s")
    assert not broker.is_running


def test_a_paused_broker_is_fenced_and_resumes_where_it_was(cluster: MiniCluster) -> None:
    broker = cluster.brokers[0]
    epoch = broker.broker_epoch
    cluster.pause(broker, lasting="15s")
    cluster.wait_until(lambda: broker.is_fenced, within="14s")
    cluster.wait_until(lambda: not broker.is_fenced, within="30s")
    assert broker.broker_epoch == epoch


def test_a_broker_whose_metadata_is_late_leads_by_an_old_image(cluster: MiniCluster) -> None:
    broker = cluster.brokers[0]
    cluster.publish_delay(broker, "5s")
    cluster.create_topic("orders", assignment=[[broker, 2, 3]])
    publisher = inside(cluster).processes[broker.id].publisher
    assert publisher is not None
    cluster.run_for("3s")
    assert publisher.image.topics.named("orders") is None
    cluster.run_for("3s")
    assert publisher.image.topics.named("orders") is not None
    cluster.publish_delay(broker, "0s")


def test_elections_and_configs_go_through_the_active_controller(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", min_isr=1)
    preferred = orders[0].leader
    assert preferred is not None
    cluster.kill(preferred)
    cluster.wait_until(lambda: orders[0].leader not in (None, preferred), within="30s")
    cluster.restart(preferred)
    cluster.wait_until(orders.fully_in_sync, within="60s")
    assert cluster.elect(orders[0]) == {"orders-0": ErrorCode.NONE}
    assert orders[0].leader == preferred
    assert cluster.elect("orders-0") == {"orders-0": ErrorCode.ELECTION_NOT_NEEDED}
    cluster.set_config("min.insync.replicas", 3, topic=orders)
    configs = cluster.image.configs
    assert configs.value(2, "orders", "min.insync.replicas") == "3"
    cluster.delete_topic(orders)
    assert not orders.exists


def test_held_messages_can_be_looked_at_and_released(cluster: MiniCluster) -> None:
    broker = cluster.brokers[0]
    cluster.hold(broker, cluster.controllers, api="BrokerHeartbeat")
    cluster.run_for("3s")
    assert [message.broker_id for message in cluster.held(broker)] == [broker.id]
    cluster.release()
    cluster.run_for("3s")
    assert not broker.is_fenced


def test_what_is_affected_already_is_left_alone_with_a_note(cluster: MiniCluster) -> None:
    broker = cluster.brokers[0]
    cluster.cut(broker, cluster.controllers)
    cluster.cut(broker, cluster.controllers)
    cluster.kill(broker)
    cluster.kill(broker)
    cluster.resume(broker)
    notes = [row for row in inside(cluster).recorder.table("fault") if row["phase"] == "note"]
    assert [row["action"] for row in notes] == ["cut", "cut", "cut", "kill", "resume"]


def test_the_run_folder_holds_logs_trace_and_header(cluster: MiniCluster, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    orders = cluster.create_topic("orders", min_isr=2)
    cluster.produce(orders, count=3)
    run = cluster.save(tmp_path / "run")
    header = json.loads((run / "run.json").read_text())
    assert header["seed"] == 5
    assert header["trace_hash"] == cluster.trace_hash
    assert header["brokers"] == [1, 2, 3]
    for controller in cluster.controllers:
        log, state, torn = read_controller_directory(run / f"controller-{controller.id}")
        disk = inside(cluster).disks[controller.id]
        assert log.end_offset == disk.logs["__cluster_metadata-0"].end_offset
        assert state is not None and torn is None
    rpc = pq.read_table(run / "trace" / "rpc.parquet").to_pylist()
    [created] = [row for row in rpc if row["api"] == "CreateTopics"]
    assert created["error"] == "NONE"
    assert json.loads(created["request"])["topics"][0]["name"] == "orders"
    assert len(created["records_written"]) == 4  # topic, its config, ClearElr, partition
    for table in TABLES:
        found = pq.read_metadata(run / "trace" / f"{table}.parquet").num_rows
        assert header["trace_rows"][table] == found
    history = pq.read_table(run / "trace" / "history.parquet").to_pylist()
    assert [(row["type"], row["offset"]) for row in history] == [("ok", 0), ("ok", 1), ("ok", 2)]
    published = pq.read_table(run / "trace" / "publish.parquet").to_pylist()
    hashes: dict[int, set[str]] = {}
    for row in published:
        hashes.setdefault(row["offset"], set()).add(row["image_hash"])
    assert all(len(found) == 1 for found in hashes.values())  # the same image on every broker


@pytest.mark.parametrize(
    ("wrong", "expected"),
    [
        (lambda c: c.create_topic("orders", replicas=4), "INVALID_REPLICATION_FACTOR"),
        (lambda c: c.cut(9, c.controllers), "there is no node 9; nodes are 1, 2, 3, 101"),
        (
            lambda c: c.cut(None, c.controllers),
            "cut: src: None was given; it takes",
        ),
        (lambda c: c.run_for(-5), "-5 is not a duration"),
        (lambda c: c.loss(1, 2, 1.5), "loss: p: 1.5 is not a number from 0 to 1"),
        (lambda c: c.cut(1, 2, api="Fetsch"), "unknown API 'Fetsch'; did you mean Fetch?"),
        (lambda c: c.delay(1, 2, "1s", api=["Zzz"]), "write one such as Fetch or Produce"),
        (
            lambda c: c.kill(1, lose_tail="some"),
            "'some' is not one of none, torn, unflushed, all",
        ),
        (
            lambda c: c.mutate("Z00"),
            "mutate: fault: 'Z00' is not a planted fault; see minicluster list",
        ),
        (lambda c: c.elect("orders"), "write topic-index"),
        (lambda c: c.produce("orders", acks=7), "produce: acks: 7 is not one of 0, 1, all"),
        (
            lambda c: c.set_config("log.retntion.ms", 5),
            "unknown broker config 'log.retntion.ms'; did you mean log.retention.ms?",
        ),
        (
            lambda c: c.set_config("log.dirs", "d1", broker=1),
            "no running broker takes log.dirs; set it in the cluster's config",
        ),
        (
            lambda c: c.set_config("log.retention.ms", "soon"),
            "Invalid value soon for configuration log.retention.ms: Not a number of type LONG",
        ),
        (lambda c: MiniCluster(config={"nope": 1}), "config: 'nope' is not known"),
        (lambda c: MiniCluster(config={"replica.lag.time.max.ms": "x"}), "is not a duration"),
        (lambda c: MiniCluster(metadata_version="9.9"), "9.9"),
        (lambda c: MiniCluster(rules="kafka-2.8"), "choose one of kafka-4.3, kafka-3.9"),
        (lambda c: MiniCluster(faults=["Z00"]), "Z00"),
        (lambda c: MiniCluster(runtime="other"), "not one of simulated, threaded"),  # type: ignore[arg-type]
        (lambda c: MiniCluster(brokers=0), "brokers: 0 is not a whole number from 1 to 100"),
        (lambda c: MiniCluster(controllers=0), "controllers: 0 is not a whole number from 1 to 25"),
    ],
)
def test_a_slip_is_refused_in_one_line(cluster: MiniCluster, wrong: Any, expected: str) -> None:
    with pytest.raises(UserError, match=re.escape(expected)) as error:
        wrong(cluster)
    assert "\n" not in str(error.value)


def test_a_refused_topic_names_the_error_and_kafkas_reason(cluster: MiniCluster) -> None:
    with pytest.raises(RequestRejected) as refusal:
        cluster.create_topic("orders", replicas=4)
    assert refusal.value.error is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_wait_in_vain_names_its_condition_and_shows_the_cluster(cluster: MiniCluster) -> None:
    orders = cluster.create_topic("orders", min_isr=2)
    with pytest.raises(WaitTimeout) as late:
        cluster.wait_until(lambda: len(orders[0].isr) == 1, within="5s")
    text = str(late.value)
    place = r" at test_cluster\.py:\d+ "
    wait = re.escape("timed out after 5s waiting for len(orders[0].isr) == 1")
    assert re.match(wait + place + r"\(seed 5, cluster time 5\.\d+s\)\n", text)
    assert "brokers: 1 unfenced, 2 unfenced, 3 unfenced" in text
    assert "orders-0: leader" in text
    cluster.kill(orders[0].followers[0])
    with pytest.raises(
        WaitTimeout, match=r"timed out after 1s waiting for not orders\.fully_in_sync"
    ):
        cluster.wait_until(lambda: not orders.fully_in_sync(), within="1s")


@pytest.mark.parametrize("metadata_version", ["3.3-IV3", "3.7-IV4", "4.0-IV3"])
def test_older_metadata_versions_work_from_start_to_fail_over(metadata_version: str) -> None:
    with MiniCluster(seed=3, metadata_version=metadata_version) as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        leader = orders[0].leader
        cluster.kill(leader)
        cluster.wait_until(lambda: orders[0].leader not in (None, leader), within="30s")
        cluster.restart(leader)
        cluster.wait_until(orders.fully_in_sync, within="60s")


def test_the_rules_of_kafka_3_9_work_from_start_to_fail_over() -> None:
    with MiniCluster(seed=3, rules="kafka-3.9", metadata_version="3.5-IV2") as cluster:
        orders = cluster.create_topic("orders", min_isr=2)
        leader = orders[0].leader
        cluster.kill(leader)
        cluster.wait_until(lambda: orders[0].leader not in (None, leader), within="30s")
        cluster.restart(leader)
        cluster.wait_until(orders.fully_in_sync, within="60s")


@pytest.mark.parametrize(("brokers", "controllers"), [(1, 1), (5, 3), (3, 5)])
def test_clusters_of_other_sizes_start(brokers: int, controllers: int) -> None:
    with MiniCluster(brokers=brokers, controllers=controllers, seed=2) as cluster:
        assert inside(cluster).all_unfenced()
        assert cluster.active_controller is not None


def test_every_controller_registers_and_again_under_a_new_incarnation() -> None:
    with MiniCluster(seed=3) as cluster:
        cluster.run_for("1s")
        before = dict(cluster.image.cluster.controllers.rows)
        assert sorted(before) == [101, 102, 103]
        standby = next(node for node in cluster.controllers if node != cluster.active_controller)
        cluster.bounce(standby, down="1s")
        cluster.run_for("5s")
        after = cluster.image.cluster.controllers.rows
        changed = [node for node in before if after[node] != before[node]]
        assert changed == [standby.id]
