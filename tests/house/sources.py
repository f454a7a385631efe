"""The Python files of the checkout: their rooms and their imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("minicluster", "actors", "fixtures")


def sources(*folders: str) -> Iterator[Path]:
    """Python files by their real place (the links inside minicluster are not followed)."""
    for folder in folders or PACKAGES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not any(part.is_symlink() for part in path.parents if part != ROOT):
                yield path


@cache
def tree_of(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of the syntax tree of a file; a walk costs more than the parser."""
    return tuple(ast.walk(tree_of(path)))


def forget() -> None:
    """Free what was parsed."""
    tree_of.cache_clear()
    nodes_of.cache_clear()


def room_of(path: Path) -> str:
    """The room of a file; of a file directly in minicluster the empty text."""
    parts = path.relative_to(ROOT).parts
    if parts[0] in ("actors", "fixtures"):
        return parts[0]
    return parts[1] if len(parts) > 2 else ""


def module_of(path: Path) -> str:
    """The name by which a file is imported."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[0] in ("actors", "fixtures"):
        parts = ("minicluster", *parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Every module or name that a file imports, with the line; for type checkers only as well."""
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide the room"
            assert node.module is not None
            yield node.module, node.lineno
            for alias in node.names:
                yield f"{node.module}.{alias.name}", node.lineno


def import_graph() -> dict[str, set[str]]:
    """The modules of the packages, each with those that it imports when it is loaded.

    An import for a type checker alone may lead back: a room is without circles of other rooms, and
    the files of a room may name each other's classes.
    """
    paths = {module_of(path): path for path in sources()}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        needs: set[str] = set()
        for node in _loaded(tree_of(path)):
            if isinstance(node, ast.Import):
                needs |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                needs |= {name if name in paths else str(node.module) for name in names}
        graph[module] = {need for need in needs if need in paths and need != module}
    return graph


def _loaded(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a file but those for a type checker alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        yield node
        yield from _loaded(node)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules that need each other (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = low[module] = len(index)
        stack.append(module)
        for need in sorted(graph[module]):
            if need not in index:
                visit(need)
                low[module] = min(low[module], low[need])
            elif need in stack:
                low[module] = min(low[module], index[need])
        if low[module] == index[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in index:
            visit(module)
    return found
