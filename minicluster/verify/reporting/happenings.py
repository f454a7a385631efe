"""What happened in a run, in sentences: elections, ISRs, fencing, rejections, planted faults.

A story's steps say what was done to the cluster, this says what came of it. It is read from the
committed log (``timeline``) and from the trace, and is the same on a terminal and on the page.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import pyarrow.compute as pc

from minicluster.errors import counted
from minicluster.verify.evidence.run import Run
from minicluster.verify.reporting.scale import Clock
from minicluster.verify.reporting.story import Story, trace_rows
from minicluster.verify.reporting.timeline import BrokerSpan, PartitionSpan, Timeline

TOGETHER_MS = 100  # what happens to several brokers or partitions within it is one sentence
AGAIN_MS = 10_000  # the same rejection after a longer while is another one
NAMED_MAX = 4
_ALIKE = ("node", "api", "broker", "topic", "part", "error", "reason")


@dataclass(frozen=True, slots=True, order=True)
class Happening:
    """One sentence about the cluster.

    Shapes:  more: the sentence that Kafka logs, where it has one. is_rejection: a controller has
             rejected a request, the last time at until_ms.
    """

    at_ms: int
    text: str
    more: str = ""
    is_rejection: bool = False
    until_ms: int = -1


def happenings(run: Run, line: Timeline, story: Story, clock: Clock) -> list[Happening]:
    """All that a run's log and trace tell, in order; nothing where no time is kept."""
    if not clock.is_timed:
        return []
    found = [
        *(
            Happening(leader.start_ms, f"controller {leader.node} is active, epoch {leader.epoch}")
            for leader in story.leaders
        ),
        *(Happening(at_ms, text) for at_ms, text in story.hits),
        *_brokers(line, clock),
        *_partitions(line, clock),
        *_rejections(run, line, clock),
    ]
    return sorted(found)


# --- brokers and partitions, from the log --------------------------------------------------------


def _brokers(line: Timeline, clock: Clock) -> Iterator[Happening]:
    changes = []
    for broker, spans in sorted(line.brokers.items()):
        for before, after in zip([None, *spans], spans, strict=False):
            changes.append((clock.of(after.start), _of_broker(before, after), str(broker)))
    for at_ms, text, brokers in _together(changes):
        yield Happening(at_ms, f"broker{'s' * (len(brokers) > 1)} {_listed(brokers)} {text}")


def _of_broker(before: BrokerSpan | None, after: BrokerSpan) -> str:
    if before is None:
        return "registered"
    if before.epoch != after.epoch and after.epoch >= 0:
        return "registered again"
    return "unfenced" if (before.state, after.state) == ("fenced", "active") else after.state


def _partitions(line: Timeline, clock: Clock) -> Iterator[Happening]:
    changes = []
    created: dict[tuple[int, str], list[PartitionSpan]] = {}
    for partition in line.partitions:
        first = partition.spans[0]
        created.setdefault((clock.of(first.start), partition.topic), []).append(first)
        if partition.end is not None:
            changes.append((clock.of(partition.end), "deleted", partition.name))
        for before, after in pairwise(partition.spans):
            if text := _of_partition(before, after):
                changes.append((clock.of(after.start), text, partition.name))
    for (at_ms, topic), spans in created.items():
        what = f"{topic}-0: leader {spans[0].leader}, ISR {list(spans[0].isr)}"
        more = f"{topic} has {counted(len(spans), 'partition')}"
        yield Happening(at_ms, what if len(spans) == 1 else more)
    for at_ms, text, names in _together(changes):
        yield Happening(at_ms, f"{_listed(names)}: {text}")


def _of_partition(before: PartitionSpan, after: PartitionSpan) -> str:
    parts = []
    if before.leader != after.leader:
        was, now = (str(span.leader) if span.leader >= 0 else "none" for span in (before, after))
        parts.append(f"leader {was} → {now}")
    if set(before.isr) != set(after.isr):
        parts.append(f"ISR {list(before.isr)} → {list(after.isr)}")
    return ", ".join(parts)


def _together(
    changes: Iterable[tuple[int, str, str]],
) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Changes with the same words at about the same moment as one, with the names of all."""

    def key(change: tuple[int, str, str]) -> tuple[int, str]:
        return change[0] // TOGETHER_MS, change[1]

    for (_, text), group in groupby(sorted(changes, key=key), key):
        alike = list(group)
        yield min(change[0] for change in alike), text, [change[2] for change in alike]


def _listed(names: Sequence[str]) -> str:
    shown, left = names[:NAMED_MAX], len(names) - NAMED_MAX
    if left > 0:
        return f"{', '.join(shown)} and {left} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))


# --- rejections, from the trace ------------------------------------------------------------------


def _rejections(run: Run, line: Timeline, clock: Clock) -> Iterator[Happening]:
    """What controllers have rejected; the same again and again is one happening, with its count."""
    columns = "seq vt node rpc api broker topic part error reason message"
    rows = trace_rows(run, "refusal", columns)
    asked = _proposals(run, rows)
    open_ones: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    groups = []
    for row in rows:
        key = tuple(
            row[name] for name in ["node", "api", "broker", "topic", "part", "error", "reason"]
        )
        key += (asked.get((row["rpc"], row["part"])),)
        group = open_ones.get(key)
        if group is None or row["vt"] - group[-1]["vt"] > AGAIN_MS:
            group = open_ones[key] = []
            groups.append((key, group))
        group.append(row)
    for key, group in groups:
        yield _rejection(group, key[-1], line, clock)


def _rejection(
    group: Sequence[Mapping[str, Any]], isr: tuple[int, ...] | None, line: Timeline, clock: Clock
) -> Happening:
    first, last = group[0], group[-1]
    who = "a node" if first["broker"] is None else f"broker {first['broker']}"
    about = "" if first["topic"] is None else f" for {first['topic']}-{first['part']}"
    asks = f"sends {first['api']}{about}"
    if isr is not None:
        asks = f"asks for ISR {list(isr)} of {first['topic']}-{first['part']}"
    states = ((broker, _state_at(line, clock, broker, first["vt"])) for broker in isr or ())
    absent = [f"{broker} is {state}" for broker, state in states if state != "active"]
    why = ", ".join(absent) or first["reason"]
    times = f", {len(group)} times until {last['vt'] / 1000:.1f}s" if len(group) > 1 else ""
    text = f"{who} {asks}; controller {first['node']} rejects it{times}: {first['error']}, {why}"
    return Happening(first["vt"], text, first["message"] or "", True, last["vt"])


def _state_at(line: Timeline, clock: Clock, broker: int, at_ms: int) -> str:
    """The state of a broker at a moment, as the log has it."""
    spans = [span for span in line.brokers.get(broker, ()) if clock.of(span.start) <= at_ms]
    return spans[-1].state if spans else "not registered"


def _proposals(
    run: Run, rows: Sequence[Mapping[str, Any]]
) -> dict[tuple[int, int], tuple[int, ...]]:
    """The ISRs that the rejected AlterPartitions asked for, by request and partition.

    One request names several topics by their ids; of those only one with this partition is told.
    """
    wanted = [row["rpc"] for row in rows if row["api"] == "AlterPartition"]
    if not wanted:
        return {}
    proposed: dict[tuple[int, int], tuple[int, ...]] = {}
    several = set()
    for row in trace_rows(run, "rpc", "seq id request", pc.field("id").isin(wanted)):
        for topic in json.loads(row["request"])["topics"]:
            for partition in topic["partitions"]:
                key = row["id"], partition["partitionIndex"]
                several |= {key} & proposed.keys()
                members = partition.get("newIsrWithEpochs") or ()
                proposed[key] = tuple(
                    partition.get("newIsr") or (member["brokerId"] for member in members)
                )
    return {key: isr for key, isr in proposed.items() if key not in several}
