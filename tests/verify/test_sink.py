"""Ingestion: every offset once, whatever happens to the reader and to the log.

The stream is driven as Spark drives it, by positions that a checkpoint keeps; no session is needed.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyarrow import parquet

from minicluster.log import heads
from minicluster.log.batch import RecordBatch
from minicluster.log.errors import LogCorruption, LogError
from minicluster.log.format.limits import DEFAULT_LIMITS
from minicluster.log.segment import segment_name, write_segment
from minicluster.verify.spark.data_source import KraftStream
from minicluster.verify.spark.sink import ParquetSink
from tests.verify.handwritten.log import change, cluster

Position = dict[str, int]


@pytest.fixture
def batches() -> list[RecordBatch]:
    log = cluster()
    for _ in range(5):
        log = log.op(change((1, 2))).op(change((1, 2, 3)))
    return log.batches


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "controller-101" / "__cluster_metadata-0"
    folder.mkdir(parents=True)
    return folder


def stream(home: Path) -> KraftStream:
    """A reader as a new process makes it."""
    return KraftStream(str(home.parent), ("offset",), DEFAULT_LIMITS)


def read(reader: KraftStream, start: Position) -> tuple[list[int], Position]:
    """One micro-batch from a position: its offsets, and the position to keep."""
    end = reader.latestOffset(start)
    offsets = [
        offset
        for piece in reader.partitions(start, end)
        for rows in reader.read(piece)
        for offset in rows.column(0).to_pylist()
    ]
    reader.commit(end)
    return offsets, end


def end_of(batches: list[RecordBatch]) -> int:
    return batches[-1].next_offset


class TestStream:
    """``readStream`` over a growing log."""

    def test_a_reader_that_restarts_goes_on_where_its_checkpoint_is(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        write_segment(home / segment_name(0), batches[:4])
        first, position = read(stream(home), stream(home).initialOffset())
        write_segment(home / segment_name(0), batches)
        second, position = read(stream(home), position)

        assert [*first, *second] == list(range(end_of(batches)))
        assert read(stream(home), position) == ([], position)

    def test_a_torn_tail_is_read_when_it_is_whole(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        segment = home / segment_name(0)
        write_segment(segment, batches[:3])
        with segment.open("ab") as file:
            file.write(batches[3].encoded[:50])
        first, position = read(stream(home), {"offset": 0})
        write_segment(segment, batches)

        assert first == list(range(batches[3].base_offset))
        assert [*first, *read(stream(home), position)[0]] == list(range(end_of(batches)))

    def test_a_last_batch_that_a_crash_left_damaged_is_read_when_it_is_whole(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        segment = home / segment_name(0)
        write_segment(segment, batches[:4])
        segment.write_bytes(segment.read_bytes()[:-10] + bytes(10))
        first, position = read(stream(home), {"offset": 0})
        write_segment(segment, batches)

        assert first == list(range(batches[3].base_offset))
        assert [*first, *read(stream(home), position)[0]] == list(range(end_of(batches)))

    def test_zeros_behind_the_last_batch_are_left_alone(
        self, home: Path, batches: list[RecordBatch], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At the bound of a piece nothing else is in the last one."""
        monkeypatch.setattr(heads, "SPLIT_BYTES", 1)
        write_segment(home / segment_name(0), batches[:3])
        with (home / segment_name(0)).open("ab") as file:
            file.write(bytes(100))

        assert read(stream(home), {"offset": 0})[0] == list(range(batches[3].base_offset))

    def test_a_damaged_batch_inside_the_log_is_named(
        self, home: Path, batches: list[RecordBatch], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is all that is in its piece, so no batch there follows it."""
        monkeypatch.setattr(heads, "SPLIT_BYTES", 1)
        write_segment(home / segment_name(0), batches)
        content = bytearray((home / segment_name(0)).read_bytes())
        content[sum(batch.size for batch in batches[:4]) - 1] ^= 1
        (home / segment_name(0)).write_bytes(content)

        with pytest.raises(LogCorruption, match=f"batch of offset {batches[3].base_offset}"):
            read(stream(home), {"offset": 0})

    def test_it_goes_over_the_bounds_of_segments(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        write_segment(home / segment_name(0), batches[:3])
        first, position = read(stream(home), {"offset": 0})
        write_segment(home / segment_name(0), batches[:5])
        write_segment(home / segment_name(batches[5].base_offset), batches[5:])

        assert [*first, *read(stream(home), position)[0]] == list(range(end_of(batches)))

    def test_a_late_reader_begins_where_the_log_begins(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        base = batches[4].base_offset
        write_segment(home / segment_name(base), batches[4:])
        offsets, _ = read(stream(home), stream(home).initialOffset())

        assert offsets == list(range(base, end_of(batches)))

    def test_a_snapshot_beside_the_log_is_no_part_of_the_stream(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        write_segment(home / segment_name(0), batches)
        write_segment(home / f"{5:020d}-{1:010d}.checkpoint", batches[:2])

        assert read(stream(home), {"offset": 0})[0] == list(range(end_of(batches)))

    def test_retention_of_what_was_read_is_no_loss(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        write_segment(home / segment_name(0), batches[:5])
        first, position = read(stream(home), {"offset": 0})
        (home / segment_name(0)).unlink()
        write_segment(home / segment_name(batches[5].base_offset), batches[5:])

        assert [*first, *read(stream(home), position)[0]] == list(range(end_of(batches)))

    def test_retention_of_what_was_not_read_is_named(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        base = batches[5].base_offset
        write_segment(home / segment_name(base), batches[5:])

        with pytest.raises(LogError, match=f"offsets 2 to {base - 1} are deleted"):
            read(stream(home), {"offset": 2})

    def test_a_truncation_below_the_position_is_named(
        self, home: Path, batches: list[RecordBatch]
    ) -> None:
        write_segment(home / segment_name(0), batches)
        _, position = read(stream(home), {"offset": 0})
        write_segment(home / segment_name(0), batches[:4])

        with pytest.raises(LogError, match="it was truncated; begin a new stream"):
            read(stream(home), position)


class TestParquetSink:
    """Committed batches into a folder of Parquet while the cluster runs."""

    def offsets(self, folder: Path) -> list[int]:
        files = sorted(folder.glob("*.parquet"))
        return [
            offset for file in files for offset in parquet.read_table(file)["offset"].to_pylist()
        ]

    def test_a_sink_that_restarts_leaves_out_what_its_files_hold(
        self, tmp_path: Path, batches: list[RecordBatch]
    ) -> None:
        first = ParquetSink(tmp_path, file_rows=4)
        for batch in batches[:6]:
            first.on_committed(batch)
        assert first.lag < 4
        (tmp_path / ".half.part").write_bytes(b"PAR1")  # it ends here: what waits is lost with it
        second = ParquetSink(tmp_path, file_rows=4)
        for batch in batches:  # the log gives everything again
            second.on_committed(batch)
        second.close()

        assert self.offsets(tmp_path) == list(range(end_of(batches)))
        assert (second.lag, second.gaps) == (0, [])
        assert not list(tmp_path.glob(".*"))

    def test_a_last_file_that_lost_a_part_is_written_anew(
        self, tmp_path: Path, batches: list[RecordBatch]
    ) -> None:
        first = ParquetSink(tmp_path, file_rows=4)
        for batch in batches:
            first.on_committed(batch)
        first.close()
        last = max(tmp_path.glob("*.parquet"))
        last.write_bytes(last.read_bytes()[:-20])
        second = ParquetSink(tmp_path, file_rows=4)
        for batch in batches:
            second.on_committed(batch)
        second.close()

        assert 0 < second.rows_written < first.rows_written
        assert self.offsets(tmp_path) == list(range(end_of(batches)))

    def test_a_late_start_and_a_gap_are_shown(
        self, tmp_path: Path, batches: list[RecordBatch]
    ) -> None:
        sink = ParquetSink(tmp_path)
        for batch in (*batches[3:5], *batches[6:]):
            sink.on_committed(batch)
        waiting = sink.lag
        sink.close()

        assert waiting == sink.rows_written > 0
        assert self.offsets(tmp_path)[0] == batches[3].base_offset
        assert sink.gaps == [(batches[5].base_offset, batches[6].base_offset)]
