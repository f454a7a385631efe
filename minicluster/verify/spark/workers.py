"""The processes in which Spark runs Python: how many there are, and what ends one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minicluster.verify.spark.jvm import SparkUnavailable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_WORKERS_MAX = 16


class WorkerDied(SparkUnavailable):
    """A process that judged was ended from outside, most likely for want of memory."""

    def __init__(self) -> None:
        super().__init__(
            "Spark: a worker was ended while it judged, most likely for want of memory; what a run "
            "takes: docs/reference/speed.md, Memory"
        )


def worker_died(error: Exception) -> bool:
    """The error of a job that Spark gave up since one of Python's processes was gone."""
    return "Python worker exited unexpectedly" in str(error)


def workers_of(spark: SparkSession) -> int:
    """The number of workers at the same time; a client of Spark Connect cannot see it."""
    if not hasattr(spark, "_jsc"):
        return 2
    return max(1, min(_WORKERS_MAX, spark.sparkContext.defaultParallelism))
