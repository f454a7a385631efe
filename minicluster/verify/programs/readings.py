"""The records that programs of groups were handed, by group and partition.

A program is known by its node, so that two consumers of one program are one reader here: what a
program fetches beside its groups counts as handed to them, which accuses nobody wrongly. A record
counts as handed once the response with it has arrived; nothing shows whether it was processed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct, field

from minicluster.verify.exchange.exchange import Exchange, each
from minicluster.verify.group.event import ClientEvent
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import TopicNames
from minicluster.verify.programs.requests import Asked, Process

OF_GROUPS = ("client_record", "group_event", "log_batch", "partition_event", "raft_event",
             "replica_log", "rpc")  # fmt: skip
"""The tables without which rules about groups are unknown."""
GroupPlace = tuple[str | None, str, int]  # group, topic id, partition


class Reading(Struct):
    """A group and a partition: what its programs know of it, and were handed of it.

    Shapes:  handed: offsets. spans: of responses that arrived, where the fetch began and the offset
             of each record. lowest: where the lowest fetch began. sought, reset: ranges of offsets
             that a program passed by a seek of its own, and by a position that no offset of its
             group gave it.
    Units:   positions: (event, the highest position by then), rising.
    """

    handed: set[int] = field(default_factory=set)
    spans: list[tuple[int, int]] = field(default_factory=list)
    lowest: int | None = None
    sought: list[tuple[int, int]] = field(default_factory=list)
    reset: list[tuple[int, int]] = field(default_factory=list)
    positions: list[tuple[int, int]] = field(default_factory=list)

    def position_before(self, event: int) -> int | None:
        """The highest position that a program knew before an event; None: it knew none."""
        known = bisect_left(self.positions, (event, -1))
        return self.positions[known - 1][1] if known else None


class _Track(Struct):
    """One process in a partition: where its next fetch is due, and what its group gave it last."""

    due: int | None = None
    given: int | None = None  # the committed offset; None: since then it has fetched


class AskedEnd(NamedTuple):
    """An end of a partition that a program was told; at: the event of the response."""

    process: Process
    at: int
    topic: str
    part: int
    offset: int | None


def ends_in(process: Process, exchange: Exchange) -> Iterator[AskedEnd]:
    """The ends of partitions, as a request of a program was told."""
    if exchange.api != "ListOffsets" or exchange.resp_seq is None:
        return
    for topic in each(exchange.response, "topics"):
        for part in each(topic, "partitions"):
            place = topic["name"], part["partitionIndex"]
            yield AskedEnd(process, exchange.resp_seq, *place, part.get("offset"))


class Readings:
    """The reading of programs of groups.

    Shapes:  rows: what clients were told, each with the request of a program that it is told.
             groups: the programs of each. by_group: what they read.
    """

    def __init__(
        self,
        rows: Sequence[tuple[ClientEvent, Asked]],
        ends: Iterable[AskedEnd],
        names: TopicNames,
    ) -> None:
        self.groups: dict[str, set[str]] = defaultdict(set)  # group -> programs
        for event, asked in rows:
            group = event.group
            if group is not None and event.f in ("own", "commit", "pending", "committed"):
                self.groups[group].add(asked.process.program)
        of_program: dict[str, list[str]] = defaultdict(list)
        for group, programs in sorted(self.groups.items()):
            for program in programs:
                of_program[program].append(group)
        self.rows = rows
        self.by_group: dict[GroupPlace, Reading] = defaultdict(Reading)
        self._known: dict[GroupPlace, list[tuple[int, int]]] = defaultdict(list)
        self._tracks: dict[tuple[Process, Place], _Track] = defaultdict(_Track)
        self._last_fetch: dict[tuple[str, Place], tuple[int, int]] = {}  # moment, offset
        for event, asked in sorted(rows, key=_as_sent):
            groups = of_program.get(asked.process.program, ())
            mine = [(group, *event.place) for group in groups]
            if event.f == "fetch":
                self._fetch(event, asked.process, mine)
            elif event.f == "read" and event.received is not None:
                self._read(event, event.received, asked.process, mine)
            elif event.f == "committed" and event.received is not None:
                self._tracks[asked.process, event.place].given = event.offset
                self._knows(mine, event.received, event.offset)
        for end in ends:  # a program may commit an end that it asked for
            for topic_id in names.ids_of(end.topic):
                groups = of_program.get(end.process.program, ())
                self._knows([(group, topic_id, end.part) for group in groups], end.at, end.offset)
        for key, known in self._known.items():
            highest = -1
            for at, position in sorted(known):
                if position > highest:
                    highest = position
                    self.by_group[key].positions.append((at, position))

    def asks_for(self, programs: tuple[str, ...], place: Place, offset: int, since_ms: int) -> bool:
        """One of some programs was answered a fetch at or before an offset since a moment."""
        last = (self._last_fetch.get((program, place), (-1, 0)) for program in programs)
        return any(at_ms >= since_ms and begins <= offset for at_ms, begins in last)

    def _knows(self, keys: Iterable[GroupPlace], event: int, position: int | None) -> None:
        for key in keys:
            if position is not None and position >= 0:
                self._known[key].append((event, position))

    def _fetch(self, event: ClientEvent, process: Process, keys: Iterable[GroupPlace]) -> None:
        begins, track = event.fetch_offset, self._tracks[process, event.place]
        if begins is None:  # in a session of fetches, whose requests name what has changed alone
            return
        self._last_fetch[process.program, event.place] = event.at_ms, begins
        self._knows(keys, event.sent or 0, begins)
        due = track.due if track.given is None else track.given
        for key in keys:
            reading = self.by_group[key]
            reading.lowest = begins if reading.lowest is None else min(reading.lowest, begins)
            if due == -1:
                reading.reset.append((0, begins))
            elif due is not None and begins > due:
                reading.sought.append((due, begins))
        track.due, track.given = begins, None

    def _read(
        self, event: ClientEvent, received: int, process: Process, keys: Iterable[GroupPlace]
    ) -> None:
        track = self._tracks[process, event.place]
        begins = event.offset if event.fetch_offset is None else event.fetch_offset
        if track.given is None:
            track.due = max(track.due or 0, event.offset + 1)
        self._knows(keys, received, event.offset + 1)
        for key in keys:
            reading = self.by_group[key]
            reading.handed.add(event.offset)
            reading.spans.append((begins, event.offset))
            reading.lowest = begins if reading.lowest is None else min(reading.lowest, begins)


def _as_sent(of_program: tuple[ClientEvent, Asked]) -> tuple[int, int, int]:
    """Fetches as they were sent; what a response gave when it arrived."""
    event = of_program[0]
    at = event.sent if event.f == "fetch" else event.received
    return -1 if at is None else at, event.seq, -1 if event.offset is None else event.offset
