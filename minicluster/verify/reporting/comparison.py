"""Two runs or logs compared: their last images, and each partition's history.

Differences in kind come first: a topic, a change or an election that one side alone has. Then those
in replicas: the same kind of change by other brokers. Then those in epochs. Offsets, ids and
moments always differ and are shown, not compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from minicluster.errors import UserError, counted
from minicluster.moments import Span
from minicluster.protocol import records as r
from minicluster.values import Value, replace
from minicluster.verify.evidence.operations import operations_of
from minicluster.verify.evidence.run import Run
from minicluster.verify.reporting.scale import Clock
from minicluster.verify.reporting.timeline import PartitionLine, PartitionSpan, timeline

TOPIC, BROKER = 2, 4  # ConfigResource.Type
UNSEEN = "assigns directories or marks replicas"  # nothing else of the partition changes
_OF_RESOURCE = {TOPIC: "topic", BROKER: "broker"}


class Level(IntEnum):
    """The depth of a difference; the lowest is the gravest."""

    KIND = 0
    REPLICAS = 1
    EPOCHS = 2


class Difference(Value, order=True):
    """One difference: what it is about, and what either side has."""

    level: Level
    about: str
    left: str
    right: str


class Change(Value):
    """One change of a partition.

    Shapes:  kinds: what happened, such as an election; replicas: leader, ISR and replicas after it;
             epochs: leader epoch and partition epoch after it.
    """

    at: str
    kinds: tuple[str, ...]
    replicas: tuple[int, tuple[int, ...], tuple[int, ...]]
    epochs: tuple[int, int]

    def at_level(self, level: Level) -> object:
        """The part of a change that is compared at a level."""
        return (self.kinds, self.replicas, self.epochs)[level]

    def __str__(self) -> str:
        leader, isr, _ = self.replicas
        who = "no leader" if leader < 0 else f"leader {leader}"
        epochs = "/".join(map(str, self.epochs))
        return f"{' + '.join(self.kinds)}: {who}, ISR {list(isr)}, epochs {epochs} ({self.at})"


class Comparison(Value):
    """The differences of two runs, the gravest first, and how much is the same.

    Shapes:  same: partitions with the same history at every level.
    """

    differences: tuple[Difference, ...]
    partitions: int
    same: int

    @property
    def is_same(self) -> bool:
        """No difference at any level."""
        return not self.differences

    def count(self, level: Level) -> int:
        """The number of differences of one level."""
        return sum(difference.level is level for difference in self.differences)


def compare(left: Run, right: Run) -> Comparison:
    """Compare two runs or logs.

    Errors:  UnknownState.
    """
    for side in (left, right):
        side.check_state()
    differences = [*_images(_Image.of(left), _Image.of(right))]
    histories = _histories(left), _histories(right)
    names = sorted(set(histories[0]) | set(histories[1]))
    same = 0
    for name in names:
        left_changes, right_changes = (side.get(name) for side in histories)
        if left_changes is None or right_changes is None:
            differences.append(
                Difference(Level.KIND, name, _presence(left_changes), _presence(right_changes))
            )
            continue
        difference = _first_difference(name, left_changes, right_changes)
        same += difference is None
        if difference is not None:
            differences.append(difference)
    return Comparison(tuple(sorted(differences)), len(names), same)


def span_of(run: Run) -> Span:
    """The time between the first and the last committed record."""
    times = [batch.max_timestamp for batch in run.committed]
    return Span(min(times, default=0), max(times, default=0))


def as_of(run: Run, place: str, *, what: str) -> Run:
    """A run up to a place: an offset, or a moment as ``Span`` reads it; both are included.

    Errors:  UserError for a place that is outside, UnknownState.
    """
    run.check_state()
    if run.on_zookeeper:
        raise UserError(f"{what}: a run on ZooKeeper is compared as a whole")
    span = span_of(run)
    if place.isdecimal():
        last = int(place)
    else:
        at_ms = span.moment_ms(place, what=what)
        until = (b.last_offset for b in reversed(run.committed) if b.max_timestamp <= at_ms)
        last = next(until, -1)
    first = 0 if run.start is None else run.start.end_offset - 1
    if not first <= last < run.extent.end_offset:
        offsets = f"offsets {first} to {run.extent.end_offset - 1}, {span}"
        raise UserError(f"{what}: {place!r} is outside the log, which has {offsets}")
    committed = tuple(batch for batch in run.committed if batch.last_offset <= last)
    return replace(run, committed=committed)


def compare_states(left: Run, right: Run) -> Comparison:
    """Compare two moments of one run: the state of each partition, broker and config then."""
    before, after = (replace(_Image.of(side), passages={}) for side in (left, right))
    differences = [*_images(before, after)]
    states = _states(left), _states(right)
    names = sorted(set(states[0]) | set(states[1]))
    same = 0
    for name in names:
        old, new = (side.get(name) for side in states)
        if old is None or new is None:
            differences.append(Difference(Level.KIND, name, _then(old), _then(new)))
        elif (old.replicas, old.epochs) == (new.replicas, new.epochs):
            same += 1
        else:
            level = Level.EPOCHS if old.replicas == new.replicas else Level.REPLICAS
            differences.append(Difference(level, name, _then(old), _then(new)))
    return Comparison(tuple(sorted(differences)), len(names), same)


def _states(run: Run) -> dict[str, Change]:
    """The latest change of each partition that there is."""
    clock = Clock(run)
    lines = [line for line in timeline(run).partitions if line.end is None]
    return {line.name: [*_changes(line, clock)][-1] for line in lines}


def _then(change: Change | None) -> str:
    return "is not there" if change is None else str(change)


def _presence(changes: Sequence[Change] | None) -> str:
    return "is not there" if changes is None else f"has {counted(len(changes), 'change')}"


# --- histories -----------------------------------------------------------------------------------


def _histories(run: Run) -> dict[str, list[Change]]:
    """The changes of each partition; of a name that was used again, by the number of its use."""
    clock, uses, histories = Clock(run), Counter[str](), {}
    for line in sorted(timeline(run).partitions, key=lambda line: line.spans[0].start):
        uses[line.name] += 1
        again = f" (life {uses[line.name]})" if uses[line.name] > 1 else ""
        histories[line.name + again] = list(_changes(line, clock))
    return histories


def _changes(line: PartitionLine, clock: Clock) -> Iterator[Change]:
    before: PartitionSpan | None = None
    for span in line.spans:
        at = clock.text(clock.of(span.start))
        kinds = tuple(_kinds(before, span)) or (UNSEEN,)
        yield Change(at, kinds, _replicas(span), _epochs(span))
        before = span
    if line.end is not None and before is not None:
        at = clock.text(clock.of(line.end))
        yield Change(at, ("is deleted",), _replicas(before), _epochs(before))


def _replicas(span: PartitionSpan) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return span.leader, tuple(sorted(span.isr)), span.replicas


def _epochs(span: PartitionSpan) -> tuple[int, int]:
    return span.leader_epoch, span.partition_epoch


def _kinds(before: PartitionSpan | None, after: PartitionSpan) -> Iterator[str]:
    """The kinds of a change, in words that name no broker."""
    if before is None:
        yield f"is created with {counted(len(after.replicas), 'replica')}"
        return
    moved = set(after.replicas) != set(before.replicas)
    if moved:
        yield f"replicas go from {len(before.replicas)} to {len(after.replicas)}"
    if after.leader != before.leader:
        if after.leader < 0:
            yield "loses its leader"
        elif moved or after.leader in before.isr or after.leader in before.elr:
            yield "elects a leader"
        else:
            yield "elects a leader uncleanly"
    elif after.leader_epoch != before.leader_epoch:
        yield "bumps its leader epoch"
    lost, won = set(before.isr) - set(after.isr), set(after.isr) - set(before.isr)
    if lost:
        yield f"ISR loses {len(lost)}"
    if won:
        yield f"ISR gains {len(won)}"
    if before.recovering != after.recovering:
        yield "recovers" if before.recovering else "begins to recover"
    if before.elr != after.elr:
        yield f"ELR has {len(after.elr)}"


def _first_difference(
    name: str, left: Sequence[Change], right: Sequence[Change]
) -> Difference | None:
    """The first difference of two histories at the gravest level at which they differ."""
    for level in Level:
        for number in range(max(len(left), len(right))):
            left_change = left[number] if number < len(left) else None
            right_change = right[number] if number < len(right) else None
            if (
                left_change is None
                or right_change is None
                or left_change.at_level(level) != right_change.at_level(level)
            ):
                about = f"{name}, change {number + 1}"
                return Difference(level, about, _shown(left_change), _shown(right_change))
    return None


def _shown(change: Change | None) -> str:
    return "has no more changes" if change is None else str(change)


# --- images --------------------------------------------------------------------------------------


class _Image(Value):
    """The last state of a log, but for partitions; and how often each broker went through what."""

    features: Mapping[str, int]
    brokers: Mapping[int, str]
    passages: Mapping[int, Counter[str]]
    configs: Mapping[tuple[int, str, str], str | None]

    @classmethod
    def of(cls, run: Run) -> _Image:
        features: dict[str, int] = {}
        configs: dict[tuple[int, str, str], str | None] = {}
        for record in _records(run):
            if isinstance(record, r.FeatureLevelRecord):
                features[record.name] = record.feature_level
            elif isinstance(record, r.ConfigRecord):
                configs[record.resource_type, record.resource_name, record.name] = record.value
        line = timeline(run)
        return cls(
            features={name: level for name, level in features.items() if level},
            brokers={broker: spans[-1].state for broker, spans in line.brokers.items()},
            passages={
                broker: Counter(span.state for span in spans)
                for broker, spans in line.brokers.items()
            },
            configs={key: value for key, value in configs.items() if value is not None},
        )


def _records(run: Run) -> Iterator[Any]:
    if run.start is not None:
        yield from (versioned.record for versioned in run.start.records)
    first = 0 if run.start is None else run.start.end_offset
    for operation in operations_of(run.committed):
        yield from (entry.record for entry in operation.entries if entry.offset >= first)


def _images(left: _Image, right: _Image) -> Iterator[Difference]:
    tables: tuple[tuple[str, Mapping[Any, Any], Mapping[Any, Any]], ...] = (
        ("feature", left.features, right.features),
        ("broker", left.brokers, right.brokers),
        ("config", left.configs, right.configs),
    )
    for word, mine, its in tables:
        for key in sorted(set(mine) | set(its)):
            left_value, right_value = mine.get(key), its.get(key)
            if left_value != right_value:
                about = _config(key) if word == "config" else f"{word} {key}"
                yield Difference(Level.KIND, about, _value(left_value), _value(right_value))
    for broker in sorted(set(left.passages) & set(right.passages)):
        before, after = left.passages[broker], right.passages[broker]
        if before != after:
            about = f"broker {broker}, in its history"
            yield Difference(Level.KIND, about, _counts(before), _counts(after))


def _config(key: tuple[int, str, str]) -> str:
    resource, name, config = key
    kind = _OF_RESOURCE.get(resource, f"resource {resource}")
    return f"config {config} of {kind} {name or '(default)'}"


def _value(value: object) -> str:
    return "is not there" if value is None else f"is {value}"


def _counts(passages: Counter[str]) -> str:
    return ", ".join(
        f"{counted(count, 'time')} {state}" for state, count in sorted(passages.items())
    )
