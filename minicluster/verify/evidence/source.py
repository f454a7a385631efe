"""The evidence behind a report, read when somebody looks at it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from minicluster.errors import UserError
from minicluster.log.directory import locate
from minicluster.log.format.limits import ReadLimits
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run


class Source:
    """One run as it lies on disk.

    Shapes:  is_too_long: its log is too long to be held and drawn.
    """

    def __init__(self, path: Path, name: str, limits: ReadLimits, *, is_long: bool) -> None:
        self.name = name
        self.is_too_long = is_long
        self._path = path
        self._limits = limits
        self._is_read = is_long
        self._run: Run | None = None

    def hold(self) -> None:
        """Read the run now, unless it is too long.

        Errors:  UserError for a path that is no run.
        """
        if not self._is_read:
            self._run = read_run(self._path, self.name, self._limits)
            self._is_read = True

    def content(self) -> Run:
        """The run, however long it is; kept only if it is held.

        Errors:  UserError for a path that is no run.
        """
        return self._run or read_run(self._path, self.name, self._limits)

    def read(self) -> Run | None:
        """The run with its contents; None if it is too long, or gone by now."""
        with suppress(UserError, OSError):
            self.hold()
        return self._run


_LONG_LOG_BYTES = 8 << 20  # of one controller: half an hour of 2,000 partitions under disturbances
_LONG_TRACE_BYTES = 256 << 20
_READ_NOW = 3  # so few runs are read for their report at once


def sources_of(named: Sequence[tuple[Path, str]], limits: ReadLimits) -> list[Source]:
    """The evidence for the report; of few short runs it is read now, since it may go away.

    Errors:  UserError for a path that is no run, of which Spark need not be started.
    """
    sources = [Source(path, name, limits, is_long=_is_long(path, limits)) for path, name in named]
    if len(sources) <= _READ_NOW:
        for source in sources:
            source.hold()
    return sources


def _is_long(path: Path, limits: ReadLimits) -> bool:
    """The run is too long to be held and drawn."""
    located = locate(path.absolute(), partly=True, limits=limits)
    logs = (sum(file.stat().st_size for file in log.segments) for log in located.logs)
    trace = sum(file.stat().st_size for file in path.glob("trace/*.parquet"))
    return max(logs, default=0) > _LONG_LOG_BYTES or trace > _LONG_TRACE_BYTES
