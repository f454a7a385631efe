"""The trace of a run as lines of text: who did what, in the order of events.

A moment, the event's number, the nodes, and what happened; requests with their responses.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import pyarrow.compute as pc

from minicluster.errors import UserError
from minicluster.values import Value
from minicluster.verify.evidence.response_errors import response_errors
from minicluster.verify.evidence.run import Run
from minicluster.verify.evidence.trace_tables import DamagedTable, read_table, trace_rows
from minicluster.verify.reporting.scale import Clock

LINES = 25  # on either side of a place
PERIODIC = frozenset({"Fetch", "BrokerHeartbeat", "FetchSnapshot"})
_TABLES = (
    "rpc", "partition_event", "raft_event", "publish", "refusal", "history", "program_log", "fault",
)  # fmt: skip
_STEADY = frozenset({"append", "flush", "hw", "ack"})
_OMITTED = frozenset(
    {
        "run_id", "vt", "seq", "kind", "broker", "node", "topic", "part", "topic_id", "incarnation",
        "leader_epoch", "partition_epoch", "src_incarnation", "crc", "image_hash", "follower_leos",
        "epochs", "directory",
    }
)  # fmt: skip


class Event(Value, order=True):
    """One event of the trace.

    Shapes:  nodes: those that it is about; api: of a request, or of its rejection.
    """

    seq: int
    at_ms: int
    text: str
    nodes: tuple[int, ...] = ()
    api: str = ""
    is_steady: bool = False  # happens all the time


def trace_lines(
    run: Run,
    *,
    around: tuple[str, int] | None = None,
    node: int | None = None,
    api: str | None = None,
    every: bool = False,
) -> Iterator[str]:
    """The events of a run as lines.

    Shapes:  around: ("offset", of the metadata log) or ("ms", a moment): the lines next to it;
             node, api: only events about them; every: fetches, heartbeats and appends as well,
             which are left out unless the api is one of them.
    Errors:  UserError for a run without a trace, a table that cannot be read, or an api that the
             run has no request of.
    """
    events = sorted(_events(run))
    if not events:
        raise UserError(f"{run.path}: there is no trace; only runs of minicluster have one")
    if api is not None and not any(event.api == api for event in events):
        known = ", ".join(sorted({event.api for event in events if event.api}))
        raise UserError(f"--api: the run has no request {api!r}; it has {known}")
    shown = [
        event
        for event in events
        if (node is None or node in event.nodes)
        and (api is None or event.api == api)
        and (every or not event.is_steady or api is not None)
    ]
    if node is not None and not any(node in event.nodes for event in events):
        nodes = sorted({node for event in events for node in event.nodes if node >= 0})
        raise UserError(f"--node: no event is about node {node}; nodes are {_short(nodes)[1:-1]}")
    if around is None:
        yield from map(_line, shown)
        return
    end = run.extent.end_offset
    if around[0] == "offset" and around[1] >= end:
        raise UserError(f"--around: the log ends at offset {end - 1}; a moment has a unit, as 10s")
    moment = around[1] if around[0] == "ms" else Clock(run).of(around[1])
    place = bisect_left([event.at_ms for event in shown], moment)
    for event in shown[max(0, place - LINES) : place]:
        yield _line(event)
    what = f"offset {around[1]}, at {moment / 1000:.3f}s" if around[0] == "offset" else ""
    yield f"{moment / 1000:10.3f}s {'':>8} ---- {what or 'here'} ----"
    for event in shown[place : place + LINES]:
        yield _line(event)


def numbered_events(run: Run, numbers: Collection[int]) -> dict[int, Event]:
    """The events of a run that have one of some numbers; those of damaged tables are missing."""
    events: dict[int, Event] = {}
    for table in _TABLES if numbers else ():
        if table != "rpc":
            rows = trace_rows(run, table, keep=pc.field("seq").isin(list(numbers)))
            events |= {row["seq"]: event_of(table, row) for row in rows}
    return events


def _line(event: Event) -> str:
    return f"{event.at_ms / 1000:10.3f}s {event.seq:>8} {event.text}"


def _events(run: Run) -> Iterator[Event]:
    for table in _TABLES:
        if (file := run.trace.get(table)) is None:
            continue
        try:
            rows = [
                row
                for piece in read_table(file, table, as_written=True)
                for row in piece.to_pylist()
            ]
        except DamagedTable as error:
            raise UserError(str(error)) from None
        for row in rows:
            yield _request(row) if table == "rpc" else event_of(table, row)


def _request(row: Mapping[str, Any]) -> Event:
    """A request at the moment when it was sent, with all that became of it."""
    arrived = "never arrived"
    if row["handled_ms"] is not None:
        arrived = f"handled {row['handled_ms'] / 1000:.3f}s"
    ended = "no response"
    if row["completed_ms"] is not None and row["response"] is not None:
        error = ", ".join(response_errors(row["response"])) or row["error"] or "NONE"
        ended = f"{error} {row['completed_ms'] / 1000:.3f}s"
    written = row["records_written"] or ()
    wrote = f"  wrote {', '.join(map(str, written))}" if written else ""
    src = "client" if row["src"] == -1 else str(row["src"])
    text = (
        f"{'request':<9} {row['api']}#{row['id']} v{row['version']} {src}>{row['dst']}  "
        f"{arrived}, {ended}{wrote}  {_short(row['request'])}"
    )
    steady = row["api"] in PERIODIC
    nodes = (row["src"], row["dst"])
    return Event(row["send_seq"], row["sent_ms"] or row["vt"], text, nodes, row["api"], steady)


def event_of(table: str, row: Mapping[str, Any]) -> Event:
    """A row of the trace as an event, in words."""
    if table == "program_log":
        said = f"{row['program']} {row['level']} {row['logger']}: {row['text']}"
        return Event(row["seq"], row["vt"], f"{'program':<9} {said}", (row["node"],))
    # A rejection has both: the controller that rejects, and the broker that has asked.
    nodes = tuple(row[name] for name in ("node", "broker") if row.get(name) is not None)
    words = [f"{_NAMES[table]:<9}"]
    if nodes:
        words.append(f"node {nodes[0]:<3}")
        words += [f"broker {broker}" for broker in nodes[1:]]
    if row.get("topic"):
        words.append(f"{row['topic']}-{row['part']}")
    if row.get("kind"):
        words.append(row["kind"])
    epochs = [str(row[name]) for name in ("leader_epoch", "partition_epoch") if _has(row, name)]
    if epochs:
        words.append(f"epochs {'/'.join(epochs)}")
    words += [
        f"{name}={value if name == 'message' else _short(value)}"
        for name, value in row.items()
        if value is not None and value != [] and name not in _OMITTED
    ]
    steady = row.get("kind") in _STEADY or table == "publish"
    api = row.get("api") or ""
    return Event(row["seq"], row["vt"], " ".join(words), nodes, api, steady)


_NAMES: Mapping[str, str] = {
    "partition_event": "partition", "raft_event": "raft", "publish": "publish",
    "refusal": "refusal", "history": "client", "fault": "fault",
}  # fmt: skip


def _has(row: Mapping[str, Any], name: str) -> bool:
    return row.get(name) is not None


def _short(value: Any, width: int = 110) -> str:
    text = f"[{','.join(map(str, value))}]" if _is_list(value) else str(value)
    return text if len(text) <= width else f"{text[: width - 1]}…"


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)
