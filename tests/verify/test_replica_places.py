"""Where replicas lie at the end of a run: none is led from a directory that failed long ago."""

from __future__ import annotations

from pathlib import Path

from pyarrow import parquet

from minicluster import MiniCluster
from tests.verify.in_process import judged


def test_a_failed_directory_of_a_real_run_leads_nothing(tmp_path: Path) -> None:
    with MiniCluster(controllers=1, brokers=2, seed=3, config={"log.dirs": "a,b"}) as cluster:
        orders = cluster.create_topic("orders", partitions=2, replicas=2)
        cluster.produce("orders", count=4)
        cluster.run_for("2s")
        leader = orders[0].leader
        cluster.fail_dir(leader, directory=0)
        cluster.run_for("60s")
        run = cluster.save(tmp_path / "run")
    online = parquet.read_table(run / "trace" / "replica_log.parquet")["online"].to_pylist()
    assert {True, False} <= {*online}
    assert judged(run, "D6")["D6"][1] == []
