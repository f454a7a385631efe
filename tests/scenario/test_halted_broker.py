"""A broker that loses the directory it cannot do without ends at once, as Kafka's halts itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from minicluster.actors.cluster.mini_cluster import MiniCluster, inside
from minicluster.errors import UserError

BOTH_WAYS = ["kafka-4.3", "kafka-4.3 failed_replicas_reported_by=alter_replica_state"]
TWO_ON_ONE = {"log.dirs": "d0,d1", "metadata.log.dir": "d1"}


def started(config: dict[str, Any], **options: Any) -> MiniCluster:
    cluster = MiniCluster(seed=11, config=config, **options)
    cluster.start()
    cluster.create_topic("orders", assignment=[[1, 2, 3]], min_isr=2)
    cluster.run_for("1s")
    return cluster


def reported(cluster: MiniCluster) -> Sequence[tuple[str, str, Any]]:
    rows = inside(cluster).recorder.table("fault")
    return [(r["action"], r["phase"], r["detail"]) for r in rows if r["action"] != "produce"]


@pytest.mark.parametrize("rules", BOTH_WAYS)
def test_a_broker_without_a_directory_halts_and_another_leads_when_its_session_ends(
    rules: str,
) -> None:
    with started({"log.dirs": "d0,d1"}, rules=rules, wire=True) as cluster:
        orders = cluster.topic("orders")
        cluster.fail_dir(1, directory=1)
        cluster.run_for("3s")
        assert inside(cluster).is_running(1)
        cluster.fail_dir(1, directory=0)
        cluster.run_for("10ms")
        assert not inside(cluster).is_running(1)
        assert reported(cluster)[-1] == ("exit", "note", "all log directories have failed")
        rows = [r for r in inside(cluster).recorder.table("rpc") if r["api"] == "BrokerHeartbeat"]
        offline = [r["request"].get("offlineLogDirs", []) for r in rows if r["src"] == 1]
        assert max(map(len, offline)) < 2, "it halted before it could report the last one"
        cluster.wait_until(lambda: cluster.node(1).is_fenced, within="20s")
        assert orders[0].leader == cluster.node(2) and cluster.node(1) not in orders[0].isr


def test_a_broker_halts_with_the_directory_of_its_metadata_log_though_another_works() -> None:
    with started(TWO_ON_ONE) as cluster:
        cluster.fail_dir(1, directory=0)
        cluster.fail_dir(2, directory=1)
        cluster.run_for("1s")
        assert cluster.brokers[0].is_running and not cluster.brokers[1].is_running
        why = "the directory of the metadata log has failed"
        assert reported(cluster)[-1] == ("exit", "note", why)


def test_the_metadata_log_lies_in_a_log_directory_or_apart() -> None:
    with pytest.raises(UserError, match=r"metadata.log.dir: 'd2' is none of log.dirs \(d0, d1\)"):
        MiniCluster(config={"log.dirs": "d0,d1", "metadata.log.dir": "d2"})
