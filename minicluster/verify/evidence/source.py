"""The evidence behind a report, read when somebody looks at it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from minicluster.errors import UserError
from minicluster.log.format.limits import ReadLimits
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run


class Source:
    """One run as it lies on disk.

    Shapes:  is_long: its log is too long to be held and drawn.
    """

    def __init__(self, path: Path, name: str, limits: ReadLimits, *, is_long: bool) -> None:
        self.name = name
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

    def read(self) -> Run | None:
        """The run with its contents; None if it is too long, or gone by now."""
        with suppress(UserError, OSError):
            self.hold()
        return self._run
