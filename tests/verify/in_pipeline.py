"""The pipeline of Spark without Spark: its source, its order and its workers, in this process."""

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
from minicluster.verify.rules.every import RULES
from minicluster.verify.rules.rule import Rule
from minicluster.verify.spark import pipeline
from minicluster.verify.spark.evidence_rows import SCHEMA
from minicluster.verify.spark.evidence_source import EvidenceReader, Item, Request
from minicluster.verify.spark.judging_worker import Task, judge_rows

BATCH_ROWS = 700  # so that batches begin and end anywhere


def evidence_here(items: Sequence[Item], task: Task, limits: ReadLimits) -> pa.Table:
    """The rows of evidence by their slots, as workers get them."""
    tables = tuple(pipeline.tables_of(task))
    reader = EvidenceReader(Request(tuple(items), limits, tables, 4))
    read = [batch for part in reader.partitions() for batch in reader.read(part)]
    evidence = pa.Table.from_batches(read, SCHEMA)
    order = [(name, "ascending") for name in ("slot", *pipeline._ORDER)]
    return evidence.sort_by(order).combine_chunks()


def rows_here(
    items: Sequence[Item], task: Task, limits: ReadLimits, pickled: bytes | None = None
) -> list[Any]:
    """What ``pipeline.results_of`` collects.

    Shapes:  pickled: the task as workers got it earlier.
    """
    sorted_rows = evidence_here(items, task, limits)
    batches = sorted_rows.to_batches(max_chunksize=BATCH_ROWS)
    judged = judge_rows(pickled or task.pickled(), batches)
    return [SimpleNamespace(**row) for batch in judged for row in batch.to_pylist()]


def judged_by_workers(paths: Sequence[Path], rules: Sequence[Rule] = RULES) -> list[Judged]:
    """Judge as Spark's workers do."""

    class Frame:
        def __init__(self, rows: list[Any]) -> None:
            self._rows = rows

        def collect(self) -> list[Any]:
            return self._rows

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "workers_of", lambda spark: 2)
        patch.setattr(pipeline, "results_of", lambda spark, *given: Frame(rows_here(*given)))
        return pipeline.judge_in_spark(
            None,  # type: ignore[arg-type]
            named_paths(paths),
            Task(tuple(rules)),
            limits=DEFAULT_LIMITS,
        )
