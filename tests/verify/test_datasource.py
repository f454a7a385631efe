"""``spark.read.format("kraft")`` and its stream: rows of typed columns from any metadata log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from minicluster.log import heads
from minicluster.log.batch import Record, RecordBatch
from minicluster.log.errors import LogCorruption
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.log.segment import segment_name, write_segment
from minicluster.protocol import records as r
from minicluster.verify.spark import data_source as datasource
from minicluster.verify.spark.rows import COLUMNS, Rows
from minicluster.verify.spark.sink import ParquetSink, follow, lag
from tests.verify.handwritten.log import change, cluster

pytestmark = pytest.mark.spark

KAFKA_LOGS = Path(__file__).parents[1] / "data" / "kafka-logs"


@pytest.fixture(scope="module")
def kraft(spark: Any) -> Any:
    datasource.register(spark)
    return spark


def load(kraft: Any, path: Path, schema: str | None = None) -> Any:
    reader = kraft.read.format("kraft")
    return (reader.schema(schema) if schema else reader).load(str(path))


def dumped(run: str) -> list[dict[str, Any]]:
    """The output of Kafka's own tool, one row per record of a log or snapshot."""
    lines = (KAFKA_LOGS / run / "dump.jsonl").read_text().splitlines()
    batches = [json.loads(line) for line in lines]
    return [
        {"file": batch["file"], "epoch": batch["epoch"], **record}
        for batch in batches
        if batch["file"] != "bootstrap.checkpoint"
        for record in batch["records"]
    ]


def test_every_record_of_kafkas_log_is_a_row(kraft: Any) -> None:
    rows = load(kraft, KAFKA_LOGS / "smoke" / "controller-1").collect()
    expected = dumped("smoke")

    assert len(rows) == len(expected)
    seen = {(row.file, row.offset): row for row in rows}
    for record in expected:
        row = seen[record["file"], record["offset"]]
        name = record.get("control") or record["type"].replace("_RECORD", "").replace("_", "")
        assert row.type.upper() == name.upper().removesuffix("RECORD")
        assert (row.epoch, row.timestamp) == (record["epoch"], record["create_time"])
        if "type" in record:
            ours = json.loads(row.data)
            assert {key: ours[key] for key in record["data"]} == record["data"]


def test_columns_are_typed_and_null_where_a_record_lacks_the_field(
    kraft: Any, tmp_path: Path
) -> None:
    log = cluster().op(change((1, 2)))
    row = load(kraft, log.write(tmp_path)).where(f"offset = {log.offset - 1}").collect()[0]

    assert (row.type, row.version, row.partition_id) == ("PartitionChange", 0, 0)
    assert (row.isr, row.leader, row.replicas, row.leader_recovery_state) == (
        [1, 2],
        None,
        None,
        None,
    )
    fenced = load(kraft, tmp_path).where("type = 'BrokerRegistrationChange'").collect()
    assert [one.fenced for one in fenced] == [False] * 3


def test_filters_on_offset_and_type_are_applied_while_reading(kraft: Any) -> None:
    frame = load(kraft, KAFKA_LOGS / "cluster" / "controller-101")
    some = frame.where("type = 'PartitionChange' and offset >= 100 and snapshot_end is null")

    expected = [
        record
        for record in dumped("cluster")
        if record.get("type") == "PARTITION_CHANGE_RECORD"
        and record["offset"] >= 100
        and record["file"].endswith(".log")
    ]
    assert sorted(row.offset for row in some.collect()) == [one["offset"] for one in expected]
    plan = some._jdf.queryExecution().executedPlan().toString()
    assert "type#" not in plan[plan.find("Filter") : plan.find("BatchScan")].replace(
        "isnotnull(type#", ""
    )


def test_a_narrow_schema_reads_only_its_columns(kraft: Any) -> None:
    frame = load(kraft, KAFKA_LOGS / "jbod", "offset bigint, directories array<string>")

    assert frame.columns == ["offset", "directories"]
    reported = [one for one in dumped("jbod") if "directories" in (one["data"] or {})]
    assert frame.where("directories is not null").count() == len(reported) > 100


def test_a_wrong_path_is_one_line_and_no_traceback(kraft: Any, tmp_path: Path) -> None:
    no_log = tmp_path / "text/notes.log"
    no_log.parent.mkdir()
    no_log.write_text("not a log\n" * 100)
    for path, mistake in (
        ("/nowhere", "/nowhere: there is no such file"),
        (str(tmp_path), ""),
        (str(no_log), "not a Kafka log"),
    ):
        with pytest.raises(Exception) as refused:
            load(kraft, path).count()
        lines = str(refused.value).strip().splitlines()
        assert "Traceback" not in str(refused.value) and len(lines) <= 2, lines
        assert mistake in lines[0] and path in lines[0]


def test_an_unknown_column_is_refused(kraft: Any) -> None:
    with pytest.raises(Exception, match="no column 'leader_id'"):
        load(kraft, KAFKA_LOGS / "smoke", "leader_id int").collect()


def test_a_long_segment_is_split_between_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heads, "SPLIT_BYTES", 300)
    log = cluster()
    for _ in range(40):
        log.op(r.NoOpRecord())
    log.write(tmp_path)
    names = tuple(name for name, _, _ in COLUMNS if name in ("offset", "type"))
    reader = datasource.KraftReader(str(tmp_path), names, DEFAULT_LIMITS)
    pieces = reader.partitions()

    assert len(pieces) > 3
    offsets = [
        offset
        for piece in pieces
        for batch in reader.read(piece)
        for offset in batch["offset"].to_pylist()
    ]
    assert offsets == list(range(log.offset))


def rows_of(path: Path) -> list[int]:
    reader = datasource.KraftReader(str(path), ("offset", "type"), DEFAULT_LIMITS)
    return [
        offset
        for piece in reader.partitions()
        for batch in reader.read(piece)
        for offset in batch["offset"].to_pylist()
    ]


def test_damage_inside_a_log_names_file_byte_and_offset(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last batch of a piece that is not the end of its log."""
    monkeypatch.setattr(heads, "SPLIT_BYTES", 300)
    log = cluster()
    for _ in range(20):
        log.op(r.NoOpRecord())
    log.write(tmp_path)
    segment = next(tmp_path.rglob("*.log"))
    reader = datasource.KraftReader(str(tmp_path), ("offset",), DEFAULT_LIMITS)
    first = reader.partitions()[0]
    assert isinstance(first, datasource.Piece)
    damaged = bytearray(segment.read_bytes())
    damaged[first.end - 1] ^= 1
    segment.write_bytes(bytes(damaged))

    with pytest.raises(LogCorruption, match=rf"{segment.name}: damaged at byte \d+, batch of"):
        rows_of(tmp_path)


def test_a_sound_batch_with_an_unreadable_record_names_file_and_offset(tmp_path: Path) -> None:
    log = cluster()
    bad = RecordBatch(
        base_offset=log.offset,
        last_offset=log.offset,
        leader_epoch=1,
        base_timestamp=0,
        max_timestamp=0,
        count=1,
        records=(Record(offset=log.offset, timestamp=0, key=None, value=b"\x01\xff\x7f\x00"),),
    )
    log.add(bad)
    log.write(tmp_path)

    place = rf"\.log: damaged at byte \d+, batch of offset {bad.base_offset}"
    with pytest.raises(LogCorruption, match=place):
        rows_of(tmp_path)


def test_an_ordinary_session_finds_the_format_by_itself(spark: Any, tmp_path: Path) -> None:
    ordinary = spark.newSession()
    assert ordinary.conf.get("spark.sql.python.filterPushdown.enabled") == "false"
    log = cluster().op(change((1, 2)))
    rows = ordinary.read.format("kraft").load(str(log.write(tmp_path / "log")))

    assert rows.count() == log.offset
    assert rows.where("offset >= 3").count() == log.offset - 3


def test_a_stream_goes_on_from_its_checkpoint_over_a_new_segment_and_a_snapshot(
    kraft: Any, tmp_path: Path
) -> None:
    log = cluster()
    home = log.write(tmp_path / "log") / "__cluster_metadata-0"
    for step in range(2):  # each with a query of its own, as after a restart
        query = follow(kraft, tmp_path / "log", tmp_path / "out")
        query.processAllAvailable()
        assert lag(query, tmp_path / "log") == 0
        query.stop()
        if step == 0:
            base, held = log.offset, len(log.batches)
            log.op(change((1, 2))).op(change((1, 2, 3)))
            assert lag(query, tmp_path / "log") == 0
            write_segment(home / segment_name(base), log.batches[held:])
            write_segment(home / f"{base:020d}-{1:010d}.checkpoint", log.batches[:2])
            assert lag(query, tmp_path / "log") == log.offset - base

    rows = kraft.read.parquet(str(tmp_path / "out")).orderBy("offset").collect()
    assert [row.offset for row in rows] == list(range(log.offset))


def test_the_sink_writes_what_the_source_reads(kraft: Any, tmp_path: Path) -> None:
    log = cluster().op(change((1, 2)))
    sink = ParquetSink(tmp_path / "sink", file_rows=4)
    for batch in log.batches:
        sink.on_committed(batch)
    assert len(list((tmp_path / "sink").glob("*.parquet"))) > 1
    sink.close()

    columns = [name for name, _, _ in COLUMNS if name != "file"]
    stored = kraft.read.parquet(str(tmp_path / "sink")).select(columns).orderBy("offset")
    read = load(kraft, log.write(tmp_path / "log")).select(columns).orderBy("offset")
    assert stored.collect() == read.collect()
    assert sink.rows_written == log.offset


def test_rows_need_no_spark() -> None:
    batches: list[RecordBatch] = cluster().batches
    (table,) = Rows(["offset", "isr", "quorum_leader"]).of(batches, file="f")

    assert table["offset"].to_pylist() == list(range(10))
    assert table["quorum_leader"].to_pylist()[0] == 101
    assert table["isr"].to_pylist()[-1] == [1, 2, 3]
