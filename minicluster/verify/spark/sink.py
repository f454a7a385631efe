"""Ingesting a metadata log while the cluster runs: committed batches into a folder of Parquet.

Each file is whole when it appears under its name, so a reader, a Spark stream among them, may look
at the folder at any time. ``follow`` does the same from the files of a log, as a Spark stream.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.log.batch import RecordBatch
from minicluster.log.segment import segment_name

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE_ROWS = 1_000


class ParquetSink:
    """Takes committed batches in order and writes rows as ``rows.COLUMNS`` has them.

    Each offset is written once, also by a later sink of the same folder: it begins where the files
    end and leaves out what they hold.

    Units:   next_offset: the first offset that no file and no waiting batch has, -1 before the
             first; lag: records that have been taken and are in no file yet; gaps: offsets that
             never came, as (first, end).
    """

    def __init__(self, folder: Path, *, file_rows: int = FILE_ROWS) -> None:
        self.path = folder
        self.rows_written = 0
        self.gaps: list[tuple[int, int]] = []
        self._file_rows = file_rows
        self._waiting: list[RecordBatch] = []
        self._rows_waiting = 0
        folder.mkdir(parents=True, exist_ok=True)
        for part in folder.glob(".*.part"):  # of a sink that ended while it wrote
            part.unlink()
        self.next_offset = _end_of(folder)

    @property
    def lag(self) -> int:
        """The number of records that wait to be written."""
        return self._rows_waiting

    def on_committed(self, batch: RecordBatch) -> None:
        """Take the next committed batch, unless the files hold it."""
        if batch.base_offset < self.next_offset:
            return
        if 0 <= self.next_offset < batch.base_offset:
            self.gaps.append((self.next_offset, batch.base_offset))
        self.next_offset = batch.next_offset
        self._waiting.append(batch)
        self._rows_waiting += batch.count
        if self._rows_waiting >= self._file_rows:
            self.flush()

    def flush(self) -> None:
        """Write what waits as one more file, named by its first offset."""
        if not self._waiting:
            return
        import pyarrow as pa
        from pyarrow import parquet

        from minicluster.verify.spark.rows import Rows

        table = pa.Table.from_batches(Rows().of(self._waiting, file=segment_name(0)))
        final = self.path / f"{self._waiting[0].base_offset:020d}.parquet"
        part = self.path / f".{final.name}.part"  # readers skip hidden files
        parquet.write_table(table, part, compression="zstd")
        part.replace(final)
        self.rows_written += table.num_rows
        self._waiting, self._rows_waiting = [], 0

    def close(self) -> None:
        """Write the rest; the run is over."""
        self.flush()


def _end_of(folder: Path) -> int:
    """The offset after the last record in the files, -1 if there are none.

    A last file that a machine lost a part of as it went down is removed; its records come again.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import parquet

    for file in sorted(folder.glob("*.parquet"), reverse=True):
        try:
            return int(pc.max(parquet.read_table(file, columns=["offset"])["offset"]).as_py()) + 1
        except (pa.ArrowInvalid, OSError):
            file.unlink()
    return -1


def follow(spark: SparkSession, log: Path, folder: Path) -> Any:
    """Start a Spark stream from a growing log into Parquet; the caller stops the query.

    Shapes:  log: a path of one controller's log on this machine. folder: gets the files of Parquet
             and the checkpoint from which a later stream continues.
    """
    from minicluster.verify.spark.data_source import register

    register(spark)
    return (
        spark.readStream.format("kraft")
        .load(str(log))
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "_progress"))
        .option("path", str(folder))
        .start()
    )


def lag(query: Any, log: Path) -> int:
    """The number of records of a log that a stream of ``follow`` has not written yet.

    Shapes:  query: the stream, which may have ended.
    Errors:  UserError, LogError for a log that cannot be read, or that was truncated.
    """
    from minicluster.log.format.limits import DEFAULT_LIMITS
    from minicluster.verify.spark.data_source import KraftStream

    stream = KraftStream(str(log), (), DEFAULT_LIMITS)
    progress = query.lastProgress or {"sources": []}
    ends = [json.loads(source["endOffset"])["offset"] for source in progress["sources"]]
    done = max(ends, default=stream.initialOffset()["offset"])
    return int(stream.latestOffset()["offset"] - done)
