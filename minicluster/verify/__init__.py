"""Proofs about runs: the rules, the data source for Spark, the reports.

This face is lazy: importing it loads neither Spark nor Arrow, so that the online checker can be
used where they are not wanted.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicluster.verify.judge import verify as verify
    from minicluster.verify.online.checker import OnlineChecker as OnlineChecker
    from minicluster.verify.reporting.report import Report as Report
    from minicluster.verify.rules.model import Finding as Finding
    from minicluster.verify.rules.model import Verdict as Verdict

_HOMES = {
    "Finding": "minicluster.verify.rules.model",
    "OnlineChecker": "minicluster.verify.online.checker",
    "Report": "minicluster.verify.reporting.report",
    "Verdict": "minicluster.verify.rules.model",
    "verify": "minicluster.verify.judge",
}

__all__ = ["Finding", "OnlineChecker", "Report", "Verdict", "verify"]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
