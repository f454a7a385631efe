"""Rules of a user's own, from one Python file.

The file assigns ``RULES``, and ``VIEWS`` where its checks read views of its own. A view is SQL over
the tables and views that ``docs/views.md`` lists, or a fold: a function from rows to rows.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType

from minicluster.errors import UserError
from minicluster.lazy_dataclass import dataclass
from minicluster.verify.rules import BY_ID, VIEWS
from minicluster.verify.rules.model import Rule, View


@dataclass(frozen=True, slots=True)
class UserRules:
    """The rules of one file, the views that they bring, and the file as a module."""

    rules: tuple[Rule, ...]
    views: Mapping[str, View]
    module: ModuleType


def load_rules(path: Path) -> UserRules:
    """Read the rules of a file.

    Errors:  UserError for a file that cannot be read or run, that has no rules, or whose rules or
             views have names that are taken.
    """
    name = f"minicluster_rules_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.exists():
        raise UserError(f"{path}: there is no such file")
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError(f"{path}: is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{path}: {type(error).__name__}: {error}") from None
    rules = tuple(getattr(module, "RULES", ()))
    views = {view.name: view for view in getattr(module, "VIEWS", ())}
    if not rules:
        raise UserError(f"{path}: assigns no RULES")
    if taken := sorted(views.keys() & VIEWS.keys()):
        raise UserError(f"{path}: there is a view {taken[0]} already")
    for rule in rules:
        if rule.id in BY_ID:
            raise UserError(f"{path}: there is a rule {rule.id} already")
        for view in rule.views:
            if view not in views and view not in VIEWS:
                raise UserError(f"{path}: {rule.id}: there is no view {view}")
    return UserRules(rules, views, module)
