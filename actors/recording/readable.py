"""Events as lines for a person: which are shown, and who did what to which partition.

A line has at most 120 columns.
Ids of incarnations, directories and topics are left out: no one compares them by eye.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from itertools import groupby
from typing import Any
from uuid import UUID

from minicluster.actors.recording.exchange import OWN_CLIENT, Exchange
from minicluster.protocol.topics import INTERNAL_TOPICS

Event = tuple[Any, ...]  # sequence, time in ms, kind, details…

WIDTH = 120
_KINDS = {"partition_event": "partition", "raft_event": "raft", "history": "client"}
_OMITTED = frozenset(
    {"incarnation", "topic_id", "cluster_id", "directory", "directories", "listeners", "api_key"}
)
# Periodic events, which are not shown: they would crowd out all others.
_ALWAYS = ("Fetch", "FetchSnapshot", "BrokerHeartbeat")
_STEADY = ("ack", "append", "fetch", "flush", "hw")
_OF_A_SEND = ("invoke", "complete")  # the client's own row tells of both
_UNTOLD = ("publish", "replica_log")  # every image; every record that an ended process held
_SUBJECT = frozenset(
    {"broker", "node", "topic", "part", "kind", "leader_epoch", "partition_epoch", "epochs"}
)


def is_answered_produce(event: Event) -> bool:
    """True for a Produce that has had its response, which is told in a row of its own."""
    first = event[3] if len(event) > 3 else None
    if not isinstance(first, Exchange) or first.api != "Produce" or event[2] != "request":
        return False
    return first.resp_seq is not None or not first.open


def is_reported(event: Event) -> bool:
    """True for an event that a failure report shows: of a produce one row."""
    first = event[3] if len(event) > 3 else None
    if event[2] in _OF_A_SEND:
        return False
    if first.__class__ is Exchange:
        if first.api == "Produce" and first.src == OWN_CLIENT and event[2] != "request":
            return False  # as for those above
        return first.api not in _ALWAYS and event[2] != "handle" and event[4:] != (None,)
    if first.__class__ is dict or isinstance(first, Mapping):
        return event[2] not in _UNTOLD and first.get("kind") not in _STEADY
    return True


def together(events: Sequence[Event]) -> list[Sequence[Event]]:
    """Events by the lines that they make: those of an internal topic that follow each other are
    one, because its fifty partitions would crowd out what the test itself did.
    """
    lines: list[Sequence[Event]] = []
    for topic, group in groupby(events, key=_internal_topic):
        following = list(group)
        lines += [following] if topic else [[event] for event in following]
    return lines


def _internal_topic(event: Event) -> str | None:
    row = event[3] if len(event) > 3 else None
    if event[2] != "partition_event" or not isinstance(row, Mapping):
        return None
    return row["topic"] if row["topic"] in INTERNAL_TOPICS else None


def readable(events: Sequence[Event]) -> str:
    """The line of an event, or of several of one topic (``together``)."""
    sequence, at_ms, kind, *details = events[0]
    start = f"{at_ms / 1000:10.3f}s {sequence:>7} {_KINDS.get(kind, kind):<9}"
    if len(events) > 1:
        kinds = Counter(event[3]["kind"] for event in events)
        words = ", ".join(f"{kind} {times}" for kind, times in kinds.most_common())
        details = [f"{details[0]['topic']}: {len(events)} events ({words})"]
    line = f"{start} {' '.join(filter(None, map(_detail, details)))}".rstrip()
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _detail(part: Any) -> str:
    if isinstance(part, tuple) and len(part) == 2 and hasattr(part[0], "api_key"):
        return compact(part[0])
    if isinstance(part, Mapping):
        return " ".join(_send(part) if part.get("f") == "send" else _row(part))
    return "" if part is None or _is_uuid(part) else str(part)


def _is_uuid(part: Any) -> bool:
    text = str(part)
    return isinstance(part, UUID) or (len(text) == 36 and text.count("-") == 4)


def _send(row: Mapping[str, Any]) -> Iterator[str]:
    """A record that the test's client produced, from its beginning to its end."""
    yield f"produce {row['topic']}-{row['part']}"
    yield {"ok": "acknowledged", "fail": "failed", "info": "outcome unknown"}[row["type"]]
    for name in ("offset", "value", "error"):
        if row[name] is not None:
            yield f"{name}={_value(row[name])}"


def _row(row: Mapping[str, Any]) -> Iterator[str]:
    """A row of the trace: its subject, its kind, its epochs, then the rest."""
    node = row.get("broker", row.get("node"))
    if node is not None:
        yield f"node {node:<3}"
    if row.get("topic") is not None:
        yield f"{row['topic']}-{row.get('part')}"
    if row.get("kind") is not None:
        yield str(row["kind"])
    epochs = [
        str(row[name]) for name in ("leader_epoch", "partition_epoch") if row.get(name) is not None
    ]
    if epochs:
        yield f"epochs {'/'.join(epochs)}"
    for name, value in row.items():
        if value is not None and name not in _SUBJECT and name not in _OMITTED:
            yield f"{name}={_value(value)}"


def compact(message: Any) -> str:
    """A message: its fields that are not as by default."""
    return " ".join(_fields(message))


def _fields(message: Any) -> Iterator[str]:
    for field in fields(message):
        value = getattr(message, field.name)
        default: Any = field.default
        if field.default_factory is not MISSING:
            default = field.default_factory()
        if field.name in _OMITTED or isinstance(value, UUID) or value is None or value == default:
            continue
        yield f"{field.name}={_value(value)}"


def _value(value: Any) -> str:
    if is_dataclass(value):
        return "{" + compact(value) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_value(item) for item in value) + "]"
    return value.name if isinstance(value, Enum) else str(value)
