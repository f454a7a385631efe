"""The evidence behind a report, read when somebody looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from minicluster.errors import UserError
from minicluster.log.format.limits import ReadLimits
from minicluster.log.locating import locate
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run


class Source:
    """One run as it lies on disk.

    Shapes:  is_too_long: its log is too long to be held and drawn. held: the run with its contents,
             once it has been read.
    """

    def __init__(self, path: Path, name: str, limits: ReadLimits, *, is_long: bool) -> None:
        self.name = name
        self.is_too_long = is_long
        self.path = path
        self.held: Run | None = None
        self._limits = limits

    def hold(self) -> None:
        """Read the run now, unless it is too long.

        Errors:  UserError for a path that is not a run.
        """
        if self.held is None and not self.is_too_long:
            self.held = read_run(self.path, self.name, self._limits)

    def read(self) -> Run | None:
        """The run with its contents; None if it is too long, or gone by now."""
        with suppress(UserError, OSError):
            self.hold()
        return self.held


_LONG_LOG_BYTES = 8 << 20  # of one controller: half an hour of 2,000 partitions under disturbances
_LONG_TRACE_BYTES = 256 << 20
_READ_NOW = 3  # so few runs are read for their report at once
_READ_NOW_BYTES = 1 << 20  # of one controller: longer ones take longer than a report is worth


def sources_of(
    named: Sequence[tuple[Path, str]], limits: ReadLimits, *, go_away: bool = True
) -> list[Source]:
    """The evidence for the report; of few runs it is read now, since it may go away.

    Shapes:  go_away: they do so for certain, or this process reads them anyhow, so logs of more
             than 1 MiB are read now as well.
    Errors:  UserError for a path that is not a run, of which Spark need not be started.
    """
    sources: list[Source] = []
    for path, name in named:
        log_bytes, trace_bytes = _sizes(path, limits)
        is_long = log_bytes > _LONG_LOG_BYTES or trace_bytes > _LONG_TRACE_BYTES
        source = Source(path, name, limits, is_long=is_long)
        sources.append(source)
        if len(named) <= _READ_NOW and (go_away or log_bytes <= _READ_NOW_BYTES):
            source.hold()
    return sources


def _sizes(path: Path, limits: ReadLimits) -> tuple[int, int]:
    """The bytes of the longest log of a run, and of its trace."""
    located = locate(path.absolute(), partly=True, limits=limits)
    logs = (sum(file.stat().st_size for file in log.segments) for log in located.logs)
    trace = sum(file.stat().st_size for file in path.glob("trace/*.parquet"))
    return max(logs, default=0), trace
