"""Rows of a run's trace for what is shown of it."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from minicluster.verify.evidence.run import Run


def trace_rows(
    run: Run, table: str, columns: str, keep: pc.Expression | None = None
) -> list[dict[str, Any]]:
    """Rows of a trace table in their order; none where it is missing or damaged."""
    path = run.trace.get(table)
    if path is None:
        return []
    try:
        rows: list[dict[str, Any]] = pq.read_table(
            path, columns=columns.split(), filters=keep
        ).to_pylist()
    except (OSError, ValueError, KeyError):
        return []
    return sorted(rows, key=lambda row: row["seq"])
