"""The checks of rules over the rows of their views, run by run."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.engine import tree as t
from minicluster.verify.engine.expressions import Evaluate, Row, Scope, compiled, row_of
from minicluster.verify.engine.parser import parse_expression, parse_query
from minicluster.verify.engine.queries import Plan, plan_of
from minicluster.verify.rules.model import Check, Rule, View

SOURCE = re.compile(r"\b(?:from|join)\s+(\w+)")
FINDING = ("offset", "topic", "partition", "broker", "old", "new", "number")


@dataclass(frozen=True, slots=True)
class Counted:
    """One check over the rows of one run: judged, not promised, and the findings' columns."""

    looked_at: int
    not_promised: int
    findings: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class _Compiled:
    when: Evaluate
    promise: Evaluate | None
    bad: Evaluate | None
    columns: Evaluate

    def over(self, rows: Sequence[Row]) -> Counted:
        judged = [row for row in rows if self.when(row)]
        promised = judged
        if self.promise is not None:
            promised = [row for row in judged if self.promise(row)]
        skipped = 0
        if self.promise is not None and len(promised) < len(judged):
            skipped = sum(1 for row in judged if self.promise(row) is False)
        bad = () if self.bad is None else [row for row in promised if self.bad(row)]
        return Counted(len(promised), skipped, tuple(map(self.columns, bad)))


class Views:
    """The views of rules over tables with given columns, each compiled on first use."""

    def __init__(self, views: Mapping[str, View], columns: Mapping[str, Sequence[str]]) -> None:
        self._views = views
        self._columns = dict(columns)
        self._plans: dict[str, Plan] = {}
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

    def over(self, tables: Mapping[str, list[Row]]) -> Callable[[str], list[Row]]:
        """The rows of tables and views, each view computed once."""
        held: dict[str, list[Row]] = dict(tables)

        def rows(name: str) -> list[Row]:
            if name not in held:
                held[name] = self.plan(name).rows(rows)
            return held[name]

        return rows

    def check(self, rule: Rule, check: Check, rows: Sequence[Row]) -> Counted:
        """One check over the rows of its view.

        Errors:  SqlError.
        """
        key = (rule, check)
        if key not in self._checks:
            scope = Scope(tuple((check.view, name) for name in self.plan(check.view).columns))
            self._checks[key] = _compile(rule, check, scope)
        return self._checks[key].over(rows)


def _compile(rule: Rule, check: Check, scope: Scope) -> _Compiled:
    def function(text: str) -> Evaluate:
        return compiled(_parsed(text), scope)

    promise = promise_of(rule, check)
    return _Compiled(
        when=function(check.when),
        promise=None if promise is None else function(promise),
        bad=None if check.bad == "false" else function(check.bad),
        columns=row_of([_parsed(getattr(check, name)) for name in FINDING], scope),
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
    return list(dict.fromkeys(SOURCE.findall(view.sql)))


def tables_of(view: str, views: Mapping[str, View]) -> set[str]:
    """The tables that a view is computed from, also by way of other views."""
    found: set[str] = set()
    for source in sources_of(views[view]):
        found |= tables_of(source, views) if source in views else {source}
    return found
