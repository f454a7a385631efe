"""Rewrites code that mypyc 2.4 compiles into something else than Python does."""

from __future__ import annotations

import ast

LOCKED = "one_at_a_time"


def mend_differences(tree: ast.Module) -> None:
    """Change a module in place."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            node.body = [_method(statement, tree) or statement for statement in node.body]
    for inner in ast.walk(tree):
        if isinstance(inner, ast.FunctionDef):
            _rename_errors(inner)
        elif isinstance(inner, ast.Compare):
            _mend_membership(inner)


def _mend_membership(node: ast.Compare) -> None:
    """Write ``x in (a, *b)`` as ``x in tuple((a, *b))``: mypyc compares with ``b`` itself."""
    if not isinstance(node.ops[0], ast.In | ast.NotIn):
        return
    of = node.comparators[0]
    elements = of.elts if isinstance(of, ast.Tuple | ast.List | ast.Set) else []
    if any(isinstance(element, ast.Starred) for element in elements):
        node.comparators[0] = ast.Call(func=ast.Name("tuple"), args=[of], keywords=[])


def _rename_errors(function: ast.FunctionDef) -> None:
    """Give each error of a function a name of its own: mypyc has one type for each name."""
    handlers = [node for node in ast.walk(function) if isinstance(node, ast.ExceptHandler)]
    for number, handler in enumerate(handlers):
        name = handler.name
        if name is None or name.startswith("_error"):
            continue
        handler.name = f"_error{number}_{name}"
        for inner in (inner for statement in handler.body for inner in ast.walk(statement)):
            if isinstance(inner, ast.Name) and inner.id == name:
                inner.id = handler.name


def _method(statement: ast.stmt, tree: ast.Module) -> ast.stmt | None:
    """Write ``attach = one_at_a_time(Network.attach)`` as a method: mypyc takes a function that is
    assigned in a class for an attribute, which is called without the instance.
    """
    match statement:
        case ast.Assign(
            targets=[ast.Name(id=name)],
            value=ast.Call(
                func=ast.Name(id=function), args=[ast.Attribute(value=ast.Name(id=base))]
            ),
        ) if function == LOCKED:
            return _locked(name, _find(base, name, tree))
    return None


def _find(base: str, name: str, tree: ast.Module) -> ast.FunctionDef:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == base:
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and method.name == name:
                    return method
    raise SystemExit(f"{base}.{name} is not written in the module that locks it")


def _locked(name: str, method: ast.FunctionDef) -> ast.stmt:
    of = method.args
    if of.vararg or of.kwarg:
        raise SystemExit(f"{name}: a locked method names its arguments")
    given = [arg.arg for arg in [*of.posonlyargs, *of.args][1:]]
    given += [f"{arg.arg}={arg.arg}" for arg in of.kwonlyargs]
    result = "None" if method.returns is None else ast.unparse(method.returns)
    (written,) = ast.parse(
        f"def {name}({ast.unparse(of)}) -> {result}:\n"
        " with self.lock:\n"
        f"  return super().{name}({', '.join(given)})"
    ).body
    return written
