"""The cause chain of a finding: the events that lead to it, in their order.

The record itself, the states of its partition before, the last record about each broker that the
finding is about, the request that wrote the record, the events of the trace by which it holds, the
step and the disturbances at that time, and the planted faults that acted. Idle records (NoOps) are
none of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import UUID

from minicluster.protocol import records as r
from minicluster.protocol.json_form import to_json
from minicluster.values import Value
from minicluster.verify.evidence.operations import operations_of
from minicluster.verify.evidence.run import Run
from minicluster.verify.model import Finding
from minicluster.verify.reporting.scale import Clock
from minicluster.verify.reporting.story import Request, story_of
from minicluster.verify.reporting.trace_text import Event, numbered_events
from minicluster.zookeeper.log.columns import OPERATIONS
from minicluster.zookeeper.log.text import operation_text
from minicluster.zookeeper.znodes import paths

BEFORE = 3  # states of the partition
NEAR_MS = 1_000  # a planted fault that acted so shortly before
_OF_BROKER = (
    r.RegisterBrokerRecord, r.UnregisterBrokerRecord, r.FenceBrokerRecord, r.UnfenceBrokerRecord,
    r.BrokerRegistrationChangeRecord,
)  # fmt: skip


class Cause(Value, order=True):
    """One event of a chain.

    Shapes:  offset: of a record, -1 for anything else; kind: record, here, request, event, step,
             disturbance or fault.
    """

    at_ms: int
    offset: int
    kind: str
    text: str


class Line(Value):
    """A record of the log with its subject; its text is made on demand.

    Shapes:  record: of a log of ZooKeeper the text of an operation.
    """

    offset: int
    record: Any
    version: int
    topic: str
    partition: int
    broker: int

    @property
    def text(self) -> str:
        """The record in one line."""
        if isinstance(self.record, str):
            return self.record
        is_of_partition = self.topic and self.partition >= 0
        where = f"{self.topic}-{self.partition}" if is_of_partition else ""
        return describe(self.record, self.version, where)


class Chains:
    """The cause chains of one run, and the story that they are taken from.

    All of it is read at once: the files of a run may be gone when its report is shown.
    """

    def __init__(self, run: Run, findings: Iterable[Finding]) -> None:
        self.run, self.story, self.clock = run, story_of(run), Clock(run)
        self.lines = list(_operations(run) if run.on_zookeeper else _lines(run))
        self.brokers = {line.broker for line in self.lines if line.broker >= 0}
        own = [finding for finding in findings if finding.run == run.name]
        named = {number for finding in own for number in (finding.earlier, finding.event)}
        self._events = numbered_events(run, named - {-1})

    def request(self, finding: Finding) -> Request | None:
        """The request that a finding is about."""
        return self.story.requests.get(finding.request)

    def _events_of(self, finding: Finding) -> list[Event]:
        """The events by which a finding holds, in their order."""
        numbers = (finding.earlier, finding.event)
        return [self._events[number] for number in numbers if number in self._events]

    def _event(self, finding: Finding) -> Event | None:
        """The event by which a finding holds."""
        events = self._events_of(finding)
        return events[-1] if events else None

    def moment(self, finding: Finding) -> int | None:
        """The moment of a finding, None where nothing shows it."""
        if self.clock.is_timed and (event := self._event(finding)) is not None:
            return event.at_ms
        if finding.offset >= 0:
            return self.clock.of(finding.offset)
        if self.clock.is_timed and (request := self.request(finding)) is not None:
            return request.handled_ms or request.sent_ms
        return None

    def message(self, finding: Finding) -> str:
        """The finding's sentence, with its request in readable form and its event's moment."""
        text, request, event = finding.message, self.request(finding), self._event(finding)
        if request is not None:
            text = text.replace(f"request {finding.request}", f"the {request}", 1)
        if event is not None:
            text += f" (event {event.seq}, at {event.at_ms / 1000:g}s)"
        return text

    def of(self, finding: Finding) -> list[Cause]:
        """The events that lead to a finding; none where its moment is not known."""
        request, at_ms = self.request(finding), self.moment(finding)
        if at_ms is None:
            return []
        causes = [*self._records(finding, at_ms), *self._brokers(finding, at_ms)]
        for event in self._events_of(finding):
            causes.append(Cause(event.at_ms, -1, "event", " ".join(event.text.split())))
        if self.clock.is_timed and not self.clock.is_wall:
            causes += self._around(finding, request, at_ms)
            for event in self._events_of(finding)[:-1]:
                causes += self._disturbed(event.at_ms)
        return sorted(set(causes))

    def _records(self, finding: Finding, at_ms: int) -> Iterator[Cause]:
        about = [
            line
            for line in self.lines
            if line.topic
            and line.topic == finding.topic
            and finding.partition in (-1, line.partition)
            and self._is_before(line, finding, at_ms)
        ]
        for line in about[-BEFORE:]:
            yield self._cause(line, "record")
        for line in self.lines:
            if line.offset == finding.offset:
                yield self._cause(line, "here")

    def _brokers(self, finding: Finding, at_ms: int) -> Iterator[Cause]:
        """The last events about the brokers of a finding, about its record and its events."""
        about = {finding.broker}
        for line in self.lines:
            if line.offset == finding.offset:
                about |= {line.broker, *(getattr(line.record, "isr", None) or ())}
        for event in self._events_of(finding):
            about |= set(event.nodes)
        for broker in sorted(about & self.brokers):
            last = None
            for line in self.lines:
                if line.broker == broker:
                    if not self._is_before(line, finding, at_ms):
                        break
                    last = line
            if last is not None:
                yield self._cause(last, "record")

    def _is_before(self, line: Line, finding: Finding, at_ms: int) -> bool:
        """True for a record before that of a finding, or before its moment if it has none."""
        if finding.offset >= 0:
            return line.offset < finding.offset
        return self.clock.of(line.offset) <= at_ms

    def _around(self, finding: Finding, request: Request | None, at_ms: int) -> Iterator[Cause]:
        story = self.story
        writer = story.written.get(finding.offset)
        for near in {request, None if writer is None else story.requests.get(writer)}:
            if near is not None:
                error = "" if near.error in (None, "NONE") else f": {near.error}"
                yield Cause(near.sent_ms, -1, "request", f"{near}{error}")
        steps = [s for s in story.steps if s.performed and s.performed.at_ms <= at_ms]
        if steps and (performed := steps[-1].performed) is not None:
            text = f"step {steps[-1].number}: {steps[-1].text}"
            yield Cause(performed.at_ms, -1, "step", text)
        yield from self._disturbed(at_ms)

    def _disturbed(self, at_ms: int) -> Iterator[Cause]:
        """The disturbances at a moment, and the planted faults that acted shortly before."""
        for disturbance in self.story.disturbances:
            ends = disturbance.end_ms
            if disturbance.start_ms <= at_ms and (ends is None or ends >= at_ms):
                yield Cause(disturbance.start_ms, -1, "disturbance", disturbance.text)
        near = [hit for hit in self.story.hits if at_ms - NEAR_MS <= hit[0] <= at_ms]
        acted = Counter(text for _, text in near)
        for text, last_ms in {text: hit_ms for hit_ms, text in near}.items():
            times = "" if acted[text] == 1 else f", {acted[text]} times until here"
            yield Cause(last_ms, -1, "fault", f"{text}{times}")

    def _cause(self, line: Line, kind: str) -> Cause:
        return Cause(self.clock.of(line.offset), line.offset, kind, line.text)


def _changes_state(record: Any) -> bool:
    """True for a record after which a broker may be in another state."""
    is_change = isinstance(record, r.BrokerRegistrationChangeRecord)
    return not is_change or bool(record.fenced or record.in_controlled_shutdown)


def _lines(run: Run) -> Iterator[Line]:
    """Every record but the idle ones, with the names of its topic."""
    names: dict[UUID, str] = {}
    start = run.start.records if run.start is not None else ()
    for versioned in start:
        if isinstance(versioned.record, r.TopicRecord):
            names[versioned.record.topic_id] = versioned.record.name
    for operation in operations_of(run.committed):
        for entry in operation.entries:
            record: Any = entry.record
            if isinstance(record, r.NoOpRecord):
                continue
            if isinstance(record, r.TopicRecord):
                names[record.topic_id] = record.name
            topic = names.get(getattr(record, "topic_id", None), "")  # type: ignore[arg-type]
            partition = getattr(record, "partition_id", -1)
            broker = -1
            if isinstance(record, _OF_BROKER) and _changes_state(record):
                broker = getattr(record, "broker_id", getattr(record, "id", -1))
            yield Line(entry.offset, record, entry.version, topic, partition, broker)


def _operations(run: Run) -> Iterator[Line]:
    """Every write to a znode, with the partition or broker that it is about."""
    for row in run.znode_rows(OPERATIONS):
        path = row["path"]
        if path is None or row["kind"] == "check":
            continue
        partition = paths.state_of(path) or ("", -1)
        parent, _, name = path.rpartition("/")
        if parent == paths.TOPICS:
            partition = (name, -1)
        broker = int(name) if parent == paths.BROKER_IDS else -1
        text = operation_text(row["kind"], path, row["version"], row["data"])
        yield Line(row["offset"], text, 0, *partition, broker)


# A record of the metadata log in one line.


_OF_PARTITION = ("topicId", "partitionId", "directories")


def describe(record: Any, version: int, where: str = "") -> str:
    """A record in one line, without what it leaves as it was.

    Shapes:  where: the partition by its topic's name, in place of ids.
    """
    value = to_json(record, version)
    if where:
        value = {name: field for name, field in value.items() if name not in _OF_PARTITION}
    fields = " ".join(
        f"{name}={_short(field)}" for name, field in value.items() if field not in (None, [])
    )
    name = type(record).__name__.removesuffix("Record")
    return " ".join(filter(None, [name, where, fields]))


def _short(value: Any) -> str:
    if isinstance(value, list):
        if len(value) > 8 or any(isinstance(item, dict) for item in value):
            return f"[{len(value)}]"
        return "[" + ",".join(_short(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{…}"
    return str(value)
