"""The event of a finding that names an offset of a partition, and no event of the trace.

``leader 1 acknowledged offset 7 before …`` is about the acknowledgement of offset 7, which the
trace has: its moment, and what was before it, are those of the finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

import pyarrow.parquet as pq

from minicluster.verify.evidence.run import Run
from minicluster.verify.model import Finding
from minicluster.verify.reporting.trace_text import Event, event_of

FINDINGS_MAX = 500
_COLUMNS = (
    *("vt", "seq", "broker", "topic", "part", "kind", "leader_epoch", "partition_epoch"),
    *("isr", "maximal_isr", "min_isr", "hw_old", "hw_new", "leo", "offset", "follower_leos"),
)
_KINDS = ("ack", "hw", "append", "truncate", "become_leader", "become_follower")

Row = Mapping[str, Any]
_OFFSET = re.compile(r"\boffset (\d+)")
_MARK = re.compile(r"high watermark (?:back )?to (\d+)")
_END = re.compile(r"log ends at (\d+)")
# What a sentence names, and the events that fit, the best first.
_NAMED: tuple[tuple[re.Pattern[str], tuple[Callable[[Row, int], bool], ...]], ...] = (
    (_MARK, (lambda row, n: row["kind"] == "hw" and row["hw_new"] == n,)),
    (_END, (lambda row, n: row["kind"].startswith("become") and row["leo"] == n,)),
    (
        _OFFSET,
        (
            lambda row, n: row["kind"] == "ack" and row["offset"] == n,
            lambda row, n: row["kind"] == "append" and row["leo"] == n + 1,
            lambda row, n: row["kind"] == "append" and row["leo"] > n,
        ),
    ),
)


def events_of(run: Run, findings: Iterable[Finding]) -> dict[Finding, Event]:
    """The events of those findings whose sentences name an offset of their partition."""
    wanted = [finding for finding in findings if finding.topic and finding.partition >= 0][
        :FINDINGS_MAX
    ]
    path = run.trace.get("partition_event")
    if not wanted or path is None:
        return {}
    of_topics = [
        ("topic", "in", sorted({finding.topic for finding in wanted})),
        ("kind", "in", list(_KINDS)),
    ]
    rows: list[Row] = []
    with suppress(OSError, ValueError, KeyError):  # a damaged table shows no moment
        read = pq.read_table(path, filters=of_topics, columns=list(_COLUMNS)).to_pylist()
        rows = sorted(read, key=lambda row: row["seq"])
    by_partition: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        by_partition.setdefault((row["topic"], row["part"]), []).append(row)
    events = {}
    for finding in wanted:
        best = _best(finding, by_partition.get((finding.topic, finding.partition), []))
        if best is not None:
            events[finding] = event_of("partition_event", best)
    return events


def _best(finding: Finding, rows: list[Row]) -> Row | None:
    near = [row for row in rows if finding.broker in (-1, row["broker"])]
    for pattern, fits in _NAMED:
        if (match := pattern.search(finding.message)) is not None:
            number = int(match[1])
            for fit in fits:
                if (row := next((row for row in near if fit(row, number)), None)) is not None:
                    return row
    return None
