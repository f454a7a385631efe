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
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.partitions import REMOVE_TOPIC
from minicluster.verify.histories.traced_run import Row, TracedRun
from minicluster.verify.partition.event import Place
from minicluster.verify.waits.liveness import Awaited
from minicluster.verify.waits.longest import Rising, Subject, Waits

_TIMED_OUT = "timed_out"
_MARK = f'"errorCode":{int(ErrorCode.REQUEST_TIMED_OUT)},'
_ENDS_PENDING = ("isr_commit", "isr_revert", "become_leader", "become_follower", "stop", "delete")
_ENDS_REPLICA = ("stop", "delete", "become_follower")
_BEFORE_THE_LOG = -1


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


def leaders(run: TracedRun, waits: Waits) -> None:
    """Give each partition its events."""
    partitions: dict[Place, LedPartition] = {}
    answers = Answers(waits)
    deleted = _deleted(run)
    ids: dict[tuple[str, int, int], str] = {}  # of the topic that a broker has under a name
    timed_out = sorted(_timed_out(run.rows("rpc")), key=itemgetter("seq"))
    for row in merge(run.rows("partition_event"), timed_out, key=itemgetter("seq")):
        broker, number = row["broker"], row["part"]
        topic_id = row["topic_id"] or ids.get((row["topic"], number, broker), "")
        if row["seq"] > deleted.get(topic_id, row["seq"]):
            continue  # brokers that have not heard of it promise nothing
        partition = partitions.get((topic_id, number))
        if row["kind"] != _TIMED_OUT:
            if partition is None:
                partition = LedPartition(row["topic"], number, waits, answers)
                partitions[topic_id, number] = partition
            ids[row["topic"], number, broker] = topic_id
            answers.until(broker, row["vt"])
            partition.on_event(row)
            continue
        passed_ms = None
        if partition is not None:
            passed_ms = partition.passed_ms(broker, row["offset"], row["handle_seq"])
        if passed_ms is None:
            answers.forget(broker)
        topic = row["topic"] if partition is None else partition.topic
        subject = Subject(topic, number, broker)
        answers.add(subject, passed_ms, row["vt"])
    answers.at_end()
    for (topic_id, _), partition in partitions.items():
        if topic_id not in deleted:
            partition.at_end()


def _timed_out(requests: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """The partitions for which the response to a Produce has an offset, and REQUEST_TIMED_OUT.

    Shapes:  rows in the form of a partition's events.
    """
    for row in requests:
        is_complete = row["resp_seq"] is not None and row["completed_ms"] is not None
        if row["api"] != "Produce" or not is_complete or _MARK not in (row["response"] or ""):
            continue
        event = {"kind": _TIMED_OUT, "seq": row["resp_seq"], "vt": row["completed_ms"]}
        event |= {"handle_seq": row["handle_seq"], "broker": row["dst"]}
        for topic in json.loads(row["response"])["responses"]:
            for part in topic["partitionResponses"]:
                if part["errorCode"] == ErrorCode.REQUEST_TIMED_OUT and part["baseOffset"] >= 0:
                    of = {"topic": topic.get("name"), "topic_id": topic.get("topicId")}
                    place = {"part": part["index"], "offset": part["baseOffset"]}
                    yield event | of | place


def _deleted(run: TracedRun) -> dict[str, int]:
    """By topic id the event that committed its deletion; nothing shows those before the log."""
    committed, deleted = run.context(commits), dict[str, int]()
    if run.evidence.start is not None:
        known = {topic.topic_id for topic in run.timeline.topics}
        traced = {row["topic_id"] for row in run.rows("partition_event")}
        deleted = dict.fromkeys(traced - known, _BEFORE_THE_LOG)
    for topic in run.timeline.topics:
        seq = committed.seq_of(topic.offset) if topic.kind == REMOVE_TOPIC else None
        if seq is not None:
            deleted[topic.topic_id] = seq
    return deleted
