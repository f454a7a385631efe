"""What waits at the leader of a partition: ISR changes (G4), records to be committed (G5),
acknowledgements (G8).

subject   a partition: the events of its replicas; of ``rpc`` the Produces that have timed out
keeps     by broker, since when an ISR change is pending; of the leader its log ends and its high
          watermarks with their times. By broker, what it acknowledges at one time

A Produce with acks=all waits for all of its partitions: the acknowledgements of one broker at one
time count from the last of their high watermarks, and where one of them times out uncommitted, none
is late.

A leader that crashed and comes back after its topic was deleted shows no event that ends its waits:
nothing waits from the deletion on. Where the log begins with a snapshot, a topic that it does not
have was deleted before, and nothing of it is judged.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.partition.event import Place
from minicluster.verify.waits.liveness import Awaited
from minicluster.verify.waits.longest import Rising, Subject, Waits

_MARK = f'"errorCode":{int(ErrorCode.REQUEST_TIMED_OUT)},'
_ENDS_PENDING = ("isr_commit", "isr_revert", "become_leader", "become_follower", "stop", "delete")
_ENDS_REPLICA = ("stop", "delete", "become_follower")


class LedPartition:
    """One partition, and what waits at its leader.

    Shapes:  pending_ms: by broker. leader: the broker, its process and leader epoch; leads_since:
             the event. marks: its high watermarks; appended: log ends, those beyond are not
             committed. acknowledged: last offsets of batches.
    """

    def __init__(self, topic: str, number: int, waits: Waits, answers: Answers) -> None:
        self.topic, self.number = topic, number
        self.waits, self.answers = waits, answers
        self.pending_ms: dict[int, int] = {}
        self.leader: tuple[int, str | None, int] = (-1, None, -1)
        self.leads_since = -1
        self.marks, self.appended = Rising(), Rising()
        self.uncommitted_ms: int | None = None
        self.acknowledged: set[int] = set()

    def on_event(self, row: Row) -> None:
        """An event of a replica."""
        kind, broker, at_ms = row["kind"], row["broker"], row["vt"]
        replica = broker, row["incarnation"], row["leader_epoch"]
        if kind == "isr_pending":
            self.pending_ms.setdefault(broker, at_ms)
        elif kind in _ENDS_PENDING:
            self._end_pending(broker, at_ms)
        if kind == "become_leader" and replica != self.leader and replica[2] >= self.leader[2]:
            self.leader, self.leads_since = replica, row["seq"]
            self.marks, self.acknowledged = Rising(row["hw_new"] or 0), set()
            self._forget_uncommitted()
        if replica != self.leader:
            return
        if kind in _ENDS_REPLICA:
            self._forget_uncommitted()
        elif row["maximal_isr"] is not None:
            self._on_leader(row)

    def _on_leader(self, row: Row) -> None:
        at_ms, mark, log_end = row["vt"], row["hw_new"], row["leo"]
        if len(row["isr"] or ()) < (row["min_isr"] or 1):
            self._forget_uncommitted()  # KIP-966: the high watermark waits, rightly
        else:
            if mark is not None:
                self.marks.add(mark, at_ms)
            if log_end is not None and log_end > self.marks.last:
                self.appended.add(log_end, at_ms)
            self._end_uncommitted(at_ms)
            self.uncommitted_ms = self.appended.beyond_ms(self.marks.last)
        # A batch that a producer sends again is acknowledged again, however late.
        if row["kind"] == "ack" and row["offset"] not in self.acknowledged:
            self.acknowledged.add(row["offset"])
            self.answers.add(self._at(row["broker"]), self.marks.beyond_ms(row["offset"]), at_ms)

    def passed_ms(self, broker: int, offset: int, handled: int | None) -> int | None:
        """When the high watermark of a leader passed an offset; None if nothing shows it.

        A request that was handled before this leadership waited for another one's high watermark:
        those of this one do not show that its response is late.
        """
        is_its_own = broker == self.leader[0] and (handled or 0) > self.leads_since
        return self.marks.beyond_ms(offset) if is_its_own else None

    def at_end(self) -> None:
        """The run has ended, and the topic is still there."""
        for broker in list(self.pending_ms):
            self._end_pending(broker, self.waits.ended_ms)
        if self.uncommitted_ms is not None:
            self._end_uncommitted(self.waits.ended_ms)

    def _end_pending(self, broker: int, at_ms: int) -> None:
        since_ms = self.pending_ms.pop(broker, None)
        self.waits.stretch(Awaited.ISR_CHANGE_ENDED, self._at(broker), since_ms, at_ms)

    def _end_uncommitted(self, at_ms: int) -> None:
        subject = self._at(self.leader[0])
        self.waits.stretch(Awaited.COMMITTED, subject, self.uncommitted_ms, at_ms)

    def _forget_uncommitted(self) -> None:
        self.appended, self.uncommitted_ms = Rising(), None

    def _at(self, broker: int) -> Subject:
        return Subject(self.topic, self.number, broker)


class Answers:
    """What each broker acknowledges at one time: when its high watermark passed, the response."""

    def __init__(self, waits: Waits) -> None:
        self._waits = waits
        self._passed: dict[int, dict[Subject, tuple[int, int]]] = defaultdict(dict)  # by broker

    def add(self, subject: Subject, passed_ms: int | None, at_ms: int) -> None:
        """A partition is acknowledged, or times out though its records are committed."""
        self._waits.case(Awaited.COMPLETED, subject)
        if subject.node is not None and passed_ms is not None:
            self._passed[subject.node][subject] = passed_ms, at_ms

    def forget(self, broker: int) -> None:
        """A partition times out that is not committed: the others waited for it, rightly (G8)."""
        self._passed.pop(broker, None)

    def until(self, broker: int, at_ms: int) -> None:
        """Judge what a broker has acknowledged, once its time has moved on."""
        passed = self._passed.get(broker)
        if passed and at_ms > max(answered_ms for _, answered_ms in passed.values()):
            self._judge(self._passed.pop(broker))

    def at_end(self) -> None:
        """Judge what is left."""
        for passed in self._passed.values():
            self._judge(passed)

    def _judge(self, passed: dict[Subject, tuple[int, int]]) -> None:
        since_ms = max((passed_ms for passed_ms, _ in passed.values()), default=None)
        for subject, (_, answered_ms) in passed.items():
            self._waits.stretch(Awaited.COMPLETED, subject, since_ms, answered_ms)


class LedPartitions:
    """All partitions, and what waits at their leaders.

    Shapes:  deleted: by topic id the event that committed its deletion.
    """

    def __init__(self, waits: Waits, deleted: Mapping[str, int]) -> None:
        self._waits, self._deleted = waits, deleted
        self._answers = Answers(waits)
        self._partitions: dict[Place, LedPartition] = {}
        self._ids: dict[tuple[str, int, int], str] = {}  # of the topic that a broker has by a name

    def on_event(self, row: Row) -> None:
        """An event of a replica."""
        broker, place = row["broker"], (row["topic_id"], row["part"])
        if self._is_gone(row["topic_id"], row["seq"]):
            return
        partition = self._partitions.get(place)
        if partition is None:
            partition = LedPartition(row["topic"], row["part"], self._waits, self._answers)
            self._partitions[place] = partition
        self._ids[row["topic"], row["part"], broker] = row["topic_id"]
        self._answers.until(broker, row["vt"])
        partition.on_event(row)

    def on_timed_out(self, response: TimedOut) -> None:
        """A partition of a Produce has timed out."""
        broker, number, name = response.broker, response.part, response.topic or ""
        topic_id = response.topic_id or self._ids.get((name, number, broker), "")
        if self._is_gone(topic_id, response.seq):
            return
        partition, passed_ms = self._partitions.get((topic_id, number)), None
        if partition is not None:
            name = partition.topic
            passed_ms = partition.passed_ms(broker, response.offset, response.handled)
        if passed_ms is None:
            self._answers.forget(broker)
        self._answers.add(Subject(name, number, broker), passed_ms, response.at_ms)

    def at_end(self) -> None:
        """The run has ended."""
        self._answers.at_end()
        for (topic_id, _), partition in self._partitions.items():
            if topic_id not in self._deleted:
                partition.at_end()

    def _is_gone(self, topic_id: str, seq: int) -> bool:
        """Brokers that have not heard of a deletion promise nothing."""
        return seq > self._deleted.get(topic_id, seq)


class TimedOut(NamedTuple):
    """A partition for which the response to a Produce has an offset, and REQUEST_TIMED_OUT.

    Shapes:  topic, topic_id: the one that the response has. seq, handled: the events of the
             response and of the handling.
    """

    seq: int
    at_ms: int
    broker: int
    handled: int | None
    topic: str | None
    topic_id: str | None
    part: int
    offset: int


def timed_out_in(row: Row) -> Iterator[TimedOut]:
    """The partitions of a request that have timed out, a row of ``rpc``."""
    is_complete = row["resp_seq"] is not None and row["completed_ms"] is not None
    if row["api"] != "Produce" or not is_complete or _MARK not in (row["response"] or ""):
        return
    response = row["resp_seq"], row["completed_ms"], row["dst"], row["handle_seq"]
    for topic in json.loads(row["response"])["responses"]:
        name = topic.get("name"), topic.get("topicId")
        for part in topic["partitionResponses"]:
            if part["errorCode"] == ErrorCode.REQUEST_TIMED_OUT and part["baseOffset"] >= 0:
                yield TimedOut(*response, *name, part["index"], part["baseOffset"])
