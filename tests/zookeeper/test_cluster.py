"""A cluster on ZooKeeper: the same methods, and a broker in place of the controllers."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.zookeeper.liveness import behind
from minicluster.errors import NoResponse, UserError
from minicluster.metadata.topic_partition import TopicPartition
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.protocol.messages import UpdateFeaturesRequest
from minicluster.rules import FailedReplicas, Rules
from minicluster.values import replace
from minicluster.zookeeper.broker.refusals import refusal_of

LEVELS = ("2.6", "2.7-IV2", "3.9")
CONFIG = {"zookeeper.session.timeout.ms": 6_000, "replica.lag.time.max.ms": 4_000}


def cluster_of(level: str, seed: int = 3) -> MiniCluster:
    return MiniCluster(
        brokers=3, mode="zookeeper", inter_broker_protocol=level, seed=seed, config=CONFIG
    )


@pytest.mark.parametrize("level", LEVELS)
def test_a_replica_leaves_the_isr_and_comes_back(level: str) -> None:
    with cluster_of(level) as cluster:
        orders = cluster.create_topic("orders", replicas=3, min_isr=2)
        leader, follower = orders[0].leader, orders[0].followers[0]
        assert leader is not None
        cluster.kill(follower)
        cluster.wait_until(lambda: follower not in orders[0].isr, within="30s")
        assert cluster.produce("orders", count=3)[-1].ok
        cluster.restart(follower)
        cluster.wait_until(orders[0].fully_in_sync, within="30s")
        cluster.kill(leader)
        cluster.wait_until(lambda: orders[0].leader not in (None, leader), within="30s")
        assert leader not in orders[0].isr


@pytest.mark.parametrize("level", LEVELS)
def test_the_controller_ends_and_another_broker_goes_on(level: str) -> None:
    with cluster_of(level) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        first = cluster.active_controller
        assert first is not None
        cluster.controlled_shutdown(first)
        cluster.wait_until(lambda: cluster.active_controller not in (None, first), within="30s")
        cluster.wait_until(lambda: first not in orders[0].isr, within="30s")
        cluster.create_topic("more", partitions=2, replicas=2)
        cluster.restart(first)
        cluster.wait_until(orders[0].fully_in_sync, within="30s")


def test_a_reassignment_goes_through_its_phases() -> None:
    with cluster_of("3.9") as cluster:
        moved = cluster.create_topic("moved", assignment=[[1, 2]])
        cluster.reassign("moved-0", [3, 1])
        cluster.wait_until(lambda: not moved[0].is_reassigning, within="30s")
        cluster.wait_until(lambda: {n.id for n in moved[0].isr} == {1, 3}, within="30s")
        cluster.delete_topic("moved")
        assert "moved" not in json.dumps(cluster.state())


@pytest.mark.parametrize("level", LEVELS)
def test_a_topic_with_a_replica_everywhere_is_deleted_and_made_again(level: str) -> None:
    with cluster_of(level) as cluster:
        cluster.create_topic("orders", partitions=2, replicas=3)
        cluster.delete_topic("orders", within="5s")
        again = cluster.create_topic("orders", partitions=1, replicas=3)
        assert len(again) == 1
        assert cluster.produce("orders", count=2)[-1].ok


def test_a_topic_whose_partition_never_had_a_leader_is_not_recreated() -> None:
    with cluster_of("3.9") as cluster:
        active = cluster.active_controller
        assert active is not None
        leaving = next(node for node in cluster.brokers if node != active)
        # It stays registered, and leads nothing.
        cluster.hold("brokers", leaving, api="ControlledShutdown")
        cluster.controlled_shutdown(leaving)
        cluster.run_for("1s")
        with pytest.raises(NoResponse):
            cluster.create_topic("orders", assignment=[[leaving], [active]])
        with pytest.raises(UserError, match="orders: partition 0 has no state yet"):
            cluster.recreate_topic("orders")


def test_the_session_of_a_broker_that_is_cut_off_ends() -> None:
    with cluster_of("3.9") as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        follower = orders[0].followers[0]
        cluster.cut(follower, 201)
        cluster.wait_until(lambda: follower.is_fenced, within="30s")
        cluster.wait_until(lambda: follower not in orders[0].isr, within="1s")
        cluster.heal()
        cluster.wait_until(orders[0].fully_in_sync, within="60s")


def test_the_same_seed_gives_the_same_znodes(tmp_path: Path) -> None:
    logs = []
    for number in range(2):
        with cluster_of("2.7-IV2", seed=5) as cluster:
            cluster.create_topic("orders", partitions=2, replicas=3)
            cluster.kill(cluster.brokers[0])
            cluster.run_for("20s")
            folder = cluster.save(tmp_path / str(number))
            logs.append((cluster.trace_hash, (folder / "zookeeper" / "log.jsonl").read_text()))
    assert logs[0] == logs[1]
    assert json.loads(logs[0][1].split("\n", 1)[0])["zxid"] == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"mode": "zoo"}, "mode"),
        ({"inter_broker_protocol": "3.9"}, "inter_broker_protocol"),
        ({"mode": "zookeeper", "inter_broker_protocol": "4.0"}, "inter_broker_protocol"),
        ({"mode": "zookeeper", "inter_broker_protocol": "new"}, "inter_broker_protocol"),
    ],
)
def test_a_wrong_mode_gets_one_line(arguments: dict[str, str], named: str) -> None:
    with pytest.raises(UserError, match=named):
        MiniCluster(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("level", "alter_partition", "controller_znode"),
    [("2.7-IV2", 1, 2), ("3.0", 0, 1), ("3.2", 1, 1), ("3.3", 2, 1), ("3.9", 3, 2)],
)
def test_the_release_follows_from_the_level(
    level: str, alter_partition: int, controller_znode: int
) -> None:
    """As recorded of 3.0, 3.2 and 3.9; levels before 3.0 are played by 3.9."""
    with cluster_of(level) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        leader, follower = orders[0].leader, orders[0].followers[0]
        cluster.cut(follower, leader, api="Fetch")
        cluster.produce("orders", count=2, acks=1)
        cluster.wait_until(lambda: follower not in orders[0].isr, within="30s")
        requests = inside(cluster).recorder.table("rpc")
        sent = {one["version"] for one in requests if one["api"] == "AlterPartition"}
        assert sent == {alter_partition}
        lines = inside(cluster).zookeeper_log.lines
        (created,) = [one for one in lines if one.get("path") == "/controller" and "json" in one]
        assert created["json"]["version"] == controller_znode


@pytest.mark.parametrize(("level", "why"), [("2.6", "disabled"), ("3.9", "not supported")])
def test_features_are_not_updated(level: str, why: str) -> None:
    with cluster_of(level) as cluster:
        update = UpdateFeaturesRequest.FeatureUpdateKey(
            feature="metadata.version", max_version_level=20
        )
        response = cluster.admin(UpdateFeaturesRequest(feature_updates=(update,)))
        assert response.error_code == ErrorCode.INVALID_REQUEST
        assert why in response.error_message


@pytest.mark.parametrize("as_written", [False, True])
def test_a_lost_directory_moves_the_leader(as_written: bool) -> None:
    """By the znode log_dir_event; with KIP-589 as it was written, by AlterReplicaState."""
    rules = Rules.KAFKA_4_3
    if as_written:
        rules = replace(rules, failed_replicas_reported_by=FailedReplicas.ALTER_REPLICA_STATE)
    config = {**CONFIG, "log.dirs": "d0,d1"}
    with MiniCluster(mode="zookeeper", seed=3, rules=rules, config=config) as cluster:
        orders = cluster.create_topic("orders", partitions=4, replicas=3)
        leader = orders[0].leader
        assert leader is not None
        cluster.fail_dir(leader, 1)
        cluster.run_for("20s")
        led_elsewhere = [p for p in range(4) if leader not in orders[p].isr]
        assert led_elsewhere
        written = [line.get("path", "") for line in inside(cluster).zookeeper_log.lines]
        assert any("log_dir_event_0" in path for path in written) is not as_written


@pytest.mark.parametrize("level", ["2.6", "3.0"])
def test_groups_and_transactions_need_no_kraft(level: str) -> None:
    """Producer ids come from the znode below 3.0, and from the controller above."""
    with cluster_of(level) as cluster:
        cluster.create_topic("orders", partitions=2, replicas=2)
        assert cluster.produce("orders", count=3, idempotent=True)[-1].ok
        [done] = cluster.transaction("orders", count=2)
        assert done.outcome == "committed"
        read = cluster.consume("orders", group="app", count=5)
        assert len({(one.partition, one.offset) for one in read}) == 5


def test_the_end_of_a_session_is_written_down_as_its_brokers() -> None:
    with cluster_of("3.9") as cluster:
        first = cluster.active_controller
        assert first is not None
        cluster.controlled_shutdown(first)
        lines = inside(cluster).zookeeper_log.lines
        cluster.wait_until(lambda: lines[-1]["op"] == "close_session", within="30s")
        assert lines[-1]["broker"] == first
        assert f"/brokers/ids/{first.id}" in lines[-1]["deleted"]


KRAFT_ALONE = [
    (lambda cluster: cluster.upgrade_kraft_version(), "no Raft quorum"),
    (lambda cluster: cluster.add_voter(1), "no Raft quorum"),
    (lambda cluster: cluster.remove_voter(1), "no Raft quorum"),
    (lambda cluster: cluster.unregister(3), "ends with the session"),
    (lambda cluster: cluster.snapshot(1), "node 1 is not a controller"),
]


@pytest.mark.parametrize(("act", "line"), KRAFT_ALONE)
def test_a_step_that_zookeeper_does_not_have_gets_one_line(
    act: Callable[[MiniCluster], None], line: str
) -> None:
    with cluster_of("3.9") as cluster, pytest.raises(UserError, match=line):
        act(cluster)


@pytest.mark.parametrize("broker", [None, "its controller"])
def test_unclean_elections_that_a_config_of_brokers_allows_happen_at_once(
    broker: str | None,
) -> None:
    """Source:  KIP-226; DynamicLogConfig.reconfigure, enableDefaultUncleanLeaderElection."""
    with cluster_of("3.9") as cluster:
        controller = cluster.active_controller
        assert controller is not None
        leader, follower = (node for node in cluster.brokers if node != controller)
        orders = cluster.create_topic("orders", assignment=[[leader.id, follower.id]])
        cluster.kill(follower)
        cluster.wait_until(lambda: follower not in orders[0].isr, within="30s")
        cluster.kill(leader)
        cluster.restart(follower)
        cluster.run_for("10s")
        assert orders[0].leader is None
        key = "unclean.leader.election.enable"
        cluster.set_config(key, "true", broker=None if broker is None else controller.id)
        cluster.wait_until(lambda: orders[0].leader == follower, within="5s")


def test_a_broker_takes_its_configs_from_the_znodes_when_it_starts() -> None:
    """Source:  kafka.server.DynamicBrokerConfig.initialize."""
    with cluster_of("3.9") as cluster:
        cluster.set_config("log.retention.ms", "600000")
        cluster.controlled_shutdown(1)
        cluster.restart(1)
        cluster.run_for("2s")
        resource = m.DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=4, resource_name="1", configuration_keys=("log.retention.ms",)
        )
        response = cluster.admin(m.DescribeConfigsRequest(resources=(resource,)), to=1)
        [config] = response.results[0].configs
        assert config.value == "600000"


def test_only_the_controller_creates_topics_and_any_broker_alters_configs() -> None:
    create = m.CreateTopicsRequest(
        topics=(
            m.CreateTopicsRequest.CreatableTopic(name="x", num_partitions=1, replication_factor=1),
        )
    )
    [refused] = refusal_of(create, 7, is_controller=False).topics
    assert (refused.name, refused.error_code) == ("x", ErrorCode.NOT_CONTROLLER)
    assert refusal_of(create, 7, is_controller=True) is None
    assert refusal_of(m.AlterConfigsRequest(), 2, is_controller=False) is None
    quorum = refusal_of(m.DescribeQuorumRequest(), 2, is_controller=True)
    assert quorum.error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("level", LEVELS)
def test_a_restarted_broker_has_its_logs_after_a_fail_over(level: str) -> None:
    """The new controller's first UpdateMetadata has no partition: no log is a stray for that."""
    with cluster_of(level) as cluster:
        orders = cluster.create_topic("orders", replicas=3, min_isr=1)
        assert all(one.ok for one in cluster.produce("orders", count=20))
        cluster.run_for("2s")
        controller = cluster.active_controller
        others = [broker for broker in cluster.brokers if broker != controller]
        for broker in cluster.brokers:
            cluster.kill(broker)
        cluster.run_for("10s")
        for broker in (*others, controller):
            cluster.restart(broker)
        cluster.wait_until(orders.fully_in_sync, within="60s")
        assert len({one.offset for one in cluster.consume("orders", count=20)}) == 20


def test_a_broker_that_was_away_when_it_left_an_assignment_keeps_its_replica() -> None:
    """Kafka's controller sends StopReplica to live brokers, and never again."""
    with MiniCluster(mode="zookeeper", inter_broker_protocol="3.2", seed=9) as cluster:
        topic = cluster.create_topic("moved", assignment=[[1, 2, 3]], min_isr=1)
        cluster.wait_until(topic[0].fully_in_sync, within="30s")
        cluster.isolate(1)
        cluster.wait_until(lambda: topic[0].isr == [2, 3], within="60s")
        cluster.reassign("moved-0", [2, 3])
        cluster.wait_until(lambda: topic[0].replicas == [2, 3], within="60s")
        cluster.heal()
        cluster.run_for("60s")

        requests = inside(cluster).processes[1].zk_broker.requests
        assert TopicPartition("moved", 0) in requests.hosted
        assert requests.cache.topics.named("moved").partitions[0].replicas == (2, 3)
        assert behind(inside(cluster)) == []


@pytest.mark.parametrize("percentage", [10, 100])
def test_leaders_go_back_if_too_many_are_away(percentage: int) -> None:
    """Source:  leader.imbalance.per.broker.percentage."""
    config = {
        **CONFIG,
        "leader.imbalance.check.interval.seconds": 3,
        "leader.imbalance.per.broker.percentage": percentage,
    }
    with MiniCluster(mode="zookeeper", seed=3, config=config) as cluster:
        orders = cluster.create_topic("orders", replicas=3)
        preferred = orders[0].leader
        assert preferred is not None
        cluster.kill(preferred)
        cluster.wait_until(lambda: orders[0].leader not in (None, preferred), within="30s")
        cluster.restart(preferred)
        cluster.wait_until(orders[0].fully_in_sync, within="30s")
        cluster.run_for("10s")
        assert (orders[0].leader == preferred) is (percentage == 10)


def test_a_restart_behind_a_controlled_shutdown_begins_from_a_clean_end() -> None:
    with MiniCluster(mode="zookeeper", seed=3) as cluster:
        orders = cluster.create_topic("orders", partitions=3, min_isr=2)
        broker = cluster.brokers[0]
        incarnation = inside(cluster).processes[broker.id].incarnation
        cluster.controlled_shutdown(broker)
        cluster.restart(broker)
        assert inside(cluster).processes[broker.id].incarnation == incarnation  # not killed
        cluster.wait_until(
            lambda: inside(cluster).processes[broker.id].incarnation != incarnation, within="30s"
        )
        cluster.wait_until(orders.fully_in_sync, within="60s")
