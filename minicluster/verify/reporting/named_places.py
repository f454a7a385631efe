"""The event of a finding that names an offset of a partition, and no event of the trace.

``leader 1 acknowledged offset 7 before …`` is about the acknowledgement of offset 7, which the
trace has: its moment, and what was before it, are those of the finding. A record that was lost (F1)
has two events: its acknowledgement, and the election of the leader that lacks it, by which it is
gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.trace_tables import rows_of
from minicluster.verify.model import LOST, Finding
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


def events_of(run: Run, findings: Iterable[Finding]) -> dict[Finding, tuple[Event, ...]]:
    """The events of those findings whose sentences name an offset of their partition.

    Shapes:  in their order; the moment of the last is the finding's.
    """
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
        rows = sorted(rows_of(path, list(_COLUMNS), of_topics), key=lambda row: row["seq"])
    by_partition: dict[tuple[str, int], list[Row]] = {}
    for row in rows:
        by_partition.setdefault((row["topic"], row["part"]), []).append(row)
    events = {}
    for finding in wanted:
        of_partition = by_partition.get((finding.topic, finding.partition), [])
        named = (_of_loss if finding.rule == LOST else _best)(finding, of_partition)
        if named:
            events[finding] = tuple(event_of("partition_event", row) for row in named)
    return events


def _of_loss(finding: Finding, rows: list[Row]) -> list[Row]:
    """The acknowledgement of a record that is lost, and the election of the leader without it."""
    match = _OFFSET.search(finding.message)
    if match is None:
        return []
    offset = int(match[1])
    elections = [
        row
        for row in rows
        if row["kind"] == "become_leader" and finding.broker in (-1, row["broker"])
    ]
    # A leader whose log is longer has another record in its place: it was elected without this one
    # at any of its elections, so the last one stands for them.
    shorter = [row for row in elections if row["leo"] is not None and row["leo"] <= offset]
    election = next(reversed(shorter or elections), None)
    acknowledged = [
        row
        for row in rows
        if row["kind"] == "ack"
        and row["offset"] >= offset
        and (election is None or row["seq"] < election["seq"])
    ]
    return [row for row in (*acknowledged[:1], election) if row is not None]


def _best(finding: Finding, rows: list[Row]) -> list[Row]:
    """The event that fits the words best."""
    near = [row for row in rows if finding.broker in (-1, row["broker"])]
    for pattern, fits in _NAMED:
        if (match := pattern.search(finding.message)) is not None:
            number = int(match[1])
            for fit in fits:
                if (row := next((row for row in near if fit(row, number)), None)) is not None:
                    return [row]
    return []
