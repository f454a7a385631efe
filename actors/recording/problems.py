"""Failures of the recorder: evidence that a run lacks, while its cluster continues.

A mistake of the recorder or of the live checks is not a fault of the cluster. It ends neither the
cluster nor the run; the verdict is *unknown* for what is missing, with one line of what failed.
"""

from __future__ import annotations

import threading
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath

from minicluster.values import Value

_TEXT_MAX = 300  # characters of an error


class RecorderWarning(UserWarning):
    """A run lacks evidence, since its recorder or its live checks failed."""


class RecorderProblem(Value):
    """The first failure of one part of the recorder.

    Shapes:  lacks: the trace table, or the log of ``znodes``, that is not whole; None: no evidence,
             but a check of it while the cluster ran. why: one line.
    """

    lacks: str | None
    why: str

    def to_dict(self) -> dict[str, str | None]:
        """The problem as ``run.json`` has it."""
        return {"lacks": self.lacks, "why": self.why}


class Problems:
    """The problems of a run's recorder, one for each part; safe to use from any thread."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._lock = threading.Lock()
        self._first: dict[tuple[str, str | None], str] = {}
        self._counts: dict[tuple[str, str | None], int] = {}

    def add(self, part: str, error: Exception, lacks: str | None = None) -> None:
        """Note that a part failed; only its first error is kept.

        Shapes:  part: such as "the live checks"; lacks: as in ``RecorderProblem``.
        """
        key = part, lacks
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1
            if key not in self._first:
                self._first[key] = f"{part} crashed at {self._now_ms()} ms: {one_line(error)}"

    def lack(self, table: str, why: str) -> None:
        """Note evidence that was left out on purpose."""
        with self._lock:
            self._counts[why, table] = 1
            self._first[why, table] = why

    @contextmanager
    def noted(self, part: str, lacks: str | None = None) -> Iterator[None]:
        """A block of the recorder's own; what it raises is a problem and goes no further."""
        try:
            yield
        except Exception as error:
            self.add(part, error, lacks)

    def so_far(self) -> tuple[RecorderProblem, ...]:
        """All problems so far, in the order in which they came."""
        with self._lock:
            return tuple(
                RecorderProblem(lacks, f"{why}{_more(self._counts[part, lacks] - 1)}")
                for (part, lacks), why in self._first.items()
            )


def one_line(error: BaseException) -> str:
    """An error as one line: its type, its message and where it was raised."""
    first = (str(error).strip().splitlines() or [""])[0]
    shown = first if len(first) <= _TEXT_MAX else f"{first[: _TEXT_MAX - 1]}…"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({PurePath(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {shown}{place}"


def warn_of(problems: Sequence[RecorderProblem]) -> None:
    """Warn of each problem where the test is."""
    for problem in problems:
        text = f"{problem.why}; what it had to show of this run is unknown"
        warnings.warn(text, RecorderWarning, stacklevel=3)


def _more(count: int) -> str:
    return f" (and {count} more times)" if count > 1 else " (and once more)" if count else ""
