"""Rows of a run's trace for what is shown of it."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc

from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.trace_tables import rows_of


def trace_rows(
    run: Run, table: str, columns: str, keep: pc.Expression | None = None
) -> list[dict[str, Any]]:
    """Rows of a trace table in their order; none where it is missing or damaged."""
    path = run.trace.get(table)
    if path is None:
        return []
    try:
        rows = rows_of(path, columns.split(), keep)
    except (OSError, ValueError, KeyError):
        return []
    return sorted(rows, key=lambda row: row["seq"])
