"""Snapshots of the metadata log in a running cluster: written, cleaned up, downloaded, loaded.

Two files of tests/metadata prove that a checkpoint of a real Kafka log, and any snapshot with its
tail, loads to the image of the log: test_real_logs.py and test_image_properties.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from minicluster import MiniCluster
from minicluster.actors.cluster.mini_cluster import inside
from minicluster.actors.recording import committed_image
from minicluster.log.checkpoint import decode_snapshot
from minicluster.log.log import Log
from minicluster.metadata.snapshot import image_from_records
from tests.log.controller_directory import read_controller_directory
from tests.metadata.committed_fold import CommittedFold

LOG = "__cluster_metadata-0"


def metadata_log(cluster: MiniCluster, node: Any) -> Log:
    return inside(cluster).disks[getattr(node, "id", node)].logs[LOG]


def folds(cluster: MiniCluster) -> dict[int, str]:
    """The digest of the image before each offset at which a batch begins."""
    fold, found = CommittedFold.EMPTY, {}
    for batch in inside(cluster).committed.batches:
        fold = fold.apply_batch(batch)
        found[batch.next_offset] = fold.image.digest()
    return found


def check_snapshots(cluster: MiniCluster) -> int:
    """Every snapshot on every disk is the fold of the log before it; -> how many there are."""
    expected, count = folds(cluster), 0
    for node_id in inside(cluster).node_ids:
        log = metadata_log(cluster, node_id)
        for (end_offset, epoch), content in log.snapshots.items():
            snapshot = decode_snapshot(content)
            image = image_from_records(snapshot.records, offset=end_offset - 1)
            assert image.digest() == expected[end_offset], (node_id, end_offset)
            assert epoch <= log.last_epoch
            count += 1
    return count


def busy(cluster: MiniCluster, topics: int = 12) -> None:
    for number in range(topics):
        cluster.create_topic(f"t{number}", partitions=2, min_isr=2)
        if number % 3 == 2:
            cluster.delete_topic(f"t{number}")


def test_nodes_write_a_snapshot_every_so_many_bytes(tmp_path: Path) -> None:
    every = {"metadata.log.max.record.bytes.between.snapshots": 2_000}
    with MiniCluster(seed=4, config=every) as cluster:
        busy(cluster)
        cluster.run_for("1s")
        assert check_snapshots(cluster) > 2 * len(inside(cluster).node_ids)
        run = cluster.save(tmp_path / "run")
        for node in cluster.controllers:
            log, _, torn = read_controller_directory(run / f"controller-{node.id}")
            assert log.snapshots == metadata_log(cluster, node).snapshots
            assert torn is None


def test_nodes_write_a_snapshot_every_so_often() -> None:
    every = {"metadata.log.max.snapshot.interval.ms": "10s"}
    with MiniCluster(seed=4, config=every) as cluster:
        cluster.run_for("45s")
        counts = [len(metadata_log(cluster, node).snapshots) for node in cluster.controllers]
        assert counts == [4, 4, 4]
        check_snapshots(cluster)


def test_what_retention_does_not_keep_is_cleaned_up_to_the_next_snapshot() -> None:
    config = {
        "metadata.log.max.record.bytes.between.snapshots": 2_000,
        "metadata.max.retention.bytes": 6_000,
    }
    with MiniCluster(seed=4, config=config) as cluster:
        busy(cluster)
        before = len(metadata_log(cluster, 101).snapshots)
        cluster.run_for("70s")
        for node_id in inside(cluster).node_ids:
            log = metadata_log(cluster, node_id)
            assert 0 < log.start_offset == min(log.snapshots)[0]
            assert 1 <= len(log.snapshots) < before
        cluster.create_topic("after")
        cluster.run_for("1s")
        check_snapshots(cluster)


def test_what_all_controllers_have_deleted_stays_in_nobodys_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two NoOps a second are 170,000 a day. The log then begins with the image of what is gone."""
    monkeypatch.setattr(committed_image, "TRIM_EVERY", 20)
    settings = {
        "metadata.log.max.snapshot.interval.ms": 60_000,
        "metadata.max.retention.ms": 60_000,
    }
    with MiniCluster(seed=4, config=settings) as cluster:
        inside(cluster).committed.batches_max = 100
        busy(cluster)
        cluster.run_for("4m")
        start, committed = inside(cluster).committed.start, inside(cluster).committed
        assert start is not None and start.end_offset > 100
        assert len(committed.batches) < 400 and committed.batches[0].base_offset == start.end_offset
        assert (
            min(metadata_log(cluster, node).start_offset for node in inside(cluster).controller_ids)
            > 100
        )
        fold = CommittedFold.starting_from(start.image)
        for batch in committed.batches:
            fold = fold.apply_batch(batch)
        assert fold.image.digest() == inside(cluster).image.digest()
        cluster.produce(cluster.topic("t0"), count=5)
        assert cluster.verify(engine="process").valid


@pytest.mark.parametrize("wire", [False, True])
def test_a_controller_that_was_down_for_too_long_loads_the_snapshot_and_the_tail(
    wire: bool,
) -> None:
    with MiniCluster(seed=6, wire=wire) as cluster:
        lagging = next(n for n in cluster.controllers if n != cluster.active_controller)
        cluster.kill(lagging)
        end = metadata_log(cluster, lagging).end_offset
        busy(cluster, 4)
        cluster.snapshot([n for n in cluster.controllers if n.is_running])
        cluster.run_for("1s")
        cluster.compact([n for n in cluster.controllers if n.is_running])
        cluster.create_topic("tail")
        cluster.restart(lagging)
        cluster.run_for("3s")
        log = metadata_log(cluster, lagging)
        assert end < log.start_offset == log.latest_snapshot[0]  # type: ignore[index]
        controller = inside(cluster).processes[lagging.id].controller
        assert controller is not None
        assert controller.controller.committed_image.digest() == cluster.image.digest()

        cluster.kill(cluster.active_controller)  # with what it loaded, it can lead
        cluster.wait_until(lambda: cluster.active_controller is not None, within="10s")
        cluster.delete_topic("tail")
        cluster.run_for("1s")
        check_snapshots(cluster)


def test_a_broker_that_was_down_for_too_long_deletes_what_the_snapshot_lacks() -> None:
    with MiniCluster(seed=6) as cluster:
        gone = cluster.create_topic("gone")
        kept = cluster.create_topic("kept")
        cluster.produce(gone, count=3)
        cluster.produce(kept, count=3)
        broker = next(b for b in cluster.brokers if b != kept[0].leader)
        cluster.pause(broker)  # its process keeps its soft state
        cluster.run_for("12s")
        cluster.delete_topic(gone)
        cluster.snapshot(cluster.controllers)
        cluster.run_for("1s")
        cluster.compact(cluster.controllers)
        cluster.produce(kept, count=2)
        cluster.resume(broker)
        cluster.wait_until(kept.fully_in_sync, within="60s")
        publisher = inside(cluster).processes[broker.id].publisher
        assert publisher is not None
        assert publisher.image.topics.named("gone") is None
        rows = inside(cluster).recorder.table("publish")
        manifests = [row["manifest"] for row in rows if row["node"] == broker.id]
        assert "snapshot" in manifests[1:]
        assert "gone-0" not in inside(cluster).disks[broker.id].logs
        assert inside(cluster).disks[broker.id].logs["kept-0"].end_offset == 5


def test_a_node_starts_from_its_own_snapshot_and_tail() -> None:
    with MiniCluster(seed=6) as cluster:
        busy(cluster, 5)
        cluster.snapshot(cluster.controllers)
        cluster.run_for("1s")
        cluster.compact(cluster.controllers)
        cluster.create_topic("tail")
        cluster.kill(cluster.controllers, lose_tail="unflushed")
        cluster.restart(cluster.controllers)
        cluster.wait_until(lambda: cluster.active_controller is not None, within="10s")
        cluster.run_for("3s")
        for node in cluster.controllers:
            controller = inside(cluster).processes[node.id].controller
            assert controller is not None
            assert controller.controller.committed_image.digest() == cluster.image.digest()
        cluster.delete_topic("tail")


def test_a_broker_that_loses_its_log_below_its_snapshot_begins_at_the_snapshot() -> None:
    every = {"metadata.log.max.record.bytes.between.snapshots": 2_000}
    with MiniCluster(seed=4, config=every) as cluster:
        busy(cluster, 6)
        broker = cluster.brokers[0]
        cluster.kill(broker, lose_tail="unflushed")
        log = metadata_log(cluster, broker)
        assert log.latest_snapshot is not None
        assert log.end_offset < log.latest_snapshot[0]
        cluster.restart(broker)
        cluster.wait_until(inside(cluster).all_unfenced, within="60s")
        cluster.run_for("2s")
        assert log.start_offset > 0
        publisher = inside(cluster).processes[broker.id].publisher
        assert publisher is not None
        assert publisher.image.digest() == cluster.image.digest()
