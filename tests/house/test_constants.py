"""One constant per fact."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.house.sources import ROOT, sources, tree_of

TWO_SETTINGS = {"BACKOFF_FIRST_MS", "BACKOFF_MS", "NONE", "REQUEST_TIMEOUT_MS", "RETRY_MS"}
"""Names of different things that happen to have one value."""


def _constants() -> list[tuple[str, str, str]]:
    """The public constants of modules: name, value, place."""
    found = []
    for path in sources():
        for node in tree_of(path).body:
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name) and target.id.isupper() and target.id[0] != "_":
                    where = f"{path.relative_to(ROOT)}:{node.lineno}"
                    found.append((target.id, ast.unparse(node.value), where))
    return found


def test_no_constant_is_defined_in_two_places() -> None:
    """The same public name with the same value, or the same dotted or dashed text."""
    places = defaultdict(list)
    for name, value, where in _constants():
        if name in TWO_SETTINGS or len(name) == 1:
            continue
        is_text = value.startswith("'") and ("." in value or "-" in value)
        places[value if is_text else (name, value)].append(f"{where} {name}")
    assert [group for group in places.values() if len(group) > 1] == []
