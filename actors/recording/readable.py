"""Events as lines for a person: which are shown, and who did what to which partition.

A line has at most 120 columns. What would crowd out all else is one line (``together``).
Ids of incarnations, directories and topics are left out: no one compares them by eye.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from typing import Any
from uuid import UUID

from minicluster.actors.exchange import OWN_CLIENT
from minicluster.actors.recording.rpc_rows import RpcRow
from minicluster.errors import printable
from minicluster.protocol import Struct
from minicluster.protocol.topics import INTERNAL_TOPICS

Event = tuple[Any, ...]  # sequence, time in ms, kind, details…

WIDTH = 120
_KINDS = {"partition_event": "partition", "raft_event": "raft", "history": "client"}
_OMITTED = frozenset(
    {"incarnation", "topic_id", "cluster_id", "directory", "directories", "listeners", "api_key"}
)
# Periodic events, and the first of each connection or voter, which are not shown: they would crowd
# out all others.
STEADY_APIS = frozenset(
    {"Fetch", "FetchSnapshot", "BrokerHeartbeat", "ApiVersions", "UpdateRaftVoter"}
)
_BEATS = ("Heartbeat", "ConsumerGroupHeartbeat", "ShareGroupHeartbeat")  # shown if they tell news
STEADY_KINDS = frozenset({"ack", "append", "fetch", "flush", "hw"})  # of replicas and the quorum
UNTOLD_TABLES = frozenset(
    {"publish", "replica_log"}
)  # every image; every record that an ended process held
_OUTCOMES = {"ok": "acknowledged", "fail": "failed", "info": "outcome unknown"}
_SAME_AS = {"maximal_isr": "isr", "hw_old": "hw_new"}  # left out where both are the same
_SUBJECT = frozenset(
    {"broker", "node", "topic", "part", "kind", "leader_epoch", "partition_epoch", "epochs"}
)


def is_told_of(row: RpcRow, kind: str, details: Sequence[Any]) -> bool:
    """True for an event of an exchange, of no steady API, that a failure report shows."""
    if row.api == "Produce":
        return row.src != OWN_CLIENT  # whose own row tells of it
    return row.api not in _BEATS or _tells_news(kind, details)


def is_send(event: Event) -> bool:
    """True for the outcome of a record that the test produced."""
    return event[2] == "history" and bool(event[3]["f"] == "send")


def _tells_news(kind: str, details: Sequence[Any]) -> bool:
    """A heartbeat's response has an error or an assignment for its member, or the client got
    another one.
    """
    if kind != "response":
        return kind == "answer"
    body = details[0]
    return bool(body.error_code) or getattr(body, "assignment", None) is not None


def together(events: Sequence[Event]) -> list[Sequence[Event]]:
    """Events by the lines that they make.

    One line are: what follows each other of an internal topic, because its fifty partitions would
    crowd out what the test itself did; records that the test produced to a partition with the same
    outcome, because they would crowd out why; and all hits of a planted fault, at its first.
    """
    hits: dict[str, list[Event]] = {}
    others: list[Event] = []
    for event in events:
        if (fault := _hit_fault(event)) is None:
            others.append(event)
        else:
            if fault not in hits:
                others.append(event)
            hits.setdefault(fault, []).append(event)
    lines: list[Sequence[Event]] = []
    for key, group in groupby(others, key=_line_of):
        following = list(group)
        if key is None:
            lines += [hits.get(_hit_fault(event) or "", [event]) for event in following]
        else:
            lines.append(following)
    return lines


def _hit_fault(event: Event) -> str | None:
    """The planted fault of which the event is a hit; that of an answer has its request."""
    if event[2] != "fault" or event[3].get("phase") != "hit" or event[3].get("detail"):
        return None
    return str(event[3]["action"])


def _line_of(event: Event) -> tuple[Any, ...] | None:
    """The key that events in one line share; None: they are lines of their own."""
    row = event[3] if len(event) > 3 else None
    if not isinstance(row, Mapping):
        return None
    if event[2] == "partition_event":
        return (row["topic"],) if row["topic"] in INTERNAL_TOPICS else None
    if is_send(event):
        return (row["topic"], row["part"], row["type"], row["error"])
    return None


def readable(events: Sequence[Event]) -> str:
    """The line of an event, or of several of one topic (``together``)."""
    sequence, at_ms, kind, *details = events[0]
    start = f"{at_ms / 1000:10.3f}s {sequence:>7} {_KINDS.get(kind, kind):<9}"
    if len(events) > 1:
        details = [_several(events)]
    line = f"{start} {' '.join(filter(None, map(_detail, details)))}".rstrip()
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _several(events: Sequence[Event]) -> str:
    """The text of events that are one line."""
    first, last = events[0][3], events[-1][3]
    if _hit_fault(events[0]) is not None:
        nodes = sorted({str(node) for event in events for node in event[3]["targets"]})
        return f"{first['action']} hit {len(events)} times, on {', '.join(nodes)}"
    if first.get("f") == "send":
        words = [f"produce {first['topic']}-{first['part']} {_OUTCOMES[first['type']]}"]
        words += [f"{len(events)} records"]
        if first["offset"] is not None and last["offset"] is not None:
            words += [f"offsets {first['offset']} to {last['offset']}"]
        if first["error"] is not None:
            words += [f"error={_value(first['error'])}"]
        return " ".join(words)
    kinds = Counter(event[3]["kind"] for event in events)
    words = [f"{kind} {times}" for kind, times in kinds.most_common()]
    return f"{first['topic']}: {len(events)} events ({', '.join(words)})"


def _detail(part: Any) -> str:
    if hasattr(part, "api_key"):
        return compact(part)
    if isinstance(part, Mapping):
        return " ".join(_send(part) if part.get("f") == "send" else _row(part))
    return "" if part is None or _is_uuid(part) else str(part)


def sender(row: RpcRow) -> str:
    """The node that sent a request; an app by its name, another client by its ``client.id``."""
    if row.src > OWN_CLIENT:
        return str(row.src)
    if row.program is not None:
        return printable(row.program)
    return printable(row.client_id or "") or "client"


def _is_uuid(part: Any) -> bool:
    text = str(part)
    return isinstance(part, UUID) or (len(text) == 36 and text.count("-") == 4)


def _send(row: Mapping[str, Any]) -> Iterator[str]:
    """A record that the test's client produced, from its beginning to its end."""
    yield f"produce {row['topic']}-{row['part']}"
    yield _OUTCOMES[row["type"]]
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
        if name in _SAME_AS and value == row.get(_SAME_AS[name]):
            continue
        if value is not None and name not in _SUBJECT and name not in _OMITTED:
            yield f"{name}={_value(value)}"


def compact(message: Struct) -> str:
    """A message: its fields that are not as by default."""
    return " ".join(_fields(message))


def _fields(message: Struct) -> Iterator[str]:
    for spec in message.schema:
        value = getattr(message, spec.name)
        if spec.name in _OMITTED or isinstance(value, UUID) or value in (None, spec.default):
            continue
        yield f"{spec.name}={_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, Struct):
        return "{" + compact(value) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_value(item) for item in value) + "]"
    return value.name if isinstance(value, Enum) else str(value)
