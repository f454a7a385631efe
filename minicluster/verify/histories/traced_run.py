"""A run with its trace, as the drivers of folds read it, and histories of users' own rules.

A history of one's own is a function from the run to steps for the judge::

    @history(HighWatermark, reads=("partition_event",))
    def high_watermarks(run: TracedRun, judge: Judge) -> None:
        for row in run.rows("partition_event"):
            ...
            judge.take(HighWatermark(...), -1, row["topic"], row["part"], row["seq"])

It goes through the rows once, in the order of their events. A history that reads no table of the
trace is told of plain logs as well. What several folds need of a run is worked out once, on first
use: ``losses``, ``last_leaders``, ….

A table is as large as what its cluster did, so it is held packed, and folds keep
no rows but small values: a row that is kept keeps thousands beside it (``dict(row)`` does not).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, Protocol, TypeVar, runtime_checkable

from minicluster.values import Value
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.evidence.run_header import RunHeader
from minicluster.verify.histories.image_fold import ImageFold
from minicluster.verify.histories.timeline import Timeline
from minicluster.verify.judging import Judge
from minicluster.verify.promises import Promises
from minicluster.verify.rules.rule import Rule

Row = Mapping[str, Any]
T = TypeVar("T")
_OF_A_RECORD = ("topic_id", "part", "offset")


class Rows(Protocol):
    """The rows of a table, through which one may go any number of times."""

    def __iter__(self) -> Iterator[Row]: ...

    def __len__(self) -> int: ...


@runtime_checkable
class Stored(Rows, Protocol):
    """Rows that are made as they are asked for, each time again."""

    def in_order(self, columns: Sequence[str]) -> Rows:
        """All rows by some columns; those that are equal there stay in the table's order."""
        ...


class TracedRun:
    """One run: the rows of its trace, the committed states beside them, its header.

    Shapes:  tables: rows by table; a table that was not recorded, or is damaged, has none.
             cleaned: partitions, by topic id, whose logs do not show any more what they held.
             images: the fold of the log at the end of each of its batches. epoch_starts: epoch ->
             the offset of its LeaderChange.
             problems: what the histories could not use, for the driver's verdict.
    """

    def __init__(
        self,
        evidence: Run,
        tables: Mapping[str, Rows],
        timeline: Timeline,
        promises: Promises,
        cleaned: Collection[tuple[str, int]] = (),
        images: ImageFold | None = None,
        epoch_starts: Mapping[int, int] | None = None,
    ) -> None:
        self.evidence = evidence
        self.timeline = timeline
        self.promises = promises
        self.cleaned = cleaned
        self.images = images or ImageFold()
        self.epoch_starts = epoch_starts or {}
        self.problems: list[Problem] = []
        self._tables = tables
        self._sorted: dict[tuple[str, str], Rows] = {}
        self._contexts: dict[Callable[[TracedRun], Any], Any] = {}

    @property
    def header(self) -> RunHeader:
        """The header; an empty one where it is damaged."""
        return self.evidence.header or RunHeader()

    @cached_property
    def first_image(self) -> int:
        """The first offset at which the log, as far as it is kept, can be folded."""
        start = self.evidence.start
        return 0 if start is None else start.end_offset - 1

    def rows(self, table: str, by: str = "seq") -> Rows:
        """The rows of a table by their events; those of one event stay in the table's order.

        Shapes:  by: another column for their order, nulls last.
        """
        rows = self._sorted.get((table, by))
        if rows is None:
            rows = self._sorted[table, by] = self._in_order(table, (by,))
        return rows

    def by_record(self, table: str) -> Iterator[list[Row]]:
        """The rows of each offset of each partition together, by their events.

        Partitions come one after the other, and the offsets of each in order.
        """
        rows = self._in_order(table, (*_OF_A_RECORD, "seq"))
        for _, of_record in groupby(rows, lambda row: [row[name] for name in _OF_A_RECORD]):
            yield list(of_record)

    def _in_order(self, table: str, columns: Sequence[str]) -> Rows:
        rows = self._tables.get(table, ())
        if isinstance(rows, Stored):
            return rows.in_order(columns)
        # A topic's id may be null: its rows come last, as in Arrow's order.
        return sorted(rows, key=lambda row: [(row[name] is None, row[name]) for name in columns])

    def problem(self, problem: Problem) -> None:
        """Evidence cannot be used: rules that need it are unknown, and the verdict says why."""
        self.problems.append(problem)

    def provide(self, make: Callable[[TracedRun], T], context: T) -> None:
        """Give what a function would make of the run, where it was made on the way."""
        self._contexts[make] = context

    def context(self, make: Callable[[TracedRun], T]) -> T:
        """The result of a function of the run, made once for all histories that read it."""
        if make not in self._contexts:
            self._contexts[make] = make(self)
        known: T = self._contexts[make]
        return known


Fold = Callable[[TracedRun, Judge], None]


class History(Value):
    """A fold over a run: the steps that it yields, the tables of the trace that it reads.

    Shapes:  rules: those that the folds of subjects ask, where it drives such.
    """

    yields: tuple[type, ...]
    reads: tuple[str, ...]
    fold: Fold
    rules: tuple[Rule, ...] = ()

    @property
    def needs_trace(self) -> bool:
        """A plain log gives it nothing."""
        return bool(self.reads)

    def is_asked(self, judge: Judge) -> bool:
        """Some rule is about its steps, or stands beside one of its folds."""
        return judge.judges(*self.yields) or judge.asks(self.rules)

    def __call__(self, run: TracedRun, judge: Judge) -> None:
        """Give the steps of a run to the judge, if any rule is about them."""
        if self.is_asked(judge):
            try:
                self.fold(run, judge)
            except Exception as error:  # evidence that no run writes: its rules are unknown
                judge.history_crashed(self.yields, error)
                judge.fold_crashed(self.rules, error)


def history(*yields: type, reads: tuple[str, ...]) -> Callable[[Fold], History]:
    """Make a history of a function from a run to steps.

    Shapes:  reads: tables of the trace; none, for a history that plain logs have as well.
    """
    return lambda fold: History(yields, reads, fold)


def histories_in(module: Any) -> tuple[History, ...]:
    """The histories that a module declares, in their order there."""
    return tuple(
        value
        for value in vars(module).values()
        if isinstance(value, History) and value.fold.__module__ == module.__name__
    )
