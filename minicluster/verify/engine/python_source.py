"""Expressions of SQL written as Python: ``r`` is the row, ``k…`` are functions and constants.

The operators with three truth values are written out, since a call costs more than they do. A
condition whose unknown counts as false is written as a *truth*, which needs no third value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from minicluster.verify.engine import tree as t
from minicluster.verify.engine.functions import FUNCTIONS
from minicluster.verify.engine.parser import SqlError
from minicluster.verify.engine.values import cast, getter, struct_type

Find = Callable[[tuple[str, ...]], tuple[int, tuple[str, ...]]]
_ATOM = re.compile(r"r\[\d+\]|v_\w+")
_COMPARED = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SIGNS = {**_COMPARED, "+": "+", "-": "-", "*": "*"}
_NULL = "None"
_Variables = frozenset[str]
_NONE: _Variables = frozenset()


class PythonSource:
    """Writes expressions over the columns that ``find`` has; ``names`` are what they refer to."""

    def __init__(self, find: Find) -> None:
        self._find = find
        self.names: dict[str, Any] = {}
        self._held = 0

    def row(self, nodes: Sequence[t.Expression]) -> str:
        """A tuple of expressions.

        Errors:  SqlError.
        """
        return "(" + "".join(self.value(node) + "," for node in nodes) + ")"

    def value(self, node: t.Expression, variables: _Variables = _NONE) -> str:
        """The expression with its three truth values.

        Errors:  SqlError for what the engine does not have.
        """
        match node:
            case t.Literal():
                return repr(node.value)
            case t.Column():
                return self._column(node.path, variables)
            case t.Field():
                return f"{self._constant(getter(node.name))}({self.value(node.value, variables)})"
            case t.Cast():
                return self._cast(node, variables)
            case t.Case():
                source = self.value(node.default, variables)
                for condition, value in reversed(node.whens):
                    test = self.truth(condition, variables)
                    source = f"({self.value(value, variables)} if {test} else {source})"
                return source
            case t.Lambda():
                inner = self.value(node.body, variables | {node.name})
                return f"(lambda v_{node.name}: {inner})"
            case t.Call():
                return self._call(node, variables)
        raise SqlError(f"SQL: {type(node).__name__} does not belong here")

    def truth(self, node: t.Expression, variables: _Variables = _NONE) -> str:
        """A condition that holds in Python if it is true in SQL, and not if it is unknown.

        Errors:  SqlError.
        """
        if not isinstance(node, t.Call):
            return self.value(node, variables)
        if node.name in ("and", "or"):
            left, right = (self.truth(arg, variables) for arg in node.args)
            return f"({left} {node.name} {right})"
        if node.name == "not":
            return f"({self.value(node.args[0], variables)} is False)"
        if node.name in _COMPARED:
            left, right = (self.value(arg, variables) for arg in node.args)
            if _NULL in (left, right):
                return "False"
            (first, is_left), (second, is_right) = self._not_null(left), self._not_null(right)
            tests = [*is_left, *is_right, f"{first} {_COMPARED[node.name]} {second}"]
            return f"({' and '.join(tests)})"
        return self.value(node, variables)

    # --- parts ------------------------------------------------------------------------------

    def _constant(self, value: Any) -> str:
        name = f"k{len(self.names)}"
        self.names[name] = value
        return name

    def _hold(self) -> str:
        self._held += 1
        return f"t{self._held}"

    def _tested(self, source: str, operator: str) -> tuple[str, list[str]]:
        """The name of a value, and the test of it, which comes first; a literal needs none."""
        if _is_literal(source):
            return source, []
        if _ATOM.fullmatch(source):
            return source, [f"{source} {operator} None"]
        name = self._hold()
        return name, [f"({name} := {source}) {operator} None"]

    def _null(self, source: str) -> tuple[str, list[str]]:
        return self._tested(source, "is")

    def _not_null(self, source: str) -> tuple[str, list[str]]:
        return self._tested(source, "is not")

    def _column(self, path: tuple[str, ...], variables: _Variables) -> str:
        if path[0] in variables:
            source, fields = f"v_{path[0]}", path[1:]
        else:
            index, fields = self._find(path)
            source = f"r[{index}]"
        for field in fields:
            source = f"{self._constant(getter(field))}({source})"
        return source

    def _cast(self, node: t.Cast, variables: _Variables) -> str:
        inner = self.value(node.value, variables)
        if node.kind not in ("int", "bigint", "string") or inner == _NULL:
            return inner
        return f"{self._constant(partial(cast, kind=node.kind, lenient=node.lenient))}({inner})"

    def _call(self, node: t.Call, variables: _Variables) -> str:
        args = node.args
        if node.name == "named_struct":
            names = tuple(str(arg.value) for arg in args[::2] if isinstance(arg, t.Literal))
            return self._struct(names, args[1::2], variables)
        if node.name == "struct":
            paths = [arg.path[-1] for arg in args if isinstance(arg, t.Column)]
            return self._struct(tuple(paths), args, variables)
        sources = [self.value(arg, variables) for arg in args]
        written = self._operator(node.name, sources)
        if written is not None:
            return written
        function = FUNCTIONS.get(node.name)
        if function is None:
            raise SqlError(f"SQL: there is no function {node.name} here")
        return f"{self._constant(function)}({', '.join(sources)})"

    def _struct(
        self, names: tuple[str, ...], args: Sequence[t.Expression], variables: _Variables
    ) -> str:
        sources = ", ".join(self.value(arg, variables) for arg in args)
        return f"{self._constant(struct_type(names))}({sources})"

    def _operator(self, name: str, sources: Sequence[str]) -> str | None:
        """An operator written out; None for a function that is called."""
        if name == "is null":
            return f"({sources[0]} is None)"
        if name == "<=>":
            return f"({sources[0]} == {sources[1]})"
        if name in _SIGNS:
            if _NULL in sources:
                return _NULL
            (left, is_left), (right, is_right) = map(self._null, sources)
            return _unless([*is_left, *is_right], f"{left} {_SIGNS[name]} {right}")
        if name in ("and", "or"):
            return self._both(name, *sources)
        if name in ("not", "size"):
            if sources[0] == _NULL:
                return _NULL
            value, is_null = self._null(sources[0])
            return _unless(is_null, f"not {value}" if name == "not" else f"len({value})")
        if name == "in" and all(map(_is_literal, sources[1:])):
            value, is_null = self._null(sources[0])
            return _unless(is_null, f"{value} in ({', '.join(sources[1:])},)")
        if name == "coalesce":
            return self._coalesce(sources)
        return None

    def _both(self, name: str, left: str, right: str) -> str:
        """The value that decides alone, null if one is null, else the other truth value."""
        decides, other = ("False", "True") if name == "and" else ("True", "False")
        first, second = self._hold(), self._hold()
        return (
            f"({decides} if ({first} := {left}) is {decides} or ({second} := {right}) is {decides} "
            f"else None if {first} is None or {second} is None else {other})"
        )

    def _coalesce(self, sources: Sequence[str]) -> str:
        source = sources[-1]
        for earlier in reversed(sources[:-1]):
            value, tests = self._not_null(earlier)
            source = f"({value} if {tests[0]} else {source})" if tests else value
        return source


def _is_literal(source: str) -> bool:
    """A number, a text or a truth value; not null."""
    return source[0] in "0123456789\"'" or source in ("True", "False")


def _unless(nulls: Sequence[str], source: str) -> str:
    return f"(None if {' or '.join(nulls)} else {source})" if nulls else f"({source})"
