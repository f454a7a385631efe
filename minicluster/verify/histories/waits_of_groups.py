"""Groups that reach the end of what is committed, as the responses to their members show.

========================  ========================================================================
takes                     ``client_record``, ``partition_event`` and ``rpc`` rows
keeps, by partition       the ends that were committed, with their times, for all groups together
keeps, by group           how far it is in each partition, and among these ends
yields                    waits for AT_THE_END
========================  ========================================================================

A group is judged by all partitions of the topics of which a member that still lives has owned one.
A group of consumers that read committed transactions goes by the last stable offset, which its own
responses show. Members own topics by name; a topic whose name has passed to another is not waited
for. Users' programs inside the simulation may do what they like: P3 judges their groups.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from heapq import merge

from minicluster.verify.histories.longest_waits import Awaited, LongestWaits, Subject
from minicluster.verify.histories.traced_run import Row, TracedRun

Place = tuple[str, int]  # topic id, partition
_ALIVE_MS = 10_000  # a member that lives has sent a request within that time
_PROGRESS = ("commit", "pending", "committed")


def note_waits_of_groups(run: TracedRun, waits: LongestWaits) -> None:
    """Note how long each end of a partition waited for each group that reads it."""
    client_rows = sorted(
        run.rows("client_record"), key=lambda row: row["resp_seq"] or row["seq"]
    )  # fmt: skip
    if not client_rows:
        return
    sent_ms: dict[str, int] = {}
    programs = {app.node for app in run.header.apps}
    of_programs: set[int] = set()  # connections
    for row in run.rows("rpc"):
        client = row["client_id"]
        if row["src"] in programs:
            of_programs.add(row["connection"])
        if client is not None and row["sent_ms"] is not None:
            sent_ms[client] = max(sent_ms.get(client, 0), row["sent_ms"])
    members = {
        row["client_id"]: row["group_id"]
        for row in client_rows
        if row["f"] == "own" and row["connection"] not in of_programs
    }
    alive_ms = waits.times.ended_ms - _ALIVE_MS
    living = {client for client in members if sent_ms.get(client, 0) >= alive_ms}
    topics = _Topics()
    groups = {group: _Group(topics, living) for group in {members[client] for client in living}}
    for is_event, row in _in_order(run, client_rows):
        if is_event:
            topics.on_replica(row, groups.values())
            continue
        for group in dict.fromkeys((row["group_id"], members.get(row["client_id"]))):
            if group in groups:
                groups[group].on_client(row, waits)
    for group in sorted(groups):
        groups[group].end(waits)


def _in_order(run: TracedRun, client_rows: list[Row]) -> Iterator[tuple[bool, Row]]:
    """Responses and the events of leaders, by their numbers; (it is an event, its row)."""
    responses = ((row["resp_seq"] or row["seq"], False, row) for row in client_rows)
    events = (
        (row["seq"], True, row)
        for row in run.rows("partition_event")
        if row["maximal_isr"] is not None or row["kind"] == "delete"
    )
    for _, is_event, row in merge(responses, events, key=lambda numbered: numbered[:2]):
        yield is_event, row


class _Ends:
    """The ends of a partition as they were committed: rising, but for what an election has lost."""

    __slots__ = ("has_grown", "last", "offsets", "times_ms")

    def __init__(self, last: int = 0) -> None:
        self.last = last
        self.has_grown = False
        self.offsets = array("q")
        self.times_ms = array("q")

    def commit(self, end: int, at_ms: int) -> None:
        """All before an offset is committed."""
        if end > self.last:
            self.last, self.has_grown = end, True
            self.offsets.append(end)
            self.times_ms.append(at_ms)

    def on_leader(self, log_end: int) -> None:
        """A leader begins with a log; what is beyond was lost by an unclean election."""
        kept = bisect_right(self.offsets, log_end)
        del self.offsets[kept:], self.times_ms[kept:]
        self.last = min(self.last, log_end)


class _Topics:
    """The partitions of a run, and what of them is committed."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}  # by topic id
        self.ids: dict[str, str] = {}  # of the newest topic that has a name
        self.ends: dict[Place, _Ends] = {}

    def on_replica(self, row: Row, groups: Iterable[_Group]) -> None:
        """An event of a leader, or a deletion."""
        place, kind = (row["topic_id"], row["part"]), row["kind"]
        if row["topic_id"] not in self.names:
            self.names[row["topic_id"]] = row["topic"]
            self.ids[row["topic"]] = row["topic_id"]
        if kind == "delete":  # perhaps with its topic
            self.ends.pop(place, None)
            for group in groups:
                group.on_deleted(place)
        elif kind == "become_leader":
            self.ends.setdefault(place, _Ends()).on_leader(row["leo"] or 0)
            for group in groups:
                group.on_leader(place, row["leo"] or 0)
        elif kind == "hw":
            self.ends.setdefault(place, _Ends()).commit(row["hw_new"], row["vt"])


class _Group:
    """One group: how far it is among the ends of each partition.

    Shapes:  stable: the ends by the last stable offset; None: the group goes by the high watermark.
             passed: how many of a partition's ends it has reached.
    """

    def __init__(self, topics: _Topics, living: set[str]) -> None:
        self._topics, self._living = topics, living
        self._owned: set[str] = set()  # topics of members that live
        self._reached: dict[Place, int] = {}
        self._passed: dict[Place, int] = {}
        self._stable: dict[Place, _Ends] | None = None

    @property
    def _ends(self) -> dict[Place, _Ends]:
        return self._topics.ends if self._stable is None else self._stable

    def on_deleted(self, place: Place) -> None:
        """The replica of a leader is deleted."""
        self._passed.pop(place, None)
        if self._stable is not None:
            self._stable.pop(place, None)

    def on_leader(self, place: Place, log_end: int) -> None:
        """A leader begins with a log."""
        if self._stable is not None:
            self._stable.setdefault(place, _Ends()).on_leader(log_end)
        ends = self._ends.get(place)
        if ends is not None and place in self._passed:
            self._passed[place] = min(self._passed[place], len(ends.offsets))

    def on_client(self, row: Row, waits: LongestWaits) -> None:
        """A row of a response to a member."""
        topics = self._topics
        topic = row["topic"] or topics.names.get(row["topic_id"] or "", "")
        place = row["topic_id"] or topics.ids.get(topic, ""), row["part"]
        if row["f"] == "read":
            reached = row["offset"] + 1
        elif row["f"] == "fetch":
            reached = row["fetch_offset"]
            if row["isolation"] and self._stable is None:
                self._stable = {known: _Ends(ends.last) for known, ends in topics.ends.items()}
                self._passed.clear()
            if self._stable is not None and row["last_stable_offset"] is not None:
                ends = self._stable.setdefault(place, _Ends())
                ends.commit(row["last_stable_offset"], row["vt"])
        elif row["f"] in _PROGRESS:
            reached = row["offset"]
        elif row["f"] == "own" and row["client_id"] in self._living:
            self._owned.add(topic)
            return
        else:
            return
        self._reached[place] = max(self._reached.get(place, 0), reached or 0)
        self._pass(topic, place, row["vt"], waits)

    def _pass(self, topic: str, place: Place, at_ms: int, waits: LongestWaits) -> None:
        """The group has reached some ends: the first of them has waited longest for it."""
        passed, ends = self._passed.get(place, 0), self._ends.get(place)
        if ends is not None:
            now = bisect_right(ends.offsets, self._reached[place], lo=passed)
            if now > passed:
                subject = Subject(topic, place[1])
                waits.stretch(Awaited.AT_THE_END, subject, ends.times_ms[passed], at_ms)
            passed = now
        self._passed[place] = passed

    def end(self, waits: LongestWaits) -> None:
        """The run has ended: what the group has not reached by now has waited until here."""
        committed = (place for place, ends in self._ends.items() if ends.has_grown)
        for place in dict.fromkeys((*self._passed, *committed)):
            name = self._topics.names.get(place[0], "")
            if name in self._owned and self._topics.ids[name] == place[0]:
                passed, ends = self._passed.get(place, 0), self._ends.get(place)
                is_behind = ends is not None and passed < len(ends.offsets)
                since_ms = ends.times_ms[passed] if ends is not None and is_behind else None
                subject = Subject(name, place[1])
                waits.stretch(Awaited.AT_THE_END, subject, since_ms, waits.times.ended_ms)
