"""Judging a metadata log while it grows, as a Spark stream: findings within seconds of the commit.

The stream reads each batch once, in order; the judge that takes them is the one of a running
cluster (``live``) and stays in the process that has started the stream. So its memory is bounded by
the cluster. A stream that goes on from a checkpoint of Spark's has a new judge, which takes first,
and in silence, what the log has up to there.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import parse_checkpoint_name, read_checkpoint
from minicluster.log.committed_log import no_start
from minicluster.log.heads import batch_heads
from minicluster.log.locating import locate
from minicluster.verify.evidence.reading import named_paths
from minicluster.verify.live import LiveJudge
from minicluster.verify.model import Finding
from minicluster.verify.spark.judging_worker import FINDING, RESULT
from minicluster.verify.spark.log_source import sql_of
from minicluster.verify.spark.travel import ship_package

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def follow_findings(
    spark: SparkSession,
    log: Path | str,
    take: Callable[[DataFrame], None],
    *,
    every: str = "1 second",
    checkpoint: Path | str | None = None,
) -> Any:
    """Start a Spark stream that judges a growing log; the caller stops the query.

    ::

        query = follow_findings(spark, log, lambda found: found.write.saveAsTable("findings"))

    Shapes:  log: a path of one controller's log on this machine; what is in it counts as committed.
             take: gets the findings that are new, as a data frame, whenever there are any.
             every: how often the log is looked at. checkpoint: a folder in which Spark notes how
             far the log is judged; a stream that is started again with it goes on from there, and
             gives again at most what it was about to give when it ended. None: from where the log
             begins.
    Errors:  UserError for a path that holds no log, or one whose first state is not recorded, and
             for a session of Spark Connect, which would run ``take`` on the server.
    """
    if not hasattr(spark, "_jsc"):
        raise UserError("a Spark Connect session follows no log: its functions run on the server")
    from minicluster.verify.spark.log_source import FORMAT, LogSource, batches_between

    ((path, name),) = named_paths([log])
    judge, end = _judge_of(path, name)
    ship_package(spark)
    spark.dataSource.register(LogSource)

    def on_rows(rows: DataFrame, number: int) -> None:
        nonlocal end
        findings: list[Finding] = []
        for row in rows.toLocalIterator():  # in the order of the log
            for batch in batches_between(path, end, row.place):
                judge.commit(batch)
            batch = RecordBatch.decode(bytes(row.content))
            findings += judge.commit(batch)
            end = batch.last_offset + 1
        if findings:
            take(_frame(rows.sparkSession, findings))

    query = (
        spark.readStream.format(FORMAT)
        .load(str(path.absolute()))
        .writeStream.foreachBatch(on_rows)
        .trigger(processingTime=every)
    )
    if checkpoint is not None:
        query = query.option("checkpointLocation", str(checkpoint))
    return query.start()


def _judge_of(path: Path, name: str) -> tuple[LiveJudge, int]:
    """A judge of the log from where it begins, and the offset there."""
    located = locate(path)
    if len(located.logs) != 1:
        raise UserError(f"{path}: a stream follows one controller's log")
    judge = LiveJudge(name)
    files = located.logs[0]
    head = next(batch_heads(files.segments[0]), None) if files.segments else None
    first = 0 if head is None else head.base_offset
    if first == 0:
        return judge, first
    for file in sorted(files.checkpoints):
        end, _ = parse_checkpoint_name(file.name) or (0, 0)
        if end >= first:
            judge.load(read_checkpoint(file, files.limits).records, end)
            return judge, first
    raise UserError(no_start(path, first))


def _frame(spark: SparkSession, findings: list[Finding]) -> DataFrame:
    rows = [tuple(getattr(finding, name) for name in FINDING) for finding in findings]
    return spark.createDataFrame(rows, sql_of(pa.schema([RESULT.field(name) for name in FINDING])))
