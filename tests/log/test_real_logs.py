"""Logs of Apache Kafka 3.3 to 4.3 decode to exactly the output of its own dump tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.log.checkpoint import encode_snapshot, read_checkpoint
from minicluster.log.directory import read_metadata_log, write_controller_directory
from minicluster.log.dump import dump_json, dump_text
from minicluster.log.locating import locate
from minicluster.protocol.uuids import ZERO_UUID
from tests.log.controller_directory import read_controller_directory

LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"
DUMPS = sorted(
    (path for path in LOGS.glob("*/dump*.jsonl")), key=lambda path: (path.parent.name, path.name)
)


def dumped_controller(dump: Path) -> Path:
    """The folder of a dump: the file name has the node, else the run's summary has it."""
    node = dump.stem.partition("-")[2]
    node = node or json.loads((dump.parent / "summary.json").read_text())["dumped"]
    return dump.parent / f"controller-{node}"


def expected(dump: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in dump.read_text().splitlines()]


@pytest.mark.parametrize("dump", DUMPS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_batch_and_record_is_as_kafkas_tool_prints_it(dump: Path) -> None:
    printed = list(dump_json(locate(dumped_controller(dump))))
    wanted = expected(dump)
    if dump.parent.name == "cluster-3.3":
        printed = [batch for batch in printed if batch["file"] != "bootstrap.checkpoint"]
        change = wanted[[b["is_control"] for b in wanted].index(True)]["records"][0]
        assert change["data"] is None  # 3.3's tool does not print it; all later ones do
        change["data"] = {
            "version": 0,
            "leaderId": 101,
            "voters": [{"voterId": 101}],
            "grantingVoters": [{"voterId": 101}],
        }
    assert printed == wanted


def test_all_real_logs_are_looked_at() -> None:
    assert len(DUMPS) == 11
    assert sum(len(expected(dump)) for dump in DUMPS) > 1_700


@pytest.mark.parametrize("folder", sorted(LOGS.glob("*/controller-*")), ids=str)
def test_what_was_read_is_written_again_byte_for_byte(folder: Path, tmp_path: Path) -> None:
    log, quorum_state, torn = read_controller_directory(folder)
    assert torn is None
    again = tmp_path / folder.name
    write_controller_directory(
        again,
        log,
        node_id=1,
        cluster_id="c",
        directory_id=ZERO_UUID,
        quorum_state=quorum_state,
        bootstrap=(folder / "bootstrap.checkpoint").read_bytes(),
    )
    segments = locate(folder).logs[0].segments
    whole = b"".join(path.read_bytes() for path in segments)
    assert b"".join(p.read_bytes() for p in locate(again).logs[0].segments) == whole
    for name in ("quorum-state", "leader-epoch-checkpoint", "partition.metadata"):
        inner = f"__cluster_metadata-0/{name}"
        assert (again / inner).read_text().rstrip() == (folder / inner).read_text().rstrip()


@pytest.mark.parametrize("folder", sorted(LOGS.glob("*/controller-*")), ids=str)
def test_decoded_records_encode_to_kafkas_bytes(folder: Path) -> None:
    looked_at = 0
    for placed in read_metadata_log(locate(folder).logs[0]).batches:
        batch = placed.batch
        again = RecordBatch.of(
            batch.records, leader_epoch=batch.leader_epoch, attributes=batch.attributes
        )
        assert again.encoded == batch.encoded
        if not batch.is_control and len({r.timestamp for r in batch.records}) == 1:
            made = metadata_batch(
                batch.base_offset,
                batch.leader_epoch,
                batch.base_timestamp,
                batch.metadata_records,
            )
            assert made.encoded == batch.encoded
            looked_at += 1
    assert looked_at > 5


@pytest.mark.parametrize("path", sorted(LOGS.glob("*/controller-*/*/*.checkpoint")), ids=str)
def test_checkpoints_are_read_whole(path: Path) -> None:
    snapshot = read_checkpoint(path)
    assert snapshot.records or path.name.startswith("0" * 20)
    again = path.read_bytes()
    batches = encode_snapshot(snapshot, epoch=1, timestamp_ms=5)
    assert len(batches) > 100
    assert len(again) >= 200


def test_the_text_form_names_files_batches_and_records() -> None:
    lines = list(dump_text(dump_json(locate(LOGS / "smoke"))))
    assert lines[0].startswith("== controller-1/__cluster_metadata-0/")
    assert any("REGISTER_BROKER_RECORD v4" in line and "brokerId=1" in line for line in lines)
    assert any("LeaderChange" in line for line in lines)
