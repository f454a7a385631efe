"""The pipeline of Spark without Spark: its scan, its order and its workers, in this process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.verify.evidence.reading import named_paths
from minicluster.verify.judged import Judged
from minicluster.verify.log_rows import Item
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.rule import Rule
from minicluster.verify.spark import pipeline
from minicluster.verify.spark.judging_worker import Task, judge_rows
from minicluster.verify.spark.log_source import ORDER, SCHEMA, listed, scan_logs

BATCH_ROWS = 700  # so that batches begin and end anywhere


def scanned(items: Sequence[Item], limits: ReadLimits = DEFAULT_LIMITS) -> pa.Table:
    """The rows of runs and logs by their runs and in order, as workers get them."""
    read = scan_logs(limits, listed(items).to_batches(max_chunksize=3))
    order = [(name, "ascending") for name in ORDER]
    return pa.Table.from_batches(read, SCHEMA).sort_by(order).combine_chunks()


def rows_here(items: Sequence[Item], task: Task, limits: ReadLimits = DEFAULT_LIMITS) -> list[Any]:
    """What ``pipeline.results_of`` collects; nothing has to be added up."""
    batches = scanned(items, limits).to_batches(max_chunksize=BATCH_ROWS)
    judged = judge_rows(task, limits, batches)
    return [SimpleNamespace(**row) for batch in judged for row in batch.to_pylist()]


def judged_by_workers(paths: Sequence[Path], rules: Sequence[Rule] = RULES) -> list[Judged]:
    """Judge as Spark's workers do."""

    class Frame:
        def __init__(self, rows: list[Any]) -> None:
            self._rows = rows

        def collect(self) -> list[Any]:
            return self._rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "results_of", lambda spark, *given: Frame(rows_here(*given)))
        return pipeline.judge_in_spark(
            None,  # type: ignore[arg-type]
            named_paths(paths),
            Task.of(rules),
        )
