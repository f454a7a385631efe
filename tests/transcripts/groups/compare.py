"""What Kafka's coordinator did beside what ours does, up to the first difference."""

from __future__ import annotations

import base64
import traceback
from collections import Counter, defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from minicluster.coordinator.group.group_shard import GroupShard
from minicluster.protocol import decode
from minicluster.protocol.api_keys import APIS
from minicluster.protocol.coordinator_records.framing import decode_coordinator_record
from minicluster.protocol.json_form import to_json
from tests.transcripts.groups.ours import Ours
from tests.transcripts.groups.steps import Batch, Command, Row, Step

SHOWN = 12  # operations before a difference
WIDTH = 600


@dataclass(slots=True)
class Outcome:
    """What came of a seed or a recording.

    Shapes:  counts: operations by kind, other orders and other messages; difference: None where
             all agree.
    """

    operations: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    difference: str | None = None


class Comparison:
    """What Kafka's coordinator did beside what ours does, command by command."""

    def __init__(self, start: Command) -> None:
        self.ours = Ours(start["config"], start["now_ms"])
        self.outcome = Outcome()
        self.sent: dict[int, tuple[Any, int]] = {}  # request and version
        self._start = start
        self._latest: deque[str] = deque(maxlen=SHOWN)

    def compare(self, command: Command, theirs: Step) -> bool:
        """Perform a command; False where ours differs."""
        outcome = self.outcome
        outcome.operations += 1
        kind, shown = self._take(command)
        outcome.counts[kind] += 1
        now_ms = self.ours.now_ms - self._start["now_ms"]
        self._latest.append(f"{now_ms:>8} {shown[:WIDTH]}")
        try:
            ours = self.ours.do(command)
        except Exception as error:  # it is shown beside the response of Kafka
            ours = Step(failure="".join(traceback.format_exception(error)))
        difference = self._responses(theirs, ours) or self._written(theirs, ours)
        if difference is not None:
            before = "\n".join(self._latest)
            outcome.difference = f"config {self._start['config']}\n{before}\n{difference}"
        return difference is None

    def _take(self, command: Command) -> tuple[str, str]:
        if command["do"] != "request":
            return command["do"], str({k: v for k, v in command.items() if k != "records"})
        kind, version = APIS[command["api"]].request, command["version"]
        request = decode(kind, base64.b64decode(command["body"]), version)
        self.sent[command["token"]] = request, version
        return kind.__name__.removesuffix("Request"), f"{command['client']} v{version} {request}"

    def response(self, token: int, body: bytes | None) -> Any:
        """The response to a request, None where it has none."""
        request, version = self.sent[token]
        return None if body is None else decode(_response_type(request), body, version)

    def _responses(self, theirs: Step, ours: Step) -> str | None:
        if ours.failure is not None:
            return f"{ours.failure}  Kafka {theirs.responses}"
        our = dict(ours.responses)
        for token, body in theirs.responses:
            name = _response_type(self.sent[token][0]).__name__
            expected = self._form(token, body)
            if token not in our:
                return f"{name} to request {token}: none from ours\n  Kafka {expected}"
            difference = self._compared(name, expected, self._form(token, our.pop(token)))
            if difference is not None:
                return difference
        for token in our:
            return f"response to {self.sent[token][0]}: from ours alone"
        if [t for t, _ in theirs.responses] != [t for t, _ in ours.responses]:
            self.outcome.counts["other order of responses"] += 1
        return None

    def _form(self, token: int, body: bytes | None) -> Any:
        response = self.response(token, body)
        return None if response is None else to_json(response, self.sent[token][1])

    def _compared(self, name: str, expected: Any, got: Any) -> str | None:
        if expected == got:
            return None
        if _without_messages(expected) == _without_messages(got):
            self.outcome.counts[f"other message of {name}"] += 1
            return None
        if _sorted(expected) == _sorted(got):
            self.outcome.counts[f"other order in {name}"] += 1
            return None
        return f"{name}\n  Kafka {expected}\n  ours  {got}"

    def _written(self, theirs: Step, ours: Step) -> str | None:
        their, our = _rows(theirs.batches), _rows(ours.batches)
        if their == our:
            return None
        expected, got = [_record(row) for row in their], [_record(row) for row in our]
        if sorted(expected) == sorted(got):
            if (by_key := _by_key(expected)) != _by_key(got):
                return f"order of records of a key\n  Kafka {by_key}\n  ours  {_by_key(got)}"
            # A table of Kafka that has held more has another order (java_order.timeline_order).
            order = "inside records" if expected == got else "of records"
            self.outcome.counts[f"other order {order}"] += 1
            return None
        lines = ["records"]
        lines += [f"  Kafka {row}" for row in expected if row not in got]
        lines += [f"  ours  {row}" for row in got if row not in expected]
        if len(lines) == 1:
            lines += [f"  Kafka {len(their)} records, ours {len(our)}"]
        return "\n".join(lines)


def _rows(batches: list[Batch]) -> list[tuple[int, bool, Row]]:
    return [(b.producer_id, b.is_control, row) for b in batches for row in b.rows]


def _record(row: tuple[int, bool, Row]) -> str:
    """A record as text, without the order of what it lists."""
    producer_id, is_control, (key, value) = row
    if is_control:
        return f"marker of {producer_id}: {key!r}"
    record = decode_coordinator_record(GroupShard.record_types, key, value)
    assert record is not None
    name = type(record.key).__name__.removesuffix("Key")
    shown = None if record.value is None else _sorted(to_json(record.value, record.version))
    by = "" if producer_id < 0 else f"(producer {producer_id}) "
    return f"{by}{name} {to_json(record.key, 0)} -> {shown}"


def _by_key(records: list[str]) -> dict[str, list[str]]:
    """What is written under each key, one after the other."""
    by_key: dict[str, list[str]] = defaultdict(list)
    for record in records:
        by_key[record.partition(" -> ")[0]].append(record)
    return by_key


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _sorted(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted((_sorted(each) for each in value), key=repr)
    return value


def _without_messages(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {
            name: _without_messages(each) for name, each in value.items() if name != "errorMessage"
        }
    if isinstance(value, list):
        return [_without_messages(each) for each in value]
    return value


def _response_type(request: Any) -> Any:
    return APIS[type(request).api_key].response
