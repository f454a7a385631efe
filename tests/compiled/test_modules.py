"""The modules of the compiled wheel are there; a quick test, without a compiler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.compiled.builds import ROOT
from tests.compiled.modules import PURE_BASES, REPLACED, files, modules


def test_each_module_of_the_compiled_wheel_is_a_file() -> None:
    """A module that moves is renamed in ``tests/compiled/modules.py`` as well."""
    assert [file for file in modules().values() if not (ROOT / file).is_file()] == []


def test_each_text_that_the_compiled_wheel_replaces_is_there() -> None:
    gone = [
        (file, before)
        for file, changes in REPLACED.items()
        for before, _ in changes
        if before not in (ROOT / file).read_text(encoding="utf-8")
    ]
    assert gone == []


def test_no_function_inside_a_method_of_an_actor_uses_self() -> None:
    """mypyc 2.4 fails on one in a class that is not native; a method does the same."""
    trees = {file: ast.parse((ROOT / file).read_text(encoding="utf-8")) for file in files("actors")}
    classes = [(file, node) for file in trees for node in trees[file].body]
    names = {name for _, name in PURE_BASES}
    inside: set[str] = set()
    for _ in "a base", "its subclasses", "theirs":
        for file, node in classes:
            if (
                isinstance(node, ast.ClassDef)
                and {ast.unparse(base) for base in node.bases} & names
            ):
                names.add(node.name)
                inside |= {f"{file}:{line}" for line in _functions_with_self(node)}
    assert len(names) > len(PURE_BASES)
    assert inside == set()


def _functions_with_self(node: ast.ClassDef) -> Iterator[int]:
    for method in node.body:
        for inner in ast.walk(method):
            if isinstance(inner, ast.FunctionDef | ast.Lambda) and inner is not method:
                used = {name.id for name in ast.walk(inner) if isinstance(name, ast.Name)}
                if "self" in used:
                    yield inner.lineno
