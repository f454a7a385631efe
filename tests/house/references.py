"""References of pages to files and to the tests in them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@cache
def _names(path: Path) -> frozenset[str]:
    """The functions and classes of a Python file."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def is_there(reference: str) -> bool:
    """``path`` or ``path::name`` exists in this repository."""
    name, _, inside = reference.partition("::")
    path = ROOT / name
    return path.exists() and (not inside or inside in _names(path))
