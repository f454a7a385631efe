"""A user's fold over rows that lie in a file, so that memory holds what the fold itself keeps."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, overload

from minicluster.lazy_dataclass import dataclass
from minicluster.own_folders import temporary_folder
from minicluster.verify.rules.model import Row, View
from minicluster.verify.spark.fold_job import _prepare

_CHUNK = 1_000  # rows that are in memory at a time


@dataclass(frozen=True, slots=True)
class Missing:
    """A table whose rows a fold reads, which nobody could foresee."""

    name: str


@dataclass(frozen=True, slots=True)
class Failed:
    """A fold that raised, or whose rows cannot be judged."""

    why: str


class _Unforeseen(Exception):
    """A fold reads rows that were not sent."""


def read_by(view: View) -> list[str]:
    """The tables and views that a fold reads: as declared, else those it reads if all are empty."""
    if view.reads or view.fold is None:
        return list(view.reads)
    found: dict[str, None] = {}

    def rows(name: str) -> list[Row]:
        found[name] = None
        return []

    with suppress(Exception):  # a fold need not take it well; a worker returns what is missing
        deque(view.fold(rows), maxlen=0)
    return list(found)


class SpooledRows(Sequence[Row]):
    """The rows of one table, as dictionaries, read from a file some at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: list[int] = []  # where each chunk begins
        self._count = 0

    def fill(self, rows: Iterable[Row]) -> None:
        """Write the rows."""
        rows = iter(rows)
        with self._path.open("wb") as file:
            while chunk := list(islice(rows, _CHUNK)):
                self._places.append(file.tell())
                self._count += len(chunk)
                pickle.dump(chunk, file)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Row]:
        for number in range(len(self._places)):
            yield from self._chunk(number)

    @overload
    def __getitem__(self, index: int) -> Row: ...

    @overload
    def __getitem__(self, index: slice) -> list[Row]: ...

    def __getitem__(self, index: int | slice) -> Row | list[Row]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(self._count))]
        if not -self._count <= index < self._count:
            raise IndexError(index)
        number, place = divmod(index % self._count, _CHUNK)
        return self._chunk(number)[place]

    def _chunk(self, number: int) -> list[Row]:
        with self._path.open("rb") as file:
            file.seek(self._places[number])
            found: list[Row] = pickle.load(file)
        return found


def fold_share(
    task: bytes, name: str, reads: Sequence[str], tagged: Iterable[Any]
) -> Iterator[bytes]:
    """Fold one share of the rows in a worker, and judge what comes out.

    Shapes:  tagged: rows of Spark with a source, a place in ``reads``, by which they are sorted,
             and the row itself -> one pickle: ``Missing``, ``Failed``, or for each check its places
             in the rules, counts, and columns of its findings. A key without rows is not folded.
    """
    work = _prepare(task)
    fold = work.declared[name].fold
    columns = work.declared[name].columns
    assert fold is not None
    with temporary_folder("fold") as folder:
        spooled = {one: SpooledRows(folder.path / str(place)) for place, one in enumerate(reads)}
        _spool(list(spooled.values()), iter(tagged))
        if work.declared[name].key and not any(spooled.values()):
            yield pickle.dumps([])
            return

        def rows(one: str) -> Any:  # a sequence that reads as a list does
            if one not in spooled:
                raise _Unforeseen(one)
            return spooled[one]

        counts: dict[tuple[int, int], tuple[int, int]] = dict.fromkeys(work.checks[name], (0, 0))
        found: dict[tuple[int, int], list[Any]] = {key: [] for key in counts}
        try:
            made = iter(fold(rows))
            while chunk := [tuple(row.get(one) for one in columns) for row in islice(made, _CHUNK)]:
                for place, index in counts:
                    rule = work.rules[place]
                    done = work.views.check(rule, rule.checks[index], chunk)
                    before = counts[place, index]
                    counts[place, index] = (
                        before[0] + done.looked_at,
                        before[1] + done.not_promised,
                    )
                    found[place, index] += done.findings
        except _Unforeseen as error:
            yield pickle.dumps(Missing(str(error)))
            return
        except Exception as error:
            yield pickle.dumps(Failed(f"{type(error).__name__}: {error}"))
            return
    yield pickle.dumps([(key, counts[key], found[key]) for key in counts])


def _spool(files: Sequence[SpooledRows], tagged: Iterator[Any]) -> None:
    """Write the rows of each source to its file; they come source by source."""
    waiting = next(tagged, None)
    for place, file in enumerate(files):

        def rows(place: int = place) -> Iterator[Row]:
            nonlocal waiting
            while waiting is not None and waiting.source == place:
                row = waiting[f"row{place}"]
                yield dict(zip(row.__fields__, row, strict=True))
                waiting = next(tagged, None)

        file.fill(rows())
