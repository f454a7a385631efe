"""The classes of the package, and which of the compiled ones may be native.

mypyc lays a native class out as a C structure. A class that is derived from an exception, an enum
or a pure class cannot be one; a native class declares that a pure class derives from it.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import EnumMeta
from pathlib import Path

from tests.compiled.modules import PACKAGE, PURE_BASES, module_name

ClassName = tuple[str, str]  # a module and a class in it


@dataclass(frozen=True, slots=True)
class Classes:
    """Classes that are not native, and those of which a class that is not native derives."""

    not_native: frozenset[ClassName]
    with_pure_subclass: frozenset[ClassName]


def find_classes(top: Path, compiled: Mapping[str, str]) -> Classes:
    """Read the classes of all files below a folder."""
    bases = dict(_bases(top))
    not_native = {*PURE_BASES, *_of_python(compiled)}
    while grown := {
        name for name, of in bases.items() if name not in not_native and not_native & {*of}
    }:
        not_native |= grown
    derived: set[ClassName] = set()
    waiting = [name for name in bases if name[0] not in compiled or name in not_native]
    while waiting:
        above = [base for base in bases.get(waiting.pop(), ()) if base not in derived]
        derived.update(above)
        waiting += above
    return Classes(frozenset(not_native), frozenset(derived))


def _of_python(compiled: Mapping[str, str]) -> Iterator[ClassName]:
    for module in compiled:
        for name, value in vars(importlib.import_module(module)).items():
            if not isinstance(value, type) or value.__module__ != module:
                continue
            if issubclass(value, BaseException) or isinstance(value, EnumMeta):
                yield module, name


def _bases(top: Path) -> Iterator[tuple[ClassName, list[ClassName]]]:
    for path in sorted((top / PACKAGE).rglob("*.py")):
        module = module_name(path.relative_to(top).as_posix())
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names_of = imported(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = (base_of(base, module, names_of) for base in node.bases)
                yield (module, node.name), [name for name in names if name is not None]


def imported(tree: ast.Module) -> dict[str, ClassName]:
    """The names that a module imports from the package."""
    found: dict[str, ClassName] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(PACKAGE):
            for alias in node.names:
                found[alias.asname or alias.name] = (str(node.module), alias.name)
    return found


def base_of(base: ast.expr, module: str, imported: Mapping[str, ClassName]) -> ClassName | None:
    """The class that a base names, where it is one of the package."""
    if isinstance(base, ast.Subscript):
        base = base.value
    if isinstance(base, ast.Name):
        return imported.get(base.id, (module, base.id))
    if isinstance(base, ast.Attribute) and isinstance(base.value, ast.Name):
        of = imported.get(base.value.id)
        return of and (".".join(of), base.attr)
    return None
