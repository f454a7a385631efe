"""The rules of verification; their table is loaded on first use, since a running cluster needs few.

every    all rules, and the views that their checks are computed on
online   those of the rules over metadata logs and clients that are judged while a cluster runs
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicluster.verify.rules.every import ALSO_ON_ZOOKEEPER as ALSO_ON_ZOOKEEPER
    from minicluster.verify.rules.every import BY_ID as BY_ID
    from minicluster.verify.rules.every import LOG_VIEWS as LOG_VIEWS
    from minicluster.verify.rules.every import RULES as RULES
    from minicluster.verify.rules.every import VIEWS as VIEWS
    from minicluster.verify.rules.every import ZNODE_RULES as ZNODE_RULES
    from minicluster.verify.rules.every import ZNODE_VIEWS as ZNODE_VIEWS
    from minicluster.verify.rules.model import Check as Check
    from minicluster.verify.rules.model import Evidence as Evidence
    from minicluster.verify.rules.model import Finding as Finding
    from minicluster.verify.rules.model import Rule as Rule
    from minicluster.verify.rules.model import Verdict as Verdict

_EVERY = "minicluster.verify.rules.every"
_MODEL = "minicluster.verify.rules.model"
_HOMES = {
    "ALSO_ON_ZOOKEEPER": _EVERY,
    "BY_ID": _EVERY,
    "Check": _MODEL,
    "Evidence": _MODEL,
    "Finding": _MODEL,
    "LOG_VIEWS": _EVERY,
    "RULES": _EVERY,
    "Rule": _MODEL,
    "VIEWS": _EVERY,
    "Verdict": _MODEL,
    "ZNODE_RULES": _EVERY,
    "ZNODE_VIEWS": _EVERY,
}

__all__ = [
    "ALSO_ON_ZOOKEEPER",
    "BY_ID",
    "LOG_VIEWS",
    "RULES",
    "VIEWS",
    "ZNODE_RULES",
    "ZNODE_VIEWS",
    "Check",
    "Evidence",
    "Finding",
    "Rule",
    "Verdict",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(importlib.import_module(home), name)
