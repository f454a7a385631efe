"""The logs of ``__consumer_offsets`` and ``__transaction_state``, decoded by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from minicluster.log.batch import Record, RecordBatch
from minicluster.log.dump import dump_json, dump_text
from minicluster.log.errors import LogCorruption
from minicluster.log.locating import locate
from minicluster.log.segment import write_segment
from minicluster.protocol.coordinator_records.described import record_types_of
from minicluster.verify.spark.rows import Rows
from tests.coordinator.groups import Groups

OFFSETS = "__consumer_offsets-0"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The log of a consumer group with one member, which leaves in the end."""
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",))
    groups.heartbeat("a", -1)
    path = tmp_path / OFFSETS
    path.mkdir()
    write_segment(path / f"{0:020}.log", groups.log.batches)
    return path


def test_keys_and_values_have_names(folder: Path) -> None:
    records = [record for batch in dump_json(locate(folder)) for record in batch["records"]]
    first, last = records[0], records[-1]
    assert (first["type"], first["version"]) == ("ConsumerGroupMemberMetadata", 0)
    assert first["key"] == {"groupId": "g", "memberId": "a"}
    assert first["data"]["subscribedTopicNames"] == ["orders"]
    assert (last["type"], last["data"]["epoch"]) == ("ConsumerGroupMetadata", 3)
    tombstones = [record["type"] for record in records if record["data"] is None]
    assert tombstones == [
        "ConsumerGroupCurrentMemberAssignment",
        "ConsumerGroupTargetAssignmentMember",
        "ConsumerGroupMemberMetadata",
    ]


def test_a_line_has_the_key_before_the_value(folder: Path) -> None:
    lines = [line.strip() for line in dump_text(dump_json(locate(folder / f"{0:020}.log")))]
    assert any("ConsumerGroupMetadata v0  groupId=g: epoch=2" in line for line in lines)
    assert lines[-3].endswith(
        "ConsumerGroupTargetAssignmentMember  groupId=g memberId=a: tombstone"
    )


def test_rows_have_key_and_data(folder: Path) -> None:
    groups = Groups(orders=2)
    groups.heartbeat("a", 0, topics=("orders",))

    types = record_types_of(folder / "x.log")
    (table,) = Rows(["type", "key", "data"]).of(groups.log.batches, file="f", types=types)
    row = table.to_pylist()[0]
    assert row["type"] == "ConsumerGroupMemberMetadata"
    assert json.loads(row["key"]) == {"groupId": "g", "memberId": "a"}
    assert json.loads(row["data"])["rebalanceTimeoutMs"] == 5_000


def _written(tmp_path: Path, key: bytes, value: bytes | None) -> Path:
    path = tmp_path / OFFSETS
    path.mkdir()
    batch = RecordBatch.of([Record(0, 0, key, value)], leader_epoch=0).with_base(0, 0)
    write_segment(path / f"{0:020}.log", [batch])
    return path


def test_a_type_of_a_newer_release_is_shown_by_its_number(tmp_path: Path) -> None:
    (batch,) = dump_json(locate(_written(tmp_path, b"\0\x63new", b"\0\0new")))
    assert batch["records"][0]["type"] == "Unknown99"


def test_a_damaged_key_is_an_error_with_its_place(tmp_path: Path) -> None:
    path = _written(tmp_path, b"\0\3\0\x20g", b"\0\0\0\0\0\1\0")
    with pytest.raises(LogCorruption, match="ConsumerGroupMetadataKey"):
        list(dump_json(locate(path)))
