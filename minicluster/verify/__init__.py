"""Verification of runs: rules, the data source for Spark, reports.

The public names are loaded on first use: importing this package loads neither Spark nor Arrow, so
a running cluster is judged without them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minicluster.verify.histories.traced_run import history as history
    from minicluster.verify.live import LiveJudge as LiveJudge
    from minicluster.verify.model import Finding as Finding
    from minicluster.verify.model import Verdict as Verdict
    from minicluster.verify.reporting.report import Report as Report
    from minicluster.verify.rules.rule import CASE as CASE
    from minicluster.verify.rules.rule import NOT_PROMISED as NOT_PROMISED
    from minicluster.verify.rules.rule import broken as broken
    from minicluster.verify.rules.rule import exempt as exempt
    from minicluster.verify.rules.rule import rule as rule
    from minicluster.verify.rules.sql_rule import sql_rule as sql_rule
    from minicluster.verify.shown.frames import as_of as as_of
    from minicluster.verify.shown.frames import views as views
    from minicluster.verify.spark.data_source import register as register
    from minicluster.verify.spark.findings_stream import follow_findings as follow_findings
    from minicluster.verify.spark.pipeline import verdicts as verdicts
    from minicluster.verify.spark.session import spark_session as spark_session
    from minicluster.verify.spark.sink import follow as follow
    from minicluster.verify.spark.sink import lag as lag
    from minicluster.verify.verifying import verify as verify

_NAMES_OF = {
    "histories.traced_run": ("history",),
    "live": ("LiveJudge",),
    "model": ("Finding", "Verdict"),
    "reporting.report": ("Report",),
    "rules.rule": ("CASE", "NOT_PROMISED", "broken", "exempt", "rule"),
    "rules.sql_rule": ("sql_rule",),
    "shown.frames": ("as_of", "views"),
    "spark.data_source": ("register",),
    "spark.findings_stream": ("follow_findings",),
    "spark.pipeline": ("verdicts",),
    "spark.session": ("spark_session",),
    "spark.sink": ("follow", "lag"),
    "verifying": ("verify",),
}
_HOMES = {name: f"{__name__}.{home}" for home, names in _NAMES_OF.items() for name in names}

__all__ = [
    "CASE",
    "NOT_PROMISED",
    "Finding",
    "LiveJudge",
    "Report",
    "Verdict",
    "as_of",
    "broken",
    "exempt",
    "follow",
    "follow_findings",
    "history",
    "lag",
    "register",
    "rule",
    "spark_session",
    "sql_rule",
    "verdicts",
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
