"""Rules of a user's own, from one Python file.

The file declares rules by the decorator ``rule``, or by ``sql_rule``, and histories over a trace by
``history`` where its rules judge steps that no history here yields.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from minicluster.errors import UserError
from minicluster.files import UnusableFile
from minicluster.values import Value
from minicluster.verify.histories.traced_run import History, histories_in
from minicluster.verify.rules.every import BY_ID
from minicluster.verify.rules.rule import Rule
from minicluster.verify.rules.sql_rule import SqlRule


class OwnRules(Value):
    """The rules of one file, its histories, and the file as a module."""

    rules: tuple[Rule, ...]
    histories: tuple[History, ...]
    module: ModuleType

    @property
    def in_python(self) -> tuple[Rule, ...]:
        """Those that judge steps."""
        return tuple(rule for rule in self.rules if not isinstance(rule, SqlRule))

    @property
    def in_sql(self) -> tuple[SqlRule, ...]:
        """Those that Spark plans."""
        return tuple(rule for rule in self.rules if isinstance(rule, SqlRule))


def load_rules(path: Path) -> OwnRules:
    """Read the rules of a file.

    Errors:  UserError for a file that cannot be read or run, that has no rules, or whose rules have
             ids that are taken.
    """
    name = f"minicluster_rules_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if not path.exists():
        raise UnusableFile(f"{path}: there is no such file")
    if spec is None or spec.loader is None or not path.is_file():
        raise UserError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{path}: {type(error).__name__}: {error}") from None
    known = set(BY_ID.values())
    rules = [
        declared
        for declared in vars(module).values()
        if isinstance(declared, Rule) and declared not in known
    ]
    if not rules:
        raise UserError(f"{path}: declares no rule (minicluster.verify.rule, sql_rule)")
    seen: set[str] = set()
    for rule in rules:
        if rule.id in BY_ID or rule.id in seen:
            raise UserError(f"{path}: there is a rule {rule.id} already")
        seen.add(rule.id)
    return OwnRules(tuple(rules), histories_in(module), module)
