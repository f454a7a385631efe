"""What Spark says of runs in which replicas fail: by KIP-589's reports, and by KIP-858's races."""

from __future__ import annotations

import pytest

from minicluster.actors.cluster.mini_cluster import MiniCluster
from minicluster.verify.reporting.report_data import RuleResult

BY_REPORT = "kafka-4.3 failed_replicas_reported_by=alter_replica_state"
BY_HEARTBEAT = "kafka-4.3"


def judged(cluster: MiniCluster, rule: str) -> RuleResult:
    report = cluster.verify()
    assert report.valid, report.to_text()
    return next(result for result in report.rules if result.id == rule)


def lose_the_lone_member(rules: str) -> MiniCluster:
    """Broker 1 is alone in the ISR when its directory fails: the election is unclean."""
    cluster = MiniCluster(seed=7, rules=rules, config={"log.dirs": "d0,d1"})
    cluster.start()
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
    return cluster


@pytest.mark.spark
@pytest.mark.parametrize(
    ("rules", "verdict"), [(BY_REPORT, "not_promised"), (BY_HEARTBEAT, "valid")]
)
def test_an_unclean_election_after_a_failed_replica_is_no_false_alarm(
    rules: str, verdict: str
) -> None:
    """C5. Under KIP-589 the log holds nobody's failure, so it cannot say who could have led."""
    with lose_the_lone_member(rules) as cluster:
        assert judged(cluster, "C5").verdict == verdict


@pytest.mark.spark
def test_a_fetch_under_way_when_its_directory_fails_brings_the_replica_back_until_it_lags() -> None:
    """D1, seed 306 of the chaos: Kafka's controller looks at directories only when they fail."""
    config = {"log.dirs": "d0,d1", "replica.fetch.wait.max.ms": 200}
    with MiniCluster(seed=7, config=config) as cluster:
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
        result = judged(cluster, "D1")
        assert result.not_promised and result.looked_at
