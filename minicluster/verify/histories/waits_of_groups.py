"""Groups that reach the end of what is committed, as the responses to their members show.

========================  ========================================================================
takes                     ``client_record``, ``partition_event`` and ``rpc`` rows
keeps, by group           how far it is in each partition, and what is committed beyond that
yields                    waits for AT_THE_END
========================  ========================================================================

A group is judged by all partitions of the topics of which a member that still lives has owned one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from minicluster.verify.histories.longest_waits import Awaited, LongestWaits, Subject
from minicluster.verify.histories.traced_run import Row, TracedRun

Place = tuple[str, int]  # topic id, partition
_ALIVE_MS = 10_000  # a member that lives has sent a request within that time
_PROGRESS = ("commit", "pending", "committed")


def note_waits_of_groups(run: TracedRun, waits: LongestWaits) -> None:
    """Note how long each end of a partition waited for each group that reads it."""
    client_rows = run.rows("client_record")
    if not client_rows:
        return
    sent_ms: dict[str, int] = {}
    for row in run.rows("rpc"):
        client = row["client_id"]
        if client is not None and row["sent_ms"] is not None:
            sent_ms[client] = max(sent_ms.get(client, 0), row["sent_ms"])
    members = {row["client_id"]: row["group_id"] for row in client_rows if row["f"] == "own"}
    alive_ms = waits.times.ended_ms - _ALIVE_MS
    living = {client: of for client, of in members.items() if sent_ms.get(client, 0) >= alive_ms}
    ends = [
        row
        for row in run.rows("partition_event")
        if row["maximal_isr"] is not None or row["kind"] == "delete"
    ]
    rows = sorted([*client_rows, *ends], key=lambda row: row.get("resp_seq") or row["seq"])
    for group in sorted({*living.values()}):
        clients = {client for client, of in members.items() if of == group}
        _Group(group, clients, {*living}).play(waits, rows)


class _Group:
    """One group: how far it is, and what is committed beyond.

    Shapes:  behind: the ends that it has not reached, with the times at which they were committed.
             A group of consumers that read committed transactions goes by the last stable offset.
             Members own topics by name; a topic whose name has passed to another is not waited for.
    """

    def __init__(self, group: str, clients: set[str], living: set[str]) -> None:
        self._group, self._clients, self._living = group, clients, living
        self._topics: set[str] = set()  # owned by those that live
        self._reached: dict[Place, int] = {}
        self._ends: dict[Place, int] = {}
        self._behind: dict[Place, deque[tuple[int, int]]] = {}
        self._names: dict[str, str] = {}  # topic id -> name
        self._ids: dict[str, str] = {}  # name -> id of the newest topic that has it
        self._stable = False

    def play(self, waits: LongestWaits, rows: Iterable[Row]) -> None:
        """Take all rows, and note the waits."""
        for row in rows:
            if "maximal_isr" in row:
                self._on_replica(row)
            elif row["group_id"] == self._group or row["client_id"] in self._clients:
                self._on_client(row, waits)
        for place, behind in self._behind.items():
            since_ms = behind[0][1] if behind else None
            name = self._names.get(place[0], "")
            if name in self._topics and self._ids[name] == place[0]:
                subject = Subject(name, place[1])
                waits.stretch(Awaited.AT_THE_END, subject, since_ms, waits.times.ended_ms)

    def _on_replica(self, row: Row) -> None:
        place = row["topic_id"], row["part"]
        if row["topic_id"] not in self._names:
            self._names[row["topic_id"]] = row["topic"]
            self._ids[row["topic"]] = row["topic_id"]
        if row["kind"] == "delete":  # perhaps with its topic
            self._ends.pop(place, None)
            self._behind.pop(place, None)
        elif row["kind"] == "become_leader":
            behind = self._behind.get(place)
            while behind and behind[-1][0] > (row["leo"] or 0):
                behind.pop()  # lost by an unclean election
            self._ends[place] = min(self._ends.get(place, 0), row["leo"] or 0)
        elif row["kind"] == "hw" and not self._stable:
            self._commit(place, row["hw_new"], row["vt"])

    def _commit(self, place: Place, end: int, at_ms: int) -> None:
        if end > self._ends.get(place, 0):
            self._ends[place] = end
            self._behind.setdefault(place, deque()).append((end, at_ms))

    def _on_client(self, row: Row, waits: LongestWaits) -> None:
        topic = row["topic"] or self._names.get(row["topic_id"] or "", "")
        place = row["topic_id"] or self._ids.get(topic, ""), row["part"]
        if row["f"] == "read":
            reached = row["offset"] + 1
        elif row["f"] == "fetch":
            reached = row["fetch_offset"]
            if row["isolation"] and not self._stable:
                self._stable = True
                self._behind.clear()
            if self._stable and row["last_stable_offset"] is not None:
                self._commit(place, row["last_stable_offset"], row["vt"])
        elif row["f"] in _PROGRESS:
            reached = row["offset"]
        elif row["f"] == "own" and row["client_id"] in self._living:
            self._topics.add(topic)
            return
        else:
            return
        self._reached[place] = max(self._reached.get(place, 0), reached or 0)
        behind = self._behind.setdefault(place, deque())
        while behind and behind[0][0] <= self._reached[place]:
            since_ms = behind.popleft()[1]
            waits.stretch(Awaited.AT_THE_END, Subject(topic, place[1]), since_ms, row["vt"])
