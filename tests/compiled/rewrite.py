"""Rewrites a module so that mypyc compiles its dataclasses into native classes.

mypyc has the fields of a ``dataclasses.dataclass`` in a dictionary, and none of the package's own
``lazy_dataclass``. Written out, with an ``__init__`` and comparisons of its own, the same class is
a C structure: a field is read without a look-up, an instance is made without a call of Python.
"""

from __future__ import annotations

import ast
import dataclasses
import importlib
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

from tests.compiled.classes import Classes
from tests.compiled.differences import mend_differences
from tests.compiled.modules import REPLACED

DECLARED = "minicluster._declared"
IMPORTS = f"""
from typing import Any, ClassVar, Literal
from mypy_extensions import mypyc_attr
from {DECLARED} import MISSING as _MISSING, declared as _declared, field as _field
"""
OF_DATACLASSES = ("asdict", "fields", "replace")  # mypyc has them for its own dataclasses
LITERAL = {"dict": "{}", "list": "[]"}
ORDER = {"__lt__": "<", "__le__": "<=", "__gt__": ">", "__ge__": ">="}
LITERALS = (type(None), bool, int, str, float, bytes)


def rewrite(path: Path, file: str, module: str, classes: Classes) -> str:
    """The text of a module for mypyc."""
    text = path.read_text(encoding="utf-8")
    for before, after in REPLACED.get(file, ()):
        if before not in text:
            raise SystemExit(f"{file}: {before.strip()!r} is gone; mend tests/compiled/modules.py")
        text = text.replace(before, after)
    tree = ast.parse(text)
    mend_differences(tree)
    loaded = importlib.import_module(module)
    body: list[ast.stmt] = []
    for node in tree.body:
        body.append(node)
        if isinstance(node, ast.ClassDef):
            body += _rewrite_class(node, getattr(loaded, node.name), module, classes)
        elif isinstance(node, ast.ImportFrom) and node.module == "dataclasses":
            body += _redirected(node)
    at = _after_future(body)
    tree.body = body[:at] + ast.parse(IMPORTS).body + body[at:]
    return ast.unparse(ast.fix_missing_locations(tree))


def _after_future(body: list[ast.stmt]) -> int:
    """The place after the docstring and the imports from ``__future__``."""
    for at, node in enumerate(body):
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not (docstring or future):
            return at
    return len(body)


def _redirected(node: ast.ImportFrom) -> list[ast.stmt]:
    """Take functions on dataclasses from the compiled package's own module."""
    moved = [alias for alias in node.names if alias.name in OF_DATACLASSES]
    if not moved:
        return []
    kept = [alias for alias in node.names if alias not in moved]
    if kept:
        node.names = kept
        return [ast.ImportFrom(module=DECLARED, names=moved, level=0)]
    node.module = DECLARED
    return []


def _rewrite_class(node: ast.ClassDef, cls: Any, module: str, classes: Classes) -> list[ast.stmt]:
    """Change a class in place; the statements that follow it."""
    if (module, node.name) in classes.not_native:
        node.decorator_list.append(_expression("mypyc_attr(native_class=False)"))
        return []
    if (module, node.name) in classes.with_pure_subclass:
        node.decorator_list.append(_expression("mypyc_attr(allow_interpreted_subclasses=True)"))
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "dataclass":
            node.decorator_list.remove(decorator)
            options = {str(k.arg): ast.literal_eval(k.value) for k in decorator.keywords}
            return _NativeClass(node, cls, options).write()
    return []


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def _is_field(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field")


class _NativeClass:
    """One dataclass on its way to a native class."""

    def __init__(self, node: ast.ClassDef, cls: Any, options: dict[str, bool]) -> None:
        self._node = node
        self._name = node.name
        self._fields: tuple[Field[Any], ...] = dataclasses.fields(cls)
        self._post_init = hasattr(cls, "__post_init__")
        self._frozen = options.get("frozen", False)
        self._eq = options.get("eq", True)
        self._order = options.get("order", False)
        self._own: dict[str, ast.AnnAssign] = {}
        self._given = {s.name for s in node.body if isinstance(s, ast.FunctionDef)}

    def write(self) -> list[ast.stmt]:
        """Write the methods into the class; the statement that follows declares its fields."""
        body = [kept for node in self._node.body for kept in self._without_value(node)]
        texts = {"__init__": self._init()}
        if self._eq:
            texts["__eq__"] = self._comparison()
            if self._frozen:
                texts["__hash__"] = (
                    f"def __hash__(self) -> int:\n return hash({self._values('self')})"
                )
        if self._order:
            texts |= {name: self._ordering(name, sign) for name, sign in ORDER.items()}
        for name, text in texts.items():
            if name not in self._given:
                body += ast.parse(text).body
        names = [field.name for field in self._fields if not field.kw_only]
        if names:
            types = ", ".join(f"Literal[{name!r}]" for name in names)
            match = f"__match_args__: ClassVar[tuple[{types}]] = {tuple(names)!r}"
            body += ast.parse(match).body
        self._node.body = body or [ast.Pass()]
        own = ", ".join(f"{f.name!r}: {self._made(f)}" for f in self._fields if f.name in self._own)
        given = f"set({sorted(self._given)!r})"
        options = f"frozen={self._frozen}, eq={self._eq}, given={given}"
        return ast.parse(f"_declared({self._name}, {{{own}}}, {options})").body

    def _without_value(self, node: ast.stmt) -> list[ast.stmt]:
        """A statement of the class; a field keeps its type only."""
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            return [node]
        annotation = ast.unparse(node.annotation)
        if annotation.startswith("ClassVar"):
            return [node]
        if annotation == "KW_ONLY":
            return []
        self._own[node.target.id] = node
        return [ast.AnnAssign(target=node.target, annotation=node.annotation, simple=1)]

    def _init(self) -> str:
        by_position = [self._parameter(field) for field in self._fields if not field.kw_only]
        by_name = [self._parameter(field) for field in self._fields if field.kw_only]
        parameters = ["self", *by_position, *(["*", *by_name] if by_name else [])]
        lines = []
        for field in self._fields:
            name = value = field.name
            if field.default_factory is not MISSING:
                text = self._factory(field)
                made = LITERAL.get(text, f"({text})()")
                value = f"{made} if {name} is _MISSING else {name}"
            lines.append(f"self.{name} = {value}")
        if self._post_init:
            lines.append("self.__post_init__()")
        return "\n ".join([f"def __init__({', '.join(parameters)}) -> None:", *lines, "pass"])

    def _parameter(self, field: Field[Any]) -> str:
        own = self._own.get(field.name)
        annotation = "Any" if own is None else ast.unparse(own.annotation)
        if field.default_factory is not MISSING:
            return f"{field.name}: Any = _MISSING"
        if field.default is MISSING:
            return f"{field.name}: {annotation}"
        return f"{field.name}: {annotation} = {self._default(field)}"

    def _default(self, field: Field[Any]) -> str:
        if type(field.default) in LITERALS or field.default == ():
            return repr(field.default)
        own = self._own.get(field.name)
        if own is None or own.value is None or _is_field(own.value):
            raise SystemExit(f"{self._name}.{field.name}: a default that cannot be written out")
        return ast.unparse(own.value)

    def _factory(self, field: Field[Any]) -> str:
        """The text of a factory: a name or a lambda."""
        own = self._own.get(field.name)
        if own is not None and isinstance(own.value, ast.Call):
            for keyword in own.value.keywords:
                if keyword.arg == "default_factory":
                    return ast.unparse(keyword.value)
        inherited: Any = field.default_factory
        return str(inherited.__name__)

    def _comparison(self) -> str:
        compared = (f"self.{f.name} == other.{f.name}" for f in self._fields if f.compare)
        return (
            "def __eq__(self, other: object) -> bool:\n"
            f" if not isinstance(other, {self._name}) or type(other) is not type(self):\n"
            "  return NotImplemented\n"
            f" return bool({' and '.join(compared) or 'True'})"
        )

    def _ordering(self, name: str, sign: str) -> str:
        values = f"{self._values('self')} {sign} {self._values('other')}"
        return f"def {name}(self, other: {self._name}) -> bool:\n return {values}"

    def _values(self, of: str) -> str:
        return "(" + "".join(f"{of}.{f.name}, " for f in self._fields if f.compare) + ")"

    def _made(self, field: Field[Any]) -> str:
        """The field again, for ``fields`` and for a pure subclass."""
        options = [f"kw_only={field.kw_only}"]
        if field.default_factory is not MISSING:
            options.append(f"default_factory={self._factory(field)}")
        elif field.default is not MISSING:
            options.append(f"default={self._default(field)}")
        if not field.repr:
            options.append("repr=False")
        if not field.compare:
            options.append("compare=False")
        return f"_field({', '.join(options)})"
