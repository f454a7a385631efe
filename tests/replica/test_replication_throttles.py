"""The throttles of replication (KIP-73): a replica that catches up takes no more than it may.

Source:  ReplicationQuotaManagerTest, ReplicaManagerQuotasTest, ReplicationQuotasTest.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from minicluster.protocol.messages import FetchRequest
from minicluster.protocol.records import ConfigRecord
from minicluster.replica.config import FetcherConfig
from minicluster.replica.replication_quota import ReplicationQuota, throttled_replicas
from tests.replica.cluster import Cluster
from tests.replica.test_moving_replicas import move, with_values

BROKER, TOPIC = 4, 2  # ConfigResource.Type
KILOBYTE = b"v" * 1_000
MINUTE_MS = 60_000


# --- the rate -----------------------------------------------------------------------------------


def test_a_quota_is_exceeded_and_is_not_any_more_as_time_passes() -> None:
    """The steps of Kafka's own example, with a bound of 100 bytes per second."""
    quota = ReplicationQuota(samples=10, window_s=1)
    quota.bytes_per_second = 100
    assert not quota.is_exceeded(0)
    quota.record(150, 1_500)
    assert not quota.is_exceeded(1_500)  # 150 bytes in 1.5 s
    quota.record(1, 1_500)
    assert quota.is_exceeded(1_500)
    assert not quota.is_exceeded(2_000)  # 151 in 2 s
    quota.record(99, 2_500)
    assert not quota.is_exceeded(2_500)  # 250 in 2.5 s
    quota.record(1, 2_500)
    assert quota.is_exceeded(2_500)
    assert not quota.is_exceeded(4_500)


def test_what_moved_before_the_oldest_sample_counts_no_longer() -> None:
    quota = ReplicationQuota(samples=2, window_s=1)
    quota.bytes_per_second = 1
    quota.record(1_000_000, 0)
    assert quota.is_exceeded(1_999)
    assert not quota.is_exceeded(2_000)


def test_a_quota_without_a_bound_is_never_exceeded() -> None:
    quota = ReplicationQuota(samples=11, window_s=1)
    quota.record(1 << 60, 0)
    assert not quota.is_exceeded(0)


@pytest.mark.parametrize(
    ("text", "throttled", "free"),
    [
        ("*", {0, 7}, set()),
        ("0:1,7:1", {0, 7}, {1}),
        ("0:1, 7:2", {0}, {7}),
        ("0:2", set(), {0}),
        ("", set(), {0}),
        (None, set(), {0}),
    ],
)
def test_the_config_names_replicas_by_partition_and_broker(
    text: str | None, throttled: set[int], free: set[int]
) -> None:
    quota = ReplicationQuota(samples=11, window_s=1)
    quota.throttle("orders", throttled_replicas(text, broker_id=1))
    assert {p for p in throttled | free if quota.is_throttled("orders", p)} == throttled
    assert not quota.is_throttled("bills", 0)


# --- brokers ------------------------------------------------------------------------------------


def configure(cluster: Cluster, resource: int, name: str, values: Mapping[str, str | None]) -> None:
    cluster.publish(
        *(
            ConfigRecord(resource_type=resource, resource_name=name, name=key, value=value)
            for key, value in values.items()
        )
    )


def behind(kilobytes: int) -> Cluster:
    """A topic of three replicas, of which broker 3 was away while the records came."""
    cluster = Cluster(3, fetcher=FetcherConfig(partition_max_bytes=1_100))
    cluster.create_topic()
    cluster.advance(1_000)
    cluster.crash(3)
    for _ in range(kilobytes):
        cluster.produce(1, KILOBYTE)
    cluster.advance(MINUTE_MS)
    assert 3 not in cluster.partition(1).isr_state.isr
    assert cluster.partition(1).high_watermark == kilobytes
    return cluster


def seconds_to_catch_up(cluster: Cluster) -> int:
    cluster.start(3, epoch=2_003)
    end = cluster.partition(1).log_end_offset
    for second in range(1, 600):
        cluster.advance(1_000)
        if cluster.partition(3).log_end_offset == end:
            return second
    raise AssertionError("broker 3 does not catch up")


def test_a_replica_catches_up_at_once_where_nothing_is_throttled() -> None:
    assert seconds_to_catch_up(behind(60)) == 1


def test_a_rate_without_throttled_replicas_holds_nothing_back() -> None:
    cluster = behind(60)
    for broker in ("1", "3"):
        rates = {"leader.replication.throttled.rate": "2000"}
        rates |= {"follower.replication.throttled.rate": "2000"}
        configure(cluster, BROKER, broker, rates)
    assert seconds_to_catch_up(cluster) == 1


@pytest.mark.parametrize("side", ["leader", "follower"])
@pytest.mark.parametrize("place", ["own", "default"])
def test_a_throttled_replica_catches_up_by_its_rate(side: str, place: str) -> None:
    cluster = behind(60)
    broker = {"leader": "1", "follower": "3"}[side]
    rate = {f"{side}.replication.throttled.rate": "2000"}
    configure(cluster, BROKER, broker if place == "own" else "", rate)
    replicas = {f"{side}.replication.throttled.replicas": f"0:{broker}"}
    configure(cluster, TOPIC, "orders", replicas)
    assert 25 <= seconds_to_catch_up(cluster) <= 40  # 60 KB by 2,000 bytes per second


@pytest.mark.parametrize("side", ["leader", "follower"])
def test_a_replica_in_the_isr_is_not_held_back(side: str) -> None:
    cluster = Cluster(3)
    cluster.create_topic()
    cluster.advance(1_000)
    configure(cluster, BROKER, "", {f"{side}.replication.throttled.rate": "1"})
    configure(cluster, TOPIC, "orders", {f"{side}.replication.throttled.replicas": "*"})
    for _ in range(20):
        token = cluster.produce(1, KILOBYTE)
        cluster.advance(20)
        assert cluster.produced(token).base_offset >= 0
    cluster.advance(MINUTE_MS)
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)


@pytest.mark.parametrize("end", ["rate", "replicas"])
def test_a_throttle_that_is_taken_away_lets_the_replica_catch_up(end: str) -> None:
    cluster = behind(60)
    rate, replicas = (
        "follower.replication.throttled.rate",
        "follower.replication.throttled.replicas",
    )
    configure(cluster, BROKER, "3", {rate: "1"})
    configure(cluster, TOPIC, "orders", {replicas: "*"})
    cluster.start(3, epoch=2_003)
    cluster.advance(MINUTE_MS)
    assert cluster.partition(3).log_end_offset < 60
    if end == "rate":
        configure(cluster, BROKER, "3", {rate: None})
    else:
        configure(cluster, TOPIC, "orders", {replicas: None})
    cluster.advance(3_000)
    assert cluster.partition(3).log_end_offset == 60
    assert cluster.partition(1).isr_state.isr == (1, 2, 3)


def test_a_follower_that_is_held_back_asks_once_in_a_back_off() -> None:
    cluster = behind(60)
    configure(cluster, BROKER, "3", {"follower.replication.throttled.rate": "1"})
    replicas = {"follower.replication.throttled.replicas": "*"}
    configure(cluster, TOPIC, "orders", replicas)
    cluster.start(3, epoch=2_003)
    cluster.advance(5_000)
    cluster.sent.clear()
    cluster.advance(MINUTE_MS)
    fetches = [sent for sent in cluster.sent if sent[0] == 3 and isinstance(sent[2], FetchRequest)]
    assert len(fetches) <= 60 and len(cluster.sent) > 100  # the others go on


def test_a_topic_that_is_deleted_leaves_no_throttle_behind() -> None:
    cluster = Cluster(3)
    cluster.create_topic()
    configure(cluster, TOPIC, "orders", {"leader.replication.throttled.replicas": "*"})
    quota = cluster.managers[1].state.quotas.leader
    assert quota.is_throttled("orders", 0)
    cluster.delete_topic()
    assert not quota.is_throttled("orders", 0)


def test_a_move_between_directories_has_its_own_rate() -> None:
    cluster = with_values(*[KILOBYTE] * 60)
    cluster.settings["fetcher"] = FetcherConfig(partition_max_bytes=1_100)
    cluster.crash(1)
    cluster.start(1)
    configure(cluster, BROKER, "1", {"replica.alter.log.dirs.io.max.bytes.per.second": "2000"})
    move(cluster, "/new")
    cluster.advance(20_000)
    future = cluster.partition(1).future
    assert future is not None and 20 <= future.log.end_offset <= 50
    cluster.advance(30_000)
    assert cluster.partition(1).future is None
