"""What waits at the leaders of partitions: ISR changes, records to be committed, acknowledgements.

========================  ========================================================================
takes                     ``partition_event`` rows; of ``rpc`` the Produces that have timed out; of
                          the timeline the topics that are deleted
keeps, by partition       its leader, what of its log waits for the high watermark, and when the
                          last 4,096 high watermarks were reached
keeps, by broker          what it acknowledges at one time
yields                    waits for ISR_CHANGE_ENDED, COMMITTED, and COMPLETED of Produces
========================  ========================================================================

A Produce with acks=all waits for all of its partitions: the acknowledgements of one broker at one
time count from the last of their high watermarks, and where one of them times out uncommitted, none
is late.

A leader that crashed and comes back after its topic was deleted shows no event that ends its waits:
they end where the deletion is committed. Where the log begins with a snapshot, a topic that it
does not have was deleted before, and nothing of it is judged.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping
from heapq import merge
from operator import itemgetter
from typing import Any

from minicluster.protocol.error_codes import ErrorCode
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.longest_waits import Awaited, LongestWaits, Subject
from minicluster.verify.histories.partitions import REMOVE_TOPIC
from minicluster.verify.histories.traced_run import Row, TracedRun

Place = tuple[str, int]  # topic id, partition

_TIMED_OUT, _DELETED = "timed_out", "topic_deleted"
_MARK = f'"errorCode":{int(ErrorCode.REQUEST_TIMED_OUT)},'
_ENDS_PENDING = ("isr_commit", "isr_revert", "become_leader", "become_follower", "stop", "delete")
_ENDS_REPLICA = ("stop", "delete", "become_follower")
_MARKS_KEPT = 4096


class _Leader:
    """The log of a partition's leader, and what of it waits for the high watermark."""

    def __init__(self, subject: Subject, epoch: int = -1, incarnation: str | None = None) -> None:
        self.subject, self.epoch, self.incarnation = subject, epoch, incarnation
        self.high_watermark = 0
        self.since_seq = -1  # the event by which it became the leader
        self.uncommitted: deque[tuple[int, int]] = deque()  # log end, time
        self._advanced: list[tuple[int, int]] = []  # high watermarks, rising, with their times
        self._acknowledged: OrderedDict[int, None] = OrderedDict()  # last offsets of batches

    def advance(self, high_watermark: int, at_ms: int) -> None:
        """The high watermark has risen."""
        self.high_watermark = high_watermark
        self._advanced.append((high_watermark, at_ms))
        if len(self._advanced) >= 2 * _MARKS_KEPT:
            del self._advanced[:-_MARKS_KEPT]

    def passed_ms(self, offset: int) -> int | None:
        """When the high watermark passed an offset; None if it has not, or nothing shows it."""
        kept_from = max(0, len(self._advanced) - _MARKS_KEPT)
        place = bisect_right(self._advanced, offset, lo=kept_from, key=itemgetter(0))
        return self._advanced[place][1] if place < len(self._advanced) else None

    def acknowledges(self, offset: int) -> bool:
        """A batch, by its last offset, is acknowledged; False: not for the first time."""
        if offset in self._acknowledged:
            return False
        self._acknowledged[offset] = None
        if len(self._acknowledged) > _MARKS_KEPT:
            self._acknowledged.popitem(last=False)
        return True


def note_waits_of_leaders(run: TracedRun, waits: LongestWaits) -> None:
    """Note what waits at leaders."""
    leaders: dict[Place, _Leader] = {}
    names: dict[str, str] = {}  # by topic id
    topic_ids: dict[str | None, dict[str, None]] = {}  # by name, one after the other
    subjects: dict[str, set[Subject]] = {}  # of topics that are not deleted, by their ids
    acknowledgements = _Acknowledgements(waits)
    timed_out = sorted(_timed_out(run.rows("rpc")), key=itemgetter("seq"))
    deletions = sorted(_deleted_topics(run), key=itemgetter("seq"))
    deleted = _deleted_before_the_log(run)
    rows = merge(run.rows("partition_event"), timed_out, deletions, key=itemgetter("seq"))
    for row in rows:
        kind, at_ms, topic_id = row["kind"], row["vt"], row["topic_id"]
        if kind == _DELETED:
            deleted.add(topic_id)
            for subject in subjects.pop(topic_id, ()):
                waits.drop(Awaited.ISR_CHANGE_ENDED, subject)
                waits.drop(Awaited.COMMITTED, subject)
        if topic_id in deleted:  # brokers that have not heard of it promise nothing
            continue
        broker = row["broker"]
        subject = Subject(row["topic"], row["part"], broker)
        if kind == _TIMED_OUT:
            if row["topic"] is None:  # Produce from version 13 on names the id
                subject = subject._replace(topic=names.get(topic_id))
            led = _led(leaders, subject, topic_ids.get(subject.topic, ()), topic_id)
            # A request that was handled before this leadership waited for another one's high
            # watermark, so those of this one do not show that its response is late.
            leads = led is not None and row["handle_seq"] > led.since_seq
            passed_ms = led.passed_ms(row["offset"]) if led is not None and leads else None
            acknowledgements.time_out(subject, passed_ms, at_ms)
            continue
        names[topic_id] = row["topic"]
        topic_ids.setdefault(row["topic"], {})[topic_id] = None
        subjects.setdefault(topic_id, set()).add(subject)
        acknowledgements.until(broker, at_ms)
        if kind == "isr_pending":
            waits.begin(Awaited.ISR_CHANGE_ENDED, subject, at_ms)
        elif kind in _ENDS_PENDING:
            waits.end(Awaited.ISR_CHANGE_ENDED, subject, at_ms)
        place, epoch = (topic_id, row["part"]), row["leader_epoch"]
        leader = leaders.setdefault(place, _Leader(subject))
        is_another = (epoch, row["incarnation"]) != (leader.epoch, leader.incarnation)
        if kind == "become_leader" and is_another and (epoch or 0) >= leader.epoch:
            waits.drop(Awaited.COMMITTED, leader.subject)
            leaders[place] = leader = _Leader(subject, epoch, row["incarnation"])
            leader.high_watermark, leader.since_seq = row["hw_new"] or 0, row["seq"]
        if row["incarnation"] != leader.incarnation or epoch != leader.epoch:
            continue
        if kind in _ENDS_REPLICA:
            leader.uncommitted.clear()
            waits.drop(Awaited.COMMITTED, subject)
        elif row["maximal_isr"] is not None:
            _on_leader(waits, leader, row)
            # A batch that a producer sends again is acknowledged again, however late.
            if kind == "ack" and leader.acknowledges(row["offset"]):
                acknowledgements.add(subject, leader.passed_ms(row["offset"]), at_ms)
    acknowledgements.end()


def _led(
    leaders: Mapping[Place, _Leader],
    subject: Subject,
    topic_ids: Iterable[str],
    topic_id: str | None,
) -> _Leader | None:
    """What a broker leads: of the topic's id, or where only a name is known of its newest topic."""
    led = None
    for known_id in topic_ids:
        leader = leaders.get((known_id, subject.partition or 0))
        if leader is not None and leader.subject == subject and topic_id in (None, known_id):
            led = leader
    return led


def _on_leader(waits: LongestWaits, leader: _Leader, row: Row) -> None:
    at_ms, log_end, subject = row["vt"], row["leo"], leader.subject
    if len(row["isr"] or ()) < (row["min_isr"] or 1):  # KIP-966: the high watermark waits as well
        leader.uncommitted.clear()
        waits.drop(Awaited.COMMITTED, subject)
        return
    if row["hw_new"] is not None and row["hw_new"] > leader.high_watermark:
        leader.advance(row["hw_new"], at_ms)
        while leader.uncommitted and leader.uncommitted[0][0] <= row["hw_new"]:
            leader.uncommitted.popleft()
    if (
        log_end is not None
        and log_end > leader.high_watermark
        and (not leader.uncommitted or leader.uncommitted[-1][0] < log_end)
    ):
        leader.uncommitted.append((log_end, at_ms))
    waits.end(Awaited.COMMITTED, subject, at_ms)
    if leader.uncommitted:
        waits.begin(Awaited.COMMITTED, subject, leader.uncommitted[0][1])


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


def _deleted_topics(run: TracedRun) -> Iterator[dict[str, Any]]:
    """The topics whose deletion is committed, in the form of a partition's events."""
    committed = run.context(commits)
    for topic in run.timeline.topics:
        seq = committed.seq_of(topic.offset) if topic.kind == REMOVE_TOPIC else None
        if seq is not None:
            at_ms = committed.at_ms(topic.offset)
            yield {"kind": _DELETED, "seq": seq, "vt": at_ms, "topic_id": topic.topic_id}


def _deleted_before_the_log(run: TracedRun) -> set[str]:
    """The topics that the log does not have any more, since it begins with a later snapshot.

    Nothing shows when their deletion was committed.
    """
    if run.evidence.start is None:
        return set()
    traced = {row["topic_id"] for row in run.rows("partition_event")}
    return traced - {topic.topic_id for topic in run.timeline.topics}


class _Acknowledgements:
    """The partitions that a broker acknowledges at one time."""

    def __init__(self, waits: LongestWaits) -> None:
        self._waits = waits
        self._passed: dict[int, dict[Subject, tuple[int, int]]] = {}  # high watermark, response

    def add(self, subject: Subject, passed_ms: int | None, at_ms: int) -> None:
        """A partition is acknowledged, whose high watermark passed its records by then."""
        self._waits.case(Awaited.COMPLETED, subject)
        if subject.node is not None and passed_ms is not None:
            self._passed.setdefault(subject.node, {})[subject] = (passed_ms, at_ms)

    def time_out(self, subject: Subject, passed_ms: int | None, at_ms: int) -> None:
        """A partition times out: its records are committed, or others wait for it rightly.

        A Produce waits for all of its partitions. Where one is never committed, the others of the
        broker are forgotten: judged by themselves they would be late, and nothing was wrong (G8).
        """
        if passed_ms is None and subject.node is not None:
            self._passed.pop(subject.node, None)
        self.add(subject, passed_ms, at_ms)

    def until(self, broker: int, at_ms: int) -> None:
        """Judge what a broker has acknowledged, once its time has moved on."""
        passed = self._passed.get(broker)
        if passed is not None and at_ms > max(at for _, at in passed.values()):
            self._judge(self._passed.pop(broker))

    def end(self) -> None:
        """Judge what is left at the end of a run."""
        for passed in self._passed.values():
            self._judge(passed)

    def _judge(self, passed: dict[Subject, tuple[int, int]]) -> None:
        since_ms = max(since for since, _ in passed.values())
        for subject, (_, at_ms) in passed.items():
            self._waits.stretch(Awaited.COMPLETED, subject, since_ms, at_ms)
