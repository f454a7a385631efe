"""The contents of each replica's log, by its own appends and truncations, and its place.

Nothing here rests on what a leader believes of its followers. A log is known as its end and the
leader epochs along it: two logs with the same epoch at an offset are the same up to there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator

from minicluster.verify.rules.model import Check, View
from minicluster.verify.rules.replicas.logs_by_events import HeldLogs, Row

Read = Callable[[str], list[Row]]
_COLUMNS = ("run", "seq", "topic", "part", "leader", "member", "advanced", "log_offset")
_OF_LEADERS = ("append", "hw", "ack", "isr_pending", "isr_commit", "become_leader")


def _held(read: Read) -> Iterator[Row]:
    """Each advance of a leader's high watermark beside the logs of its maximal ISR."""
    logs = HeldLogs()
    for row in sorted(read("partition_event"), key=lambda row: row["seq"]):
        for advance in logs.on_event(row):
            yield {
                "run": row["run"],
                "seq": row["seq"],
                "topic": row["topic"],
                "part": row["part"],
                "leader": row["broker"],
                "member": advance.member,
                "advanced": row["hw_new"],
                "log_offset": None,
                "lacks": advance.lacks,
            }


def _led_offline(read: Read) -> Iterable[Row]:
    """Events of leaders after a directory of theirs has failed, with the log's directory."""
    failures = [row for row in read("fault") if row["directory"] is not None]
    if not failures:
        return
    offline: dict[int, set[str]] = {}
    for row in sorted([*failures, *read("partition_event")], key=lambda row: row["seq"]):
        if "targets" in row:
            for broker in json.loads(row["targets"]):
                failed = offline.setdefault(broker, set())
                (failed.discard if row["phase"] == "stop" else failed.add)(row["directory"])
        elif row["kind"] in _OF_LEADERS and row["maximal_isr"] is not None:
            failed = offline.get(row["broker"], set())
            if failed:
                yield {
                    "run": row["run"],
                    "seq": row["seq"],
                    "topic": row["topic"],
                    "part": row["part"],
                    "leader": row["broker"],
                    "log_offset": None,
                    "lacks": row["directory"] in failed,
                }


VIEWS = (
    View(
        name="held_by_isr",
        fold=_held,
        columns=(*_COLUMNS, "lacks"),
        reads=("partition_event",),
        empty_unless=("partition_event", "kind", "hw"),
    ),
    View(
        name="led_offline",
        fold=_led_offline,
        columns=(*_COLUMNS, "lacks"),
        reads=("fault", "partition_event"),
        empty_unless=("fault", "action", "fail_dir"),
    ),
)

# The part of B2 that does not rest on what a leader believes.
HELD_BY_ISR = Check(
    view="held_by_isr",
    when="true",
    bad="lacks",
    message="leader {broker} advanced its high watermark to {number}, and the log of a member of "
    "its maximal ISR, {new}, does not hold the leader's records up to there",
    offset="log_offset",
    broker="leader",
    new="array(member)",
    number="advanced",
    counts=False,
)

# The part of D1 that no record shows: the broker itself leads on.
LED_OFFLINE = Check(
    view="led_offline",
    when="true",
    bad="lacks",
    message="broker {broker} leads a partition in a directory of its own that has failed (event "
    "{number})",
    offset="log_offset",
    broker="leader",
    number="seq",
    counts=False,
)
