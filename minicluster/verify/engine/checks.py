"""The checks of rules over the rows of their views, run by run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.engine import tree as t
from minicluster.verify.engine.expressions import Row, Scope, column_of, rows_of, rows_where
from minicluster.verify.engine.parser import parse_expression, parse_query
from minicluster.verify.engine.queries import Plan, plan_of
from minicluster.verify.rules.model import Check, Rule, View

SOURCE = re.compile(r"\b(?:from|join)\s+(\w+)")
FINDING = ("offset", "topic", "partition", "broker", "old", "new", "number")


_Some = Callable[[Sequence[Row]], list[Row]]


@dataclass(frozen=True, slots=True)
class Counted:
    """One check over the rows of one run: judged, not promised, and the findings' columns."""

    looked_at: int
    not_promised: int
    findings: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class _Compiled:
    when: _Some
    promise: Callable[[Sequence[Row]], list[object]] | None
    bad: _Some | None
    columns: _Some

    def over(self, rows: Sequence[Row]) -> Counted:
        judged = self.when(rows)
        promised, skipped = judged, 0
        if self.promise is not None:
            held = self.promise(judged)
            promised = [row for row, holds in zip(judged, held, strict=True) if holds]
            skipped = sum(1 for holds in held if holds is False)
        bad = () if self.bad is None else self.bad(promised)
        return Counted(len(promised), skipped, tuple(self.columns(bad)))


class Views:
    """The views of rules over tables with given columns, each compiled on first use."""

    def __init__(self, views: Mapping[str, View], columns: Mapping[str, Sequence[str]]) -> None:
        self._views = views
        self._columns = dict(columns)
        self._plans: dict[str, Plan] = {}
        self._needs: dict[str, frozenset[str]] = {}
        self._checks: dict[tuple[Rule, Check], _Compiled] = {}

    def plan(self, name: str) -> Plan:
        """The plan of a view.

        Errors:  SqlError.
        """
        if name not in self._plans and self._views[name].fold is not None:
            self._plans[name] = self._folded(self._views[name])
        if name not in self._plans:
            for source in sources_of(self._views[name]):
                if source in self._views and source not in self._columns:
                    self._columns[source] = self.plan(source).columns
            self._plans[name] = plan_of(parse_query(self._views[name].sql), self._columns)
        return self._plans[name]

    def _folded(self, view: View) -> Plan:
        """The plan of a view that is a function; it sees rows as dictionaries."""
        fold, columns = view.fold, view.columns
        assert fold is not None

        def compute(tables: Callable[[str], list[Row]]) -> list[Row]:
            def dictionaries(name: str) -> list[Mapping[str, object]]:
                known = self._columns.get(name) or self.plan(name).columns
                return [dict(zip(known, row, strict=True)) for row in tables(name)]

            return [tuple(row.get(name) for name in columns) for row in fold(dictionaries)]

        return Plan(columns, compute)

    def check(self, rule: Rule, check: Check, rows: Sequence[Row]) -> Counted:
        """One check over the rows of its view.

        Errors:  SqlError.
        """
        key = (rule, check)
        if key not in self._checks:
            scope = Scope(tuple((check.view, name) for name in self.plan(check.view).columns))
            self._checks[key] = _compile(rule, check, scope)
        return self._checks[key].over(rows)

    def needs(self, name: str) -> frozenset[str]:
        """A view or table with all that it is computed from."""
        if name not in self._needs:
            found = {name}
            if name in self._views:
                if self._views[name].fold is not None:  # a function may read any
                    found |= self._columns.keys()
                for source in sources_of(self._views[name]):
                    found |= self.needs(source)
            self._needs[name] = frozenset(found)
        return self._needs[name]

    def has(self, name: str) -> bool:
        """It is a view, not a table."""
        return name in self._views


class Held:
    """The rows of tables and views of one run, each computed once and kept while it is needed.

    Shapes:  table: reads a table's rows; held: rows that are here already, in place of any view's.
    """

    def __init__(
        self,
        views: Views,
        table: Callable[[str], list[Row]],
        held: Mapping[str, list[Row]] | None = None,
    ) -> None:
        self._views = views
        self._table = table
        self._held: dict[str, list[Row]] = dict(held or {})

    def rows(self, name: str) -> list[Row]:
        """The rows of a table or view.

        Errors:  SqlError.
        """
        if name not in self._held:
            if self._views.has(name):
                self._held[name] = self._views.plan(name).rows(self.rows)
            else:
                self._held[name] = self._table(name)
        return self._held[name]

    def keep_for(self, views: Sequence[str]) -> None:
        """Drop the rows that none of these views needs."""
        needed = {name for view in views for name in self._views.needs(view)}
        for name in self._held.keys() - needed:
            del self._held[name]


def _compile(rule: Rule, check: Check, scope: Scope) -> _Compiled:
    promise = promise_of(rule, check)
    return _Compiled(
        when=rows_where(_parsed(check.when), scope),
        promise=None if promise is None else column_of(_parsed(promise), scope),
        bad=None if check.bad == "false" else rows_where(_parsed(check.bad), scope),
        columns=rows_of([_parsed(getattr(check, name)) for name in FINDING], scope),
    )


@lru_cache(maxsize=4096)
def _parsed(text: str) -> t.Expression:
    return parse_expression(text)


def promise_of(rule: Rule, check: Check) -> str | None:
    """The SQL condition under which a row's promise holds, None if it always does."""
    if check.promised is not None:
        return check.promised
    return None if rule.promised_from is None else f"mv >= {rule.promised_from}"


def sources_of(view: View) -> list[str]:
    """The tables and views that a view names."""
    if view.fold is not None:
        return list(view.reads)
    return list(_named_in(view.sql))


@lru_cache(maxsize=1024)
def _named_in(sql: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(SOURCE.findall(sql)))


def tables_of(view: str, views: Mapping[str, View]) -> set[str]:
    """The tables that a view is computed from, also by way of other views."""
    found: set[str] = set()
    for source in sources_of(views[view]):
        found |= tables_of(source, views) if source in views else {source}
    return found
