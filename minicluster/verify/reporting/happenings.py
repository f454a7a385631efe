"""The story of a run in sentences: elections, ISRs, fencing, rejections, planted faults.

A story's steps say what was done to the cluster, this says what came of it. It is read from the
committed log (``timeline``) and from the trace, and is the same on a terminal and on the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from minicluster.errors import counted
from minicluster.values import Value
from minicluster.verify.reporting.rejections import Rejection
from minicluster.verify.reporting.scale import Clock
from minicluster.verify.reporting.story import Story
from minicluster.verify.reporting.timeline import BrokerSpan, PartitionSpan, Timeline

TOGETHER_MS = 100  # what happens to several brokers or partitions within it is one sentence
NAMED_MAX = 4


class Happening(Value, order=True):
    """One sentence about the cluster.

    Shapes:  more: the sentence that Kafka logs, where it has one. is_rejection: a controller has
             rejected a request, the last time at until_ms.
    """

    at_ms: int
    text: str
    more: str = ""
    is_rejection: bool = False
    until_ms: int = -1


def happenings(line: Timeline, story: Story, clock: Clock) -> list[Happening]:
    """All that a run's log and trace tell, in order; nothing where no time is kept."""
    if not clock.is_timed:
        return []
    found = [
        *(
            Happening(leader.start_ms, f"controller {leader.node} is active, epoch {leader.epoch}")
            for leader in story.leaders
        ),
        *_hits(story),
        *_brokers(line, clock),
        *_partitions(line, clock),
        *(Happening(moment.at_ms, moment.text) for moment in story.programs),
        *(_rejected(rejection, line, clock) for rejection in story.rejections),
    ]
    return sorted(found)


def _hits(story: Story) -> Iterator[Happening]:
    """Planted faults and answers on demand that acted; what acts again and again is one."""
    moments: dict[str, list[int]] = {}
    for at_ms, text in story.hits:
        moments.setdefault(text, []).append(at_ms)
    for text, at in moments.items():
        yield Happening(at[0], f"{text}{_again(len(at), at[-1])}")


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


def _rejected(rejection: Rejection, line: Timeline, clock: Clock) -> Happening:
    sender = "a node" if rejection.broker is None else f"broker {rejection.broker}"
    partition = "" if rejection.topic is None else f"{rejection.topic}-{rejection.partition}"
    isr = rejection.isr or ()
    asks = f"sends {rejection.api}{' for ' * bool(partition)}{partition}"
    if isr:
        asks = f"asks for ISR {list(isr)} of {partition}"
    states = [(broker, _state_at(line, clock, broker, rejection.at_ms)) for broker in isr]
    absent = [f"{broker} is {state}" for broker, state in states if state != "active"]
    why = ", ".join(absent) or rejection.reason
    again = _again(rejection.count, rejection.until_ms)
    text = (
        f"{sender} {asks}; controller {rejection.controller} rejects it{again}: "
        f"{rejection.error}, {why}"
    )
    return Happening(rejection.at_ms, text, rejection.message, True, rejection.until_ms)


def _again(count: int, until_ms: int) -> str:
    return f", {count:,} times until {until_ms / 1000:.1f}s" if count > 1 else ""


def _state_at(line: Timeline, clock: Clock, broker: int, at_ms: int) -> str:
    """The state of a broker at a moment, as the log has it."""
    spans = [span for span in line.brokers.get(broker, ()) if clock.of(span.start) <= at_ms]
    return spans[-1].state if spans else "not registered"
