"""Queries compiled to plans, which compute their rows from tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.engine import tree as t
from minicluster.verify.engine.expressions import (
    Row,
    Rows,
    Scope,
    column_of,
    compiled,
    parts,
    replaced,
    row_of,
    rows_of,
    rows_where,
)
from minicluster.verify.engine.parser import SqlError
from minicluster.verify.engine.windows import AGGREGATES, Windows, aggregate

Tables = Callable[[str], Rows]
Compute = Callable[[Tables], Rows]
_GENERATORS = ("explode", "inline")


@dataclass(frozen=True, slots=True)
class Plan:
    """A compiled query: the columns of its rows, and how they are computed."""

    columns: tuple[str, ...]
    rows: Compute


def plan_of(query: t.Query, columns: Mapping[str, Sequence[str]]) -> Plan:
    """Compile a query over tables with these columns.

    Errors:  SqlError.
    """
    if isinstance(query, t.Union):
        plans = [plan_of(part, columns) for part in query.parts]
        return Plan(
            plans[0].columns,
            lambda tables: [row for plan in plans for row in plan.rows(tables)],
        )
    return _Select(query, columns).plan()


def _source(source: t.Source, columns: Mapping[str, Sequence[str]]) -> tuple[Scope, Compute]:
    match source:
        case t.Named():
            if source.name not in columns:
                raise SqlError(f"SQL: there is no table {source.name}")
            names = columns[source.name]
            scope = Scope(tuple((source.alias, name) for name in names))
            return scope, lambda tables: tables(source.name)
        case t.Derived():
            plan = plan_of(source.query, columns)
            return Scope(tuple((source.alias, name) for name in plan.columns)), plan.rows
    return _join(source, columns)


def _conjuncts(node: t.Expression) -> Iterable[t.Expression]:
    if isinstance(node, t.Call) and node.name == "and":
        for arg in node.args:
            yield from _conjuncts(arg)
    else:
        yield node


def _fits(node: t.Expression, scope: Scope) -> bool:
    """Every column of an expression is in a scope, by its table's name."""
    if isinstance(node, t.Column):
        return node.path[:2] in scope.columns
    return all(_fits(part, scope) for part in parts(node))


def _join(source: t.Join, columns: Mapping[str, Sequence[str]]) -> tuple[Scope, Compute]:
    left, left_rows = _source(source.left, columns)
    right, right_rows = _source(source.right, columns)
    keys: list[tuple[t.Expression, t.Expression]] = []
    rest: list[t.Expression] = []
    for one in _conjuncts(source.on):
        sides = one.args if isinstance(one, t.Call) and one.name == "=" else ()
        if sides and _fits(sides[0], left) and _fits(sides[1], right):
            keys.append((sides[0], sides[1]))
        elif sides and _fits(sides[1], left) and _fits(sides[0], right):
            keys.append((sides[1], sides[0]))
        else:
            rest.append(one)
    both = Scope(left.columns + right.columns)
    left_keys = rows_of([one for one, _ in keys], left)
    right_keys = rows_of([one for _, one in keys], right)
    tests = [rows_where(one, both) for one in rest]
    nothing = (None,) * len(right.columns)

    def compute(tables: Tables) -> Rows:
        found: dict[Row, Rows] = {}
        rows = right_rows(tables)
        for key, row in zip(right_keys(rows), rows, strict=True):
            if None not in key:
                found.setdefault(key, []).append(row)
        joined: Rows = []
        rows = left_rows(tables)
        for key, row in zip(left_keys(rows), rows, strict=True):
            pairs = [row + other for other in found.get(key, ())]
            for test in tests:
                pairs = test(pairs)
            if pairs:
                joined += pairs
            elif source.outer:
                joined.append(row + nothing)
        return joined

    return both, compute


class _Select:
    """Compiles one select: source, where, groups, windows, columns, generators."""

    def __init__(self, query: t.Select, columns: Mapping[str, Sequence[str]]) -> None:
        self._query = query
        self._columns = columns
        self._scope, self._rows = _source(query.source, columns)

    def plan(self) -> Plan:
        """The plan of the select.

        Errors:  SqlError.
        """
        self._where()
        items = [(value, _name(value, alias)) for value, alias in self._query.items]
        if self._query.group is not None:
            items = self._group(items)
        items = self._windows(items)
        return self._project(items)

    # --- where ------------------------------------------------------------------------------

    def _where(self) -> None:
        if self._query.where is None:
            return
        before = self._rows
        tests = [self._test(one) for one in _conjuncts(self._query.where)]

        def compute(tables: Tables) -> Rows:
            rows = before(tables)
            for test in tests:
                rows = test(tables, rows)
            return rows

        self._rows = compute

    def _test(self, node: t.Expression) -> Callable[[Tables, Rows], Rows]:
        if isinstance(node, t.InQuery):
            plan = plan_of(node.query, self._columns)
            values = column_of(node.value, self._scope)

            def among(tables: Tables, rows: Rows) -> Rows:
                wanted = {row[0] for row in plan.rows(tables)} - {None}
                return [
                    row for row, value in zip(rows, values(rows), strict=True) if value in wanted
                ]

            return among
        where = rows_where(node, self._scope)
        return lambda tables, rows: where(rows)

    # --- groups and windows -----------------------------------------------------------------

    def _group(self, items: list[tuple[t.Expression, str]]) -> list[tuple[t.Expression, str]]:
        scope, before = self._scope, self._rows
        calls: list[t.Call] = []
        having = self._query.having

        def change(node: t.Expression) -> t.Expression | None:
            if isinstance(node, t.Call) and node.name in AGGREGATES:
                calls.append(node)
                return t.Column((f"#a{len(calls) - 1}",))
            return node if isinstance(node, t.Window) else None

        items = [(replaced(value, change), name) for value, name in items]
        kept = None if having is None else replaced(having, change)
        functions = [aggregate(call, scope) for call in calls]
        keys = rows_of(self._query.group or (), scope)
        self._scope = scope.with_columns([f"#a{index}" for index in range(len(calls))])
        where = None if kept is None else rows_where(kept, self._scope)

        def compute(tables: Tables) -> Rows:
            groups: dict[Row, Rows] = {}
            rows = before(tables)
            for key, row in zip(keys(rows), rows, strict=True):
                groups.setdefault(key, []).append(row)
            made = [
                some[0] + tuple(function(some) for function in functions)
                for some in groups.values()
            ]
            return made if where is None else where(made)

        self._rows = compute
        return items

    def _windows(self, items: list[tuple[t.Expression, str]]) -> list[tuple[t.Expression, str]]:
        found: list[t.Window] = []

        def change(node: t.Expression) -> t.Expression | None:
            if not isinstance(node, t.Window):
                return None
            if node not in found:
                found.append(node)
            return t.Column((f"#w{found.index(node)}",))

        items = [(replaced(value, change), name) for value, name in items]
        if not found:
            return items
        windows, before = Windows(found, self._query.windows, self._scope), self._rows
        self._scope = self._scope.with_columns([f"#w{index}" for index in range(len(found))])

        def compute(tables: Tables) -> Rows:
            rows = before(tables)
            columns = windows.columns(rows)
            return [row + more for row, more in zip(rows, zip(*columns, strict=True), strict=True)]

        self._rows = compute
        return items

    # --- columns ----------------------------------------------------------------------------

    def _project(self, items: list[tuple[t.Expression, str]]) -> Plan:
        names: list[str] = []
        nodes: list[t.Expression] = []
        generator: tuple[int, t.Call] | None = None
        width = 1
        for value, name in items:
            if isinstance(value, t.Star):
                for index, column in self._scope.names(value):
                    names.append(column)
                    table, own = self._scope.columns[index]
                    nodes.append(t.Column((table, own) if table else (own,)))
            elif isinstance(value, t.Call) and value.name in _GENERATORS:
                generator = len(names), value
                fields = [name] if value.name == "explode" else _fields(value)
                names += fields
                width = len(fields)
            else:
                names.append(name)
                nodes.append(value)
        before = self._rows
        if generator is None:
            return Plan(tuple(names), self._distinct(before, rows_of(nodes, self._scope)))
        at, call = generator
        project = row_of(nodes, self._scope)
        generate = compiled(call.args[0], self._scope)
        is_inline = call.name == "inline"

        def compute(tables: Tables) -> Rows:
            made: Rows = []
            for row in before(tables):
                values = generate(row)
                if not values:
                    continue
                kept = project(row)
                head, tail = kept[:at], kept[at:]
                for value in values:
                    if is_inline:
                        made.append(head + ((None,) * width if value is None else value) + tail)
                    else:
                        made.append((*head, value, *tail))
            return made

        return Plan(tuple(names), compute)

    def _distinct(self, before: Compute, project: Callable[[Rows], Rows]) -> Compute:
        if not self._query.distinct:
            return lambda tables: project(before(tables))
        return lambda tables: list(dict.fromkeys(project(before(tables))))


def _name(value: t.Expression, alias: str | None) -> str:
    if alias is not None:
        return alias
    if isinstance(value, t.Column):
        return value.path[-1]
    if isinstance(value, t.Field):
        return value.name
    return "#unnamed"


def _fields(node: t.Expression) -> list[str]:
    """The fields of the structs that an expression makes an array of.

    Errors:  SqlError where it names none.
    """
    waiting = [node]
    while waiting:
        one = waiting.pop(0)
        if isinstance(one, t.Call) and one.name == "named_struct":
            return [str(arg.value) for arg in one.args[::2] if isinstance(arg, t.Literal)]
        waiting += parts(one)
    raise SqlError("SQL: inline needs an array of named structs")
