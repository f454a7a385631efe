"""``verify``: the JVM starts first, and loads its classes while Python loads the rules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicluster.verify.spark import session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from minicluster.log.format.limits import ReadLimits
    from minicluster.verify.reporting.report import Report
    from minicluster.verify.spark.progress import OnProgress


def verify(
    *runs: Path | str,
    spark: SparkSession | None = None,
    master: str | None = None,
    remote: str | None = None,
    rules: Iterable[str] | None = None,
    rules_from: Path | str | None = None,
    limits: ReadLimits | None = None,
    on_progress: OnProgress | None = None,
) -> Report:
    """Judge runs and logs, all in one job.

    Shapes:  paths of runs, folders or files, also on a file system of Hadoop's -> Report.
             limits: the most that reading one file may take. rules_from: a Python file with more
             rules (``rules.user_rules``). on_progress is called from another thread.
    Errors:  UserError for a path that holds nothing to judge; SparkUnavailable.
    """
    if spark is None:
        session.warm_up(master=master, remote=remote, training=True)
    from minicluster.log.format.limits import DEFAULT_LIMITS
    from minicluster.verify.judge import judge_paths

    def started() -> Any:
        return session.spark_for_jobs(spark, master=master, remote=remote)

    return judge_paths(
        runs,
        started,
        rules=rules,
        rules_from=None if rules_from is None else Path(rules_from),
        limits=DEFAULT_LIMITS if limits is None else limits,
        on_progress=on_progress,
    )
