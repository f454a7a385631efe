"""Verification of runs: rules, the data source for Spark, reports.

The public names are loaded on first use: importing this package loads neither Spark nor Arrow, so
the online checker runs without them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicluster.verify.online.checker import OnlineChecker as OnlineChecker
    from minicluster.verify.reporting.report import Report as Report
    from minicluster.verify.rules.model import Finding as Finding
    from minicluster.verify.rules.model import Verdict as Verdict
    from minicluster.verify.shown.frames import views as views
    from minicluster.verify.spark.data_source import register as register
    from minicluster.verify.spark.session import spark_session as spark_session
    from minicluster.verify.spark.sink import follow as follow
    from minicluster.verify.spark.sink import lag as lag
    from minicluster.verify.verifying import verify as verify

_HOMES = {
    "Finding": "minicluster.verify.rules.model",
    "OnlineChecker": "minicluster.verify.online.checker",
    "Report": "minicluster.verify.reporting.report",
    "Verdict": "minicluster.verify.rules.model",
    "follow": "minicluster.verify.spark.sink",
    "lag": "minicluster.verify.spark.sink",
    "register": "minicluster.verify.spark.data_source",
    "spark_session": "minicluster.verify.spark.session",
    "verify": "minicluster.verify.verifying",
    "views": "minicluster.verify.shown.frames",
}

__all__ = [
    "Finding",
    "OnlineChecker",
    "Report",
    "Verdict",
    "follow",
    "lag",
    "register",
    "spark_session",
    "verify",
    "views",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOMES[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
