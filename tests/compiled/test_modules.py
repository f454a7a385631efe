"""The modules of the compiled wheel are there; a quick test, without a compiler."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from tests.compiled.builds import ROOT
from tests.compiled.classes import ClassName, base_of, imported
from tests.compiled.modules import PURE_BASES, REPLACED, files, modules
from tests.house.sources import module_of, sources, tree_of


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


def test_no_pure_class_hides_an_attribute_of_a_compiled_one() -> None:
    """Native code reads its own field, where a slot or a value of a subclass has the name."""
    compiled, of = modules(), classes_of_the_checkout()
    found = []
    for (module, name), (node, _) in of.items():
        if module in compiled:
            continue
        own, above, waiting = _declared(node), set[str](), [(module, name)]
        while waiting:
            for base in of[waiting.pop()][1]:
                if base in of:
                    waiting.append(base)
                    if base[0] in compiled and base not in PURE_BASES:
                        above |= _fields(of[base][0])
        found += [f"{module}.{name}.{field}" for field in sorted(own & above)]
    assert found == []


def test_no_compiled_module_keeps_a_slice() -> None:
    """mypyc 2.4 takes the index of bytes for a number; ``value[begin:end]`` does the same."""
    trees = {file: ast.parse((ROOT / file).read_text("utf-8")) for file in modules().values()}
    kept = [
        f"{file}:{node.lineno}"
        for file, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "slice"
    ]
    assert kept == []


def classes_of_the_checkout() -> dict[ClassName, tuple[ast.ClassDef, list[ClassName]]]:
    """All classes of the package, with their bases."""
    found = {}
    for path in sources():
        tree, module = tree_of(path), module_of(path)
        names = imported(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = (base_of(base, module, names) for base in node.bases)
                found[module, node.name] = node, [base for base in bases if base is not None]
    return found


def _declared(node: ast.ClassDef) -> set[str]:
    """The slots and the values of a class."""
    names = set()
    for statement in node.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
                names |= {
                    str(one.value) for one in ast.walk(value) if isinstance(one, ast.Constant)
                }
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def _fields(node: ast.ClassDef) -> set[str]:
    """The fields of a native class: what it declares, and what its methods assign."""
    assigned = {
        target.attr
        for target in ast.walk(node)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and ast.unparse(target.value) == "self"
    }
    return assigned | (_declared(node) - {"__slots__"})


def _functions_with_self(node: ast.ClassDef) -> Iterator[int]:
    for method in node.body:
        for inner in ast.walk(method):
            if isinstance(inner, ast.FunctionDef | ast.Lambda) and inner is not method:
                used = {name.id for name in ast.walk(inner) if isinstance(name, ast.Name)}
                if "self" in used:
                    yield inner.lineno
