"""No code that only tests use."""

from __future__ import annotations

import ast
import asyncio
import re
import socket
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.house.sources import ROOT, nodes_of, sources, tree_of

TABLES = ("minicluster/protocol/messages/", "minicluster/protocol/records/")
"""Declarations: all of Kafka's, whether a machine uses them or not."""

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
"""A name on a page is for users."""

CALLED_BY_LIBRARIES = {
    "initialOffset", "latestOffset", "partitions", "pushFilters", "read", "schema", "streamReader",
    "on_failure", "on_start", "on_stop",
    "convert", "format_commands", "on_broken_pipe", "DefaultSource",
    "pytest_addoption", "pytest_configure", "pytest_pyfunc_call",
    *dir(asyncio.AbstractEventLoop), *dir(asyncio.AbstractServer), *dir(asyncio.Transport),
    *dir(socket.socket),
}  # fmt: skip
"""Methods and hooks of pyspark, Pykka, click, rich, pytest, asyncio and sockets."""

_PLAIN_DECORATORS = (
    "cache", "classmethod", "contextlib", "contextmanager", "dataclass", "final", "functools",
    "lru_cache", "message", "override", "property", "runtime_checkable", "s.", "staticmethod",
    "struct", "total_ordering",
)  # fmt: skip


def _definitions(path: Path) -> Iterator[tuple[str, int]]:
    """Public functions, classes and constants, and the public methods of classes."""
    for node in tree_of(path).body:
        yield from _defined(node)
        if isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield from _defined(inner)


def _defined(node: ast.stmt) -> Iterator[tuple[str, int]]:
    """A name, unless it is private or a decorator registers it somewhere."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        registered = any(not one.startswith(_PLAIN_DECORATORS) for one in decorators)
        if not registered and not node.name.startswith("_"):
            yield node.name, node.lineno
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            if isinstance(target, ast.Name) and not target.id.startswith("_"):
                yield target.id, node.lineno


def _uses(path: Path) -> Iterator[str]:
    """Every name that a file reads: variables, attributes, imports, keywords and texts."""
    is_face = path.name == "__init__.py"
    for node in nodes_of(path):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg
        elif isinstance(node, ast.ImportFrom) and not is_face:
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and not is_face:
            yield node.value.rpartition(":")[2]  # ``module:function`` names a function


def unused() -> list[tuple[str, str]]:
    """The public names of the packages that neither the packages nor the pages use."""
    uses = Counter(name for path in sources() for name in _uses(path))
    shown = set(re.findall(r"\w+", "\n".join(page.read_text() for page in PAGES)))
    found = []
    for path in sources():
        where = path.relative_to(ROOT).as_posix()
        if where.startswith(TABLES) or path.name == "__init__.py":
            continue
        for name, line in _definitions(path):
            if not uses[name] and name not in shown | CALLED_BY_LIBRARIES:
                found.append((name, f"{where}:{line} {name}"))
    return found


def test_every_public_name_is_used_by_more_than_tests() -> None:
    assert [where for _, where in unused()] == []
