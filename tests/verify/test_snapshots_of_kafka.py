"""E34 on plain logs: Apache Kafka's snapshots are held against the fold of its log."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from minicluster.log.checkpoint import Snapshot, encode_snapshot, read_checkpoint
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.protocol.records import ConfigRecord, VersionedRecord
from tests.verify.in_process import judged

LOGS = Path(__file__).resolve().parents[1] / "data" / "kafka-logs"
BIG = pytest.param("cluster", marks=pytest.mark.slow)


@pytest.mark.parametrize("name", [BIG, "cluster-3.3", "migration-of-versions", "trimmed"])
def test_kafkas_snapshots_are_folds_of_its_log(name: str) -> None:
    looked_at, findings = judged(LOGS / name, "E34")["E34"]
    ends = {path.name for path in (LOGS / name).glob(f"*/{METADATA_DIRECTORY}/*.checkpoint")}
    assert findings == []
    # A log that begins with a snapshot has no records before it to fold.
    assert looked_at >= (1 if name == "trimmed" else len(ends) - 1)


def lacks_a_config(snapshot: Snapshot) -> Snapshot:
    kept = [one for one in snapshot.records if not isinstance(one.record, ConfigRecord)]
    return Snapshot(tuple(kept), snapshot.last_contained_log_timestamp, snapshot.control)


def has_a_config_too_many(snapshot: Snapshot) -> Snapshot:
    config = ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1")
    records = (*snapshot.records, VersionedRecord(config, 0))
    return Snapshot(records, snapshot.last_contained_log_timestamp, snapshot.control)


@pytest.mark.parametrize("change", [lacks_a_config, has_a_config_too_many])
def test_a_snapshot_that_is_no_fold_is_found(tmp_path: Path, change: object) -> None:
    folder = tmp_path / "controller-101"
    shutil.copytree(LOGS / "cluster-3.3" / "controller-101", folder)
    *_, last = sorted((folder / METADATA_DIRECTORY).glob("*.checkpoint"))
    last.chmod(0o600)
    assert callable(change)
    content = change(read_checkpoint(last))
    last.write_bytes(encode_snapshot(content, epoch=1, timestamp_ms=0))
    looked_at, findings = judged(folder, "E34")["E34"]
    assert looked_at == 7
    end = int(last.name[:20])
    assert findings == [
        f"the snapshot of controller 101 that ends at {end} differs "
        "from the fold of the log up to there"
    ]


def test_a_snapshot_that_ends_within_a_batch_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "controller-101"
    shutil.copytree(LOGS / "cluster-3.3" / "controller-101", folder)
    path = sorted((folder / METADATA_DIRECTORY).glob("*.checkpoint"))[1]
    path.rename(path.with_name(path.name.replace("84-", "83-")))
    _, findings = judged(folder, "E34")["E34"]
    assert len(findings) == 1 and "that ends at 83 differs" in findings[0]
