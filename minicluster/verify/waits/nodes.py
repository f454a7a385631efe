"""What is waited for at nodes: a leader of the quorum (G2), images (G3), responses (G8), the end of
a controlled shutdown (G10).

subject   the quorum; a node and its images; a request; the brokers that shut down
keeps     who leads; by node its last image; the disturbances that last
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from minicluster.trace import EXIT
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.waits.liveness import Awaited
from minicluster.verify.waits.longest import Rising, Subject, Waits

_TIMEOUTS = {"Produce": "timeoutMs", "Fetch": "maxWaitMs", "DeleteRecords": "timeoutMs"}
_ENDS_PROCESS = ("kill", "bounce", "wipe", "controlled_shutdown")
_MOMENTS = ("resign", "snapshot", "compact", "restart")  # these last no time of their own
_OWN = ("fail_dir", "mutate")  # of one broker's disk, and planted: nothing waits for their end


class QuorumLeader:
    """Whether a controller leads. Its process may end without an event of its own."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._leader: int | None = None
        waits.begin(Awaited.ELECTED, Subject(), 0)

    def on_event(self, row: Row) -> None:
        """An event of the quorum, a row of ``raft_event``."""
        if row["kind"] == "elected":
            self._set(row["node"], row["vt"])
        elif row["kind"] == "resign" and row["node"] == self._leader:
            self._set(None, row["vt"])

    def on_fault(self, row: Row) -> None:
        """A fault begins."""
        ends = row["action"] == "restart" or row["action"] in _ENDS_PROCESS
        if ends and self._leader in targets_of(row):
            self._set(None, row["vt"])

    def _set(self, leader: int | None, at_ms: int) -> None:
        self._leader = leader
        self._waits.set(Awaited.ELECTED, Subject(), leader is None, at_ms)


class NodeImages:
    """The images that nodes publish of what is committed.

    Shapes:  changes: the ends of the operations that change an image, as they were committed. A
             controller publishes no record without effect.
    """

    def __init__(self, waits: Waits, changes: Rising) -> None:
        self._waits, self._changes = waits, changes
        self._latest: dict[int, int] = {}

    def on_publish(self, row: Row) -> None:
        """A node publishes an image."""
        node = row["node"]
        if node in self._latest:
            self._end(node, row["vt"])
        self._latest[node] = row["offset"]

    def at_end(self) -> None:
        """The run has ended."""
        for node in self._latest:
            self._end(node, self._waits.ended_ms)

    def _end(self, node: int, at_ms: int) -> None:
        since_ms = self._changes.beyond_ms(self._latest[node])
        self._waits.stretch(Awaited.PUBLISHED, Subject(node=node), since_ms, at_ms)


def on_request(row: Row, waits: Waits) -> None:
    """A request of a node that may be parked gets its response by its own timeout."""
    awaited = Awaited.COMPLETED
    field, sent_ms = _TIMEOUTS.get(row["api"]), row["sent_ms"]
    if field is None or sent_ms is None or row["connection"] is not None:
        return
    # A disturbance of that millisecond may have lost it.
    if not waits.judges(awaited) or sent_ms <= waits.from_ms[awaited]:
        return
    if row["answer"] is not None:  # what its client got is not its node's to give
        return
    subject = Subject(node=row["dst"])
    waits.case(awaited, subject)
    until_ms = waits.ended_ms if row["completed_ms"] is None else row["completed_ms"]
    if until_ms - sent_ms > waits.bounds_ms[awaited]:
        timeout_ms = json.loads(row["request"]).get(field, 0)
        waits.stretch(awaited, subject, sent_ms + timeout_ms, until_ms)


class Shutdowns:
    """A broker that shuts down ends, while no other node is disturbed.

    Other than the rest it counts in the middle of a run, since a broker that is down is itself a
    disturbance. It counts from the shutdown on, or from when the others must be back after what
    disturbed them last; what disturbs them meanwhile restarts the wait, and what disturbs the
    broker itself ends it.
    """

    def __init__(self, waits: Waits, brokers: Iterable[int]) -> None:
        self._waits, self._brokers = waits, set(brokers)
        self._since_ms: dict[int, int] = {}  # by broker that shuts down
        self._lasting: set[tuple[str, str]] = set()
        self._alive_ms = self._ready_ms = waits.bounds_ms.get(Awaited.UNFENCED, 0)

    def on_fault(self, row: Row) -> None:
        """A fault begins or ends, or a process has ended."""
        action, phase, at_ms, targets = row["action"], row["phase"], row["vt"], targets_of(row)
        if action == EXIT:
            for node in self._waiting(targets):
                self._end(node, at_ms)
                self._lasting.add(("down", json.dumps(node)))
            return
        if phase not in ("start", "stop") or action in _OWN or not targets:
            return
        if action == "controlled_shutdown" and self._brokers.issuperset(targets):
            self._since_ms |= dict.fromkeys(targets, at_ms)
            return
        for node in self._waiting(targets):
            self._end(node, at_ms)
        self._ready_ms = at_ms + self._alive_ms
        for target in targets:
            _disturb(self._lasting, action, phase, target)

    def at_end(self) -> None:
        """The run has ended."""
        for node in [*self._since_ms]:
            self._end(node, self._waits.ended_ms)

    def _waiting(self, targets: list[Any]) -> list[int]:
        return [broker for broker in self._since_ms if broker in targets]

    def _end(self, broker: int, at_ms: int) -> None:
        since_ms = max(self._since_ms.pop(broker), self._ready_ms)
        if not self._lasting and at_ms >= since_ms:
            self._waits.note(Awaited.SHUT_DOWN, Subject(node=broker), at_ms - since_ms)


def targets_of(row: Row) -> list[Any]:
    """The nodes and links that a fault is about, of a row of ``fault``."""
    targets: list[Any] = json.loads(row["targets"] or "[]")
    return targets


def _disturb(lasting: set[tuple[str, str]], action: str, phase: str, target: Any) -> None:
    """Begin or end what disturbs a node, or a link: whatever ends on a link ends all of it."""
    kind = "link" if isinstance(target, list) else action
    key = json.dumps([target[0], target[-1]] if kind == "link" and target else target)
    if action == "restart":
        lasting.discard(("down", key))
    elif action == "fail_over" or action in _ENDS_PROCESS:
        lasting.add(("down", key))
    elif phase == "stop":
        lasting.discard(("pause" if action == "resume" else kind, key))
    elif action not in _MOMENTS:
        lasting.add((kind, key))
