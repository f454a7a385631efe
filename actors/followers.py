"""Who follows the committed metadata log while a cluster runs: checks, and streams onto disk."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from minicluster.actors.runtime import Runtime
from minicluster.errors import MiniclusterError, UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.segment import segment_name

if TYPE_CHECKING:
    from minicluster.verify import Finding

ROWS_PER_FILE = 1_000


class InvariantViolated(MiniclusterError, AssertionError):
    """The committed log breaks a rule; ``findings`` say which and where."""

    def __init__(self, findings: list[Finding], seed: int) -> None:
        first = findings[0]
        more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
        super().__init__(
            f"rule {first.rule} is broken at offset {first.offset}: {first.message}{more}; "
            f"seed {seed}"
        )
        self.findings = findings


class OnlineChecks:
    """The log-only rules, over every batch as it commits; the first finding ends the run."""

    def __init__(self, rt: Runtime, run: str, *, failures_told: bool = True) -> None:
        from minicluster.verify import OnlineChecker

        self.checker = OnlineChecker(run, failures_told=failures_told)
        self._rt = rt
        self._told = False

    def on_committed(self, batch: RecordBatch) -> None:
        """Judge the batch; the test's thread hears of a finding at once."""
        findings = self.checker.commit(batch)
        if findings and not self._told:
            self._told = True
            self._rt.interrupted(InvariantViolated(findings, self._rt.seed))

    def close(self) -> None:
        """Nothing to free."""


class LogStream:
    """Writes the log as one growing segment in Kafka's format, which ``readStream`` can follow."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / METADATA_DIRECTORY
        self.path.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO | None = (self.path / segment_name(0)).open("wb")

    def on_committed(self, batch: RecordBatch) -> None:
        """Append the batch; whoever reads sees it at once."""
        if self._file is not None:
            self._file.write(batch.encoded)
            self._file.flush()

    def close(self) -> None:
        """Close the segment."""
        if self._file is not None:
            self._file.close()
            self._file = None


class ParquetStream:
    """Writes the log as rows into Parquet files, the columns of the ``kraft`` source."""

    def __init__(self, folder: Path, *, rows_per_file: int = ROWS_PER_FILE) -> None:
        from minicluster.verify.rows import COLUMNS, Rows

        self.path = folder
        self.path.mkdir(parents=True, exist_ok=True)
        self._rows = Rows([name for name, _ in COLUMNS])
        self._rows_per_file = rows_per_file
        self._waiting: list[RecordBatch] = []
        self._count = 0

    def on_committed(self, batch: RecordBatch) -> None:
        """Take the batch; every so many rows a file is finished."""
        self._waiting.append(batch)
        self._count += batch.count
        if self._count >= self._rows_per_file:
            self._write()

    def close(self) -> None:
        """Finish the last file."""
        if self._waiting:
            self._write()

    def _write(self) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        batches, self._waiting, self._count = self._waiting, [], 0
        first = batches[0].base_offset
        name = f"{first:020d}.parquet"
        table: Any = pa.Table.from_batches(list(self._rows.of(batches, file=segment_name(0))))
        part = self.path / f".{name}"  # readers skip hidden files
        pq.write_table(table, part, compression="zstd")
        part.replace(self.path / name)


FORMS = {"parquet": ParquetStream, "log": LogStream}


def stream(form: str, folder: Path) -> LogStream | ParquetStream:
    """A stream of one form into a folder.

    Errors:  UserError for another form.
    """
    if form not in FORMS:
        raise UserError(f"ingest: {form!r} is not one of {', '.join(FORMS)}")
    made: LogStream | ParquetStream = FORMS[form](folder)
    return made
