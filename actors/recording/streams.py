"""The streams of a running cluster's metadata log onto disk, for readers that follow it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.segment import segment_name

if TYPE_CHECKING:
    from minicluster.verify.spark.sink import ParquetSink


class LogStream:
    """Writes the log as one growing segment in Kafka's format, which ``readStream`` can follow."""

    lag = 0  # each batch is written as it is committed

    def __init__(self, folder: Path) -> None:
        self.path = folder / METADATA_DIRECTORY
        self.path.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO | None = (self.path / segment_name(0)).open("wb")

    def on_committed(self, batch: RecordBatch) -> None:
        """Append the batch, flushed so that readers see it."""
        if self._file is not None:
            self._file.write(batch.encoded)
            self._file.flush()

    def close(self) -> None:
        """Close the segment."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _parquet(folder: Path) -> ParquetSink:
    from minicluster.verify.spark.sink import ParquetSink

    return ParquetSink(folder)


FORMS: dict[str, Callable[[Path], LogStream | ParquetSink]] = {
    "parquet": _parquet,
    "log": LogStream,
}


def stream(form: str, folder: Path) -> LogStream | ParquetSink:
    """A stream of one form into a folder.

    Errors:  UserError for another form.
    """
    if not isinstance(form, str) or form not in FORMS:
        raise UserError(f"ingest: {form!r} is not one of {', '.join(FORMS)}")
    return FORMS[form](folder)
