"""Groups that reach the end of what is committed (G12), as the responses to their members show.

subject   a group: responses to its members; of the partitions what is committed, as their leaders
          have it
keeps     how far it is in each partition, and the topics that its members own; of a group that
          reads committed transactions the last stable offsets of its own responses

A group is judged by all partitions of the topics of which a member that still lives has owned one.
Members own topics by name; a topic whose name has passed to another is not waited for. Users'
programs inside the simulation may do what they like: P3 judges their groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from minicluster.verify.histories.traced_run import Row
from minicluster.verify.partition.event import Place
from minicluster.verify.waits.liveness import Awaited
from minicluster.verify.waits.longest import Rising, Subject, Waits

_ALIVE_MS = 10_000  # a member that lives has sent a request within that time
_PROGRESS = ("commit", "pending", "committed")
Ends = dict[Place, Rising]


class Committed:
    """What is committed of each partition; an unclean election may take some of it back.

    Shapes:  names: by topic id. ids: of the newest topic that has a name.
    """

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.ends: Ends = {}

    def on_event(self, row: Row, several: list[Ends]) -> None:
        """A leader's event, or a deletion, perhaps with its topic.

        Shapes:  several: all ends, of the high watermark and of transactions.
        """
        topic_id, place = row["topic_id"], (row["topic_id"], row["part"])
        if topic_id not in self.names:
            self.names[topic_id], self.ids[row["topic"]] = row["topic"], topic_id
        for ends in several:
            if row["kind"] == "delete":
                ends.pop(place, None)
            elif row["kind"] == "become_leader":
                ends.setdefault(place, Rising()).cut(row["leo"] or 0)
        if row["kind"] == "hw":
            self.ends.setdefault(place, Rising()).add(row["hw_new"], row["vt"])


class WaitingGroup:
    """One group, and what it has not reached."""

    def __init__(self, committed: Committed, living: set[str], waits: Waits) -> None:
        self.committed, self.living, self.waits = committed, living, waits
        self.owned: set[str] = set()  # topics of members that live
        self.reached: dict[Place, int] = {}
        self.stable: Ends | None = None

    @property
    def ends(self) -> Ends:
        """The offsets that it has to reach: high watermarks, or last stable offsets."""
        return self.committed.ends if self.stable is None else self.stable

    def on_client(self, row: Row) -> None:
        """A row of a response to a member."""
        kind, committed = row["f"], self.committed
        topic = row["topic"] or committed.names.get(row["topic_id"] or "", "")
        place = row["topic_id"] or committed.ids.get(topic, ""), row["part"]
        if kind == "own" and row["client_id"] in self.living:
            self.owned.add(topic)
        elif kind == "read":
            self._reach(topic, place, row["offset"] + 1, row["vt"])
        elif kind in _PROGRESS:
            self._reach(topic, place, row["offset"] or 0, row["vt"])
        elif kind == "fetch":
            if row["isolation"] and self.stable is None:
                self.stable = {known: Rising(ends.last) for known, ends in committed.ends.items()}
            if self.stable is not None and row["last_stable_offset"] is not None:
                self.stable.setdefault(place, Rising()).add(row["last_stable_offset"], row["vt"])
            self._reach(topic, place, row["fetch_offset"] or 0, row["vt"])

    def _reach(self, topic: str, place: Place, offset: int, at_ms: int) -> None:
        """The group is at an offset: the first end up to there has waited longest for it."""
        before, ends = self.reached.get(place, 0), self.ends.get(place)
        self.reached[place] = max(before, offset)
        if ends is not None and offset > before:
            since_ms = ends.beyond_ms(before, up_to=offset)
            if since_ms is not None:
                subject = Subject(topic, place[1])
                self.waits.stretch(Awaited.AT_THE_END, subject, since_ms, at_ms)

    def at_end(self) -> None:
        """The run has ended: what the group has not reached by now has waited until here."""
        names, ids, waits = self.committed.names, self.committed.ids, self.waits
        for place in dict.fromkeys((*self.reached, *self.ends)):
            name, ends = names.get(place[0], ""), self.ends.get(place)
            if name in self.owned and ids[name] == place[0]:
                reached = self.reached.get(place, 0)
                since_ms = None if ends is None else ends.beyond_ms(reached)
                subject = Subject(name, place[1])
                waits.stretch(Awaited.AT_THE_END, subject, since_ms, waits.ended_ms)


class Clients:
    """The clients that live at the end, as their requests show; users' programs are left out.

    Shapes:  programs: the nodes of users' programs.
    """

    def __init__(self, programs: Iterable[int]) -> None:
        self._programs = frozenset(programs)
        self._of_programs: set[int] = set()  # connections
        self._sent_ms: dict[str, int] = {}

    def on_request(self, row: Row) -> None:
        """A request, a row of ``rpc``."""
        client, sent_ms = row["client_id"], row["sent_ms"]
        if row["src"] in self._programs:
            self._of_programs.add(row["connection"])
        if client is not None and sent_ms is not None:
            self._sent_ms[client] = max(self._sent_ms.get(client, 0), sent_ms)

    def groups_of(self, responses: Iterable[Row]) -> dict[str, str]:
        """The members of groups, each with its last group."""
        return {
            row["client_id"]: row["group_id"]
            for row in responses
            if row["f"] == "own" and row["connection"] not in self._of_programs
        }

    def living(self, clients: Iterable[str], ended_ms: int) -> set[str]:
        """Those of some clients that live at the end of the run."""
        alive_ms = ended_ms - _ALIVE_MS
        return {client for client in clients if self._sent_ms.get(client, 0) >= alive_ms}


class WaitingGroups:
    """All groups with a member that lives."""

    def __init__(self, waits: Waits, members: Mapping[str, str], living: set[str]) -> None:
        self._members = members
        self._committed = Committed()
        self._by_name = {
            members[client]: WaitingGroup(self._committed, living, waits) for client in living
        }

    def on_event(self, row: Row) -> None:
        """An event of a replica."""
        if row["maximal_isr"] is not None or row["kind"] == "delete":
            groups = self._by_name.values()
            stable = [group.stable for group in groups if group.stable is not None]
            self._committed.on_event(row, [self._committed.ends, *stable])

    def on_client(self, row: Row) -> None:
        """A row of a response to a client."""
        for name in dict.fromkeys((row["group_id"], self._members.get(row["client_id"]))):
            if name in self._by_name:
                self._by_name[name].on_client(row)

    def at_end(self) -> None:
        """The run has ended."""
        for name in sorted(self._by_name):
            self._by_name[name].at_end()
