"""Expressions compiled to functions of a row, or of all rows at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.engine import tree as t
from minicluster.verify.engine.parser import SqlError
from minicluster.verify.engine.python_source import PythonSource

Row = tuple[Any, ...]
Rows = list[Row]
Evaluate = Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class Scope:
    """The columns of a row: each with the table that it is from and its name."""

    columns: tuple[tuple[str, str], ...]

    def find(self, path: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        """The place of a column, and the fields of a struct that the path names behind it.

        Errors:  SqlError for a name that is no column.
        """
        if len(path) > 1 and (path[0], path[1]) in self.columns:
            return self.columns.index((path[0], path[1])), path[2:]
        for index, (_, name) in enumerate(self.columns):
            if name == path[0]:
                return index, path[1:]
        raise SqlError(f"SQL: there is no column {'.'.join(path)}")

    def names(self, star: t.Star) -> list[tuple[int, str]]:
        """The columns that a star represents."""
        return [
            (index, name)
            for index, (table, name) in enumerate(self.columns)
            if star.table in (None, table) and name not in star.without and name[0] != "#"
        ]

    def with_columns(self, names: Sequence[str]) -> Scope:
        """The same with more columns, which belong to no table."""
        return Scope((*self.columns, *(("", name) for name in names)))


def compiled(node: t.Expression, scope: Scope) -> Evaluate:
    """A function from a row to the value of an expression.

    Errors:  SqlError.
    """
    python = PythonSource(scope.find)
    function: Evaluate = eval(f"lambda r: {python.value(node)}", python.names)
    return function


def row_of(nodes: Sequence[t.Expression], scope: Scope) -> Evaluate:
    """A function from a row to the row of several expressions.

    Errors:  SqlError.
    """
    python = PythonSource(scope.find)
    function: Evaluate = eval(f"lambda r: {python.row(nodes)}", python.names)
    return function


def column_of(node: t.Expression, scope: Scope) -> Callable[[Sequence[Row]], list[Any]]:
    """A function from rows to the values of an expression.

    Errors:  SqlError.
    """
    python = PythonSource(scope.find)
    source = f"lambda rows: [{python.value(node)} for r in rows]"
    function: Callable[[Sequence[Row]], list[Any]] = eval(source, python.names)
    return function


def rows_of(nodes: Sequence[t.Expression], scope: Scope) -> Callable[[Sequence[Row]], Rows]:
    """A function from rows to the rows of several expressions.

    Errors:  SqlError.
    """
    python = PythonSource(scope.find)
    source = f"lambda rows: [{python.row(nodes)} for r in rows]"
    function: Callable[[Sequence[Row]], Rows] = eval(source, python.names)
    return function


def rows_where(node: t.Expression, scope: Scope) -> Callable[[Sequence[Row]], Rows]:
    """A function from rows to those of which a condition is true.

    Errors:  SqlError.
    """
    python = PythonSource(scope.find)
    source = f"lambda rows: [r for r in rows if {python.truth(node)}]"
    function: Callable[[Sequence[Row]], Rows] = eval(source, python.names)
    return function


def parts(node: t.Expression) -> tuple[t.Expression, ...]:
    """The expressions right inside one."""
    match node:
        case t.Call():
            return node.args
        case t.Case():
            return (*(each for pair in node.whens for each in pair), node.default)
        case t.Cast() | t.Field() | t.InQuery():
            return (node.value,)
        case t.Lambda():
            return (node.body,)
    return ()


def replaced(
    node: t.Expression, change: Callable[[t.Expression], t.Expression | None]
) -> t.Expression:
    """The expression with every part that ``change`` has something else for."""
    other = change(node)
    if other is not None:
        return other

    def again(one: t.Expression) -> t.Expression:
        return replaced(one, change)

    match node:
        case t.Call():
            return t.Call(node.name, tuple(map(again, node.args)), node.distinct)
        case t.Case():
            whens = tuple((again(when), again(then)) for when, then in node.whens)
            return t.Case(whens, again(node.default))
        case t.Cast():
            return t.Cast(again(node.value), node.kind, node.lenient)
        case t.Field():
            return t.Field(again(node.value), node.name)
        case t.Lambda():
            return t.Lambda(node.name, again(node.body))
    return node
