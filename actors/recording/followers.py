"""The followers of a running cluster's committed metadata log: checks, and streams onto disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from minicluster.actors.runtime.runtime import Runtime
from minicluster.errors import MiniclusterError, UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.segment import segment_name
from minicluster.rules import Rules

if TYPE_CHECKING:
    from minicluster.verify import Finding
    from minicluster.verify.spark.sink import ParquetSink


class InvariantViolated(MiniclusterError, AssertionError):
    """The committed log breaks a rule; ``findings`` name the rule and the offset."""

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

    def __init__(self, rt: Runtime, run: str, *, rules: Rules) -> None:
        from minicluster.verify import OnlineChecker

        self.checker = OnlineChecker(run, rules=rules)
        self._rt = rt
        self._interrupted = False

    def on_committed(self, batch: RecordBatch) -> None:
        """Judge the batch; the first finding interrupts the test's thread."""
        findings = self.checker.commit(batch)
        if findings and not self._interrupted:
            self._interrupted = True
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
    if form not in FORMS:
        raise UserError(f"ingest: {form!r} is not one of {', '.join(FORMS)}")
    return FORMS[form](folder)
