"""Rules under Kafka 3.9: what that release does is not held against it."""

from __future__ import annotations

from pathlib import Path

from minicluster import MiniCluster
from minicluster.rules import Rules
from minicluster.verify.evidence.reading import read_run
from tests.verify.check_run import check_run


def test_a_broker_that_restarts_quickly_stays_in_its_isrs_under_3_9(tmp_path: Path) -> None:
    with MiniCluster(brokers=3, controllers=1, seed=1, rules=Rules.KAFKA_3_9) as cluster:
        orders = cluster.create_topic("orders", partitions=1, replicas=3, min_isr=2)
        follower = orders[0].followers[0]
        cluster.kill(follower)
        cluster.restart(follower)
        cluster.run_for("20s")  # the online rules stop a run at the first finding
        run = read_run(cluster.save(tmp_path / "run"), "run")
    checker = check_run(run)

    assert checker.findings == []
    assert checker.not_promised["A8"] == 1
