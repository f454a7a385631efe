"""Groups whose coordinators have lost them, in every way in which an internal topic loses records.

Kafka answers the same: the offset of such a group is unknown, and its first generation comes again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from minicluster import MiniCluster
from minicluster.protocol.topics import partition_of

OFFSETS = "__consumer_offsets"
SMALL = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 2,
    "transaction.state.log.num.partitions": 1,
    "log.retention.check.interval.ms": 10_000,
}


@pytest.fixture
def cluster() -> Iterator[MiniCluster]:
    with MiniCluster(brokers=2, controllers=1, seed=3, config=SMALL) as running:
        running.create_topic("alpha", partitions=2, replicas=2, min_isr=1)
        running.produce("alpha", 0, count=5)
        yield running


def deleted(cluster: MiniCluster) -> None:
    cluster.delete_topic(OFFSETS)
    cluster.run_for("5s")


def expired(cluster: MiniCluster) -> None:
    for key, value in (("cleanup.policy", "delete"), ("retention.ms", 1000), ("segment.ms", 1000)):
        cluster.set_config(key, value, topic=OFFSETS)
    cluster.run_for("90s")
    restarted(cluster)


def given_more_partitions(cluster: MiniCluster) -> None:
    cluster.add_partitions(OFFSETS, 5)
    cluster.run_for("5s")
    restarted(cluster)


def restarted(cluster: MiniCluster) -> None:
    for broker in cluster.brokers:
        cluster.bounce(broker, down="2s")
        cluster.run_for("15s")


@pytest.mark.parametrize("lose", [deleted, expired, given_more_partitions])
def test_a_group_may_begin_again_where_its_coordinator_has_lost_it(
    cluster: MiniCluster, lose: Callable[[MiniCluster], None]
) -> None:
    cluster.consume("alpha", count=5, group="g")
    cluster.run_for("5s")
    lose(cluster)
    assert len(cluster.consume("alpha", count=5, group="g")) == 5
    report = cluster.verify(engine="process")
    report.assert_valid()
    assert report.rule("H1").exempt


def test_a_group_that_transforms_may_do_it_again(cluster: MiniCluster) -> None:
    cluster.create_topic("beta", partitions=2, replicas=2, min_isr=1)
    cluster.transform("alpha", to="beta", group="t")
    cluster.run_for("8s")
    deleted(cluster)
    cluster.produce("alpha", 0, count=5)
    cluster.run_for("20s")
    cluster.verify(engine="process").assert_valid()


def test_a_transaction_may_end_anyhow_where_its_coordinator_has_lost_it(
    cluster: MiniCluster,
) -> None:
    cluster.transaction("alpha", transactional_id="x", count=2, rate=1, abort_every=3)
    cluster.run_for("8s")
    cluster.delete_topic("__transaction_state")
    cluster.run_for("20s")
    cluster.verify(engine="process").assert_valid()


def test_only_a_group_that_another_partition_may_have_is_promised_nothing(
    cluster: MiniCluster,
) -> None:
    stays, moves = "b", "a"
    assert [partition_of(group, 2) for group in (stays, moves)] == [0, 1]
    for group in (stays, moves):
        cluster.consume("alpha", count=5, group=group)
    cluster.add_partitions(OFFSETS, 2)
    restarted(cluster)
    cluster.produce("alpha", 0, count=5)
    assert cluster.consume("alpha", count=5, group=stays)[0].offset == 5
    assert cluster.consume("alpha", count=5, group=moves)[0].offset == 0
    cluster.run_for("5s")
    report = cluster.verify(engine="process")
    report.assert_valid()
    assert report.rule("H1").looked_at and report.rule("H1").exempt
