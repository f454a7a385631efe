"""Followers of the committed log while the cluster runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording.live_checks import InvariantViolated
from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.directory import read_metadata_log
from minicluster.log.locating import locate


class Offsets:
    """Notes what it is given."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.closed = False

    def on_committed(self, batch: RecordBatch) -> None:
        self.offsets += range(batch.base_offset, batch.next_offset)

    def close(self) -> None:
        self.closed = True


def test_a_follower_gets_every_committed_offset_once_also_over_fail_overs() -> None:
    follower = Offsets()
    with MiniCluster(seed=4, checks=[follower]) as cluster:
        cluster.create_topic("orders", min_isr=2)
        active = cluster.active_controller
        cluster.kill(active)
        cluster.wait_until(lambda: cluster.active_controller not in (None, active), within="20s")
        cluster.restart(active)
        cluster.run_for("5s")
    assert follower.offsets == list(range(len(follower.offsets)))
    assert len(follower.offsets) > 20
    assert follower.closed


def test_the_log_streams_onto_disk_in_kafkas_format_while_the_cluster_runs(tmp_path: Path) -> None:
    with MiniCluster(seed=4) as cluster:
        path = cluster.ingest(tmp_path, form="log")
        cluster.create_topic("orders", min_isr=2)
        cluster.run_for("1s")
        [files] = locate(path).logs
        early = read_metadata_log(files).batches[-1].batch.last_offset
        cluster.run_for("5s")
        late = read_metadata_log(files).batches[-1].batch.last_offset
    assert 15 < early < late


def test_the_log_streams_into_parquet_with_the_columns_of_the_kraft_source(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from minicluster.verify.spark.rows import COLUMNS

    with MiniCluster(seed=4) as cluster:
        cluster.create_topic("orders", min_isr=2)
        path = cluster.ingest(tmp_path / "rows")
        cluster.run_for("5s")
        waiting = cluster.ingestion_lag
    assert waiting > 20, "a file has a thousand records"
    assert cluster.ingestion_lag == 0
    table = pq.read_table(path)
    assert table.column_names == [name for name, _, _ in COLUMNS]
    offsets = table["offset"].to_pylist()
    assert offsets == list(range(len(offsets)))
    assert "Topic" in table["type"].to_pylist()


def test_what_is_ingested_is_what_a_verdict_reads(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from minicluster.verify.evidence.reading import read_run
    from minicluster.verify.spark.rows import Rows

    with MiniCluster(seed=4) as cluster:
        cluster.create_topic("orders", min_isr=2)
        path = cluster.ingest(tmp_path / "rows")
        cluster.run_for("5s")
        run = read_run(cluster.save(tmp_path / "run"), "run")
    names = ["offset", "epoch", "type", "isr", "data"]
    judged = pa.Table.from_batches(Rows(names).of(run.committed, file="log"))

    assert judged.num_rows == run.extent.records > 20
    ingested = pq.read_table(path, columns=names).slice(0, judged.num_rows)
    assert ingested.to_pylist() == judged.to_pylist()


def test_another_form_of_ingestion_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="parquet, log"):
        MiniCluster().ingest(tmp_path, form="csv")


def play_z05(online: bool) -> None:
    """Z05: a new partition's ISR holds a fenced replica."""
    with MiniCluster(seed=4, faults=["Z05"], online=online) as cluster:
        broker = cluster.brokers[2]
        cluster.kill(broker)
        cluster.wait_until(lambda: broker.is_fenced, within="20s")
        cluster.create_topic("orders", assignment=[[1, 2, 3]])
        cluster.run_for("1s")
        assert inside(cluster).recorder.fault_hits == {"Z05": 1}


def test_a_bad_record_ends_the_run_at_once_and_names_its_rule() -> None:
    with pytest.raises(InvariantViolated) as violation:
        play_z05(online=True)
    assert violation.value.findings[0].rule in ("A1", "A3")
    assert str(violation.value).endswith("seed 4")
    play_z05(online=False)  # unwatched, it goes on
