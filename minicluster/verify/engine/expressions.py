"""Expressions compiled to functions of a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.verify.engine import tree as t
from minicluster.verify.engine.functions import FUNCTIONS
from minicluster.verify.engine.parser import SqlError
from minicluster.verify.engine.values import cast, getter, struct_type

Row = tuple[Any, ...]
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


class _Compiler:
    """Writes an expression as Python: ``r`` is the row, names are functions and constants."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.names: dict[str, Any] = {}

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def source(self, node: t.Expression, variables: frozenset[str] = frozenset()) -> str:
        """The expression as Python.

        Errors:  SqlError for what the engine does not have.
        """
        match node:
            case t.Literal():
                return repr(node.value)
            case t.Column():
                return self._column(node.path, variables)
            case t.Field():
                return f"{self._constant(getter(node.name))}({self.source(node.value, variables)})"
            case t.Cast():
                return self._cast(node, variables)
            case t.Case():
                source = self.source(node.default, variables)
                for condition, value in reversed(node.whens):
                    test = self.source(condition, variables)
                    source = f"({self.source(value, variables)} if {test} else {source})"
                return source
            case t.Lambda():
                inner = self.source(node.body, variables | {node.name})
                return f"(lambda v_{node.name}: {inner})"
            case t.Call():
                return self._call(node, variables)
        raise SqlError(f"SQL: {type(node).__name__} does not belong here")

    def _column(self, path: tuple[str, ...], variables: frozenset[str]) -> str:
        if path[0] in variables:
            source, fields = f"v_{path[0]}", path[1:]
        else:
            index, fields = self._scope.find(path)
            source = f"r[{index}]"
        for field in fields:
            source = f"{self._constant(getter(field))}({source})"
        return source

    def _cast(self, node: t.Cast, variables: frozenset[str]) -> str:
        inner = self.source(node.value, variables)
        if node.kind not in ("int", "bigint", "string"):
            return inner
        if inner == "None":
            return inner
        return f"{self._constant(partial(cast, kind=node.kind, lenient=node.lenient))}({inner})"

    def _call(self, node: t.Call, variables: frozenset[str]) -> str:
        args = node.args
        if node.name == "named_struct":
            names = tuple(str(arg.value) for arg in args[::2] if isinstance(arg, t.Literal))
            return self._struct(names, args[1::2], variables)
        if node.name == "struct":
            paths = [arg.path[-1] for arg in args if isinstance(arg, t.Column)]
            return self._struct(tuple(paths), args, variables)
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise SqlError(f"SQL: there is no function {node.name} here")
        sources = ", ".join(self.source(arg, variables) for arg in args)
        if node.name == "is null":
            return f"({sources} is None)"
        return f"{self._constant(function)}({sources})"

    def _struct(
        self, names: tuple[str, ...], args: Sequence[t.Expression], variables: frozenset[str]
    ) -> str:
        sources = ", ".join(self.source(arg, variables) for arg in args)
        return f"{self._constant(struct_type(names))}({sources})"


def compiled(node: t.Expression, scope: Scope) -> Evaluate:
    """A function from a row to the value of an expression.

    Errors:  SqlError.
    """
    compiler = _Compiler(scope)
    source = compiler.source(node)
    function: Evaluate = eval(f"lambda r: {source}", compiler.names)
    return function


def row_of(nodes: Sequence[t.Expression], scope: Scope) -> Evaluate:
    """A function from a row to the row of several expressions.

    Errors:  SqlError.
    """
    compiler = _Compiler(scope)
    source = "".join(compiler.source(node) + "," for node in nodes)
    function: Evaluate = eval(f"lambda r: ({source})", compiler.names)
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
