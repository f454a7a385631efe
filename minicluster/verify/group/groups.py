"""A group: what its members own, commit and read, and what of it they are given back.

All of it is judged when the run is over: a commit that comes later excuses an offset, the end of
its transaction shows or takes back what was committed in it, and what coordinators and partitions
have lost is known then. The names are those of Jepsen's workload for Kafka.

subject   a group: responses to its members, and what its coordinator deletes
keeps     by partition what has set its offset, in order, and who fetched it; who was given a
          partition; the records that its members read
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping
from operator import attrgetter
from typing import Any

from msgspec import Struct

from minicluster.verify.group.coordinators import Coordinator
from minicluster.verify.group.event import ClientEvent
from minicluster.verify.model import Evidence
from minicluster.verify.partition.clients import LastLeader
from minicluster.verify.partition.event import Place
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, exempt, rule

NO_OFFSET = -1
_SEQ = attrgetter("seq")
_OF_READERS = ("client_record", "partition_event", "replica_log", "raft_event")
_OF_GROUPS = ("client_record", "group_event", "partition_event", "raft_event")


class OffsetSet(Struct):
    """Something has set the offset of a group, or deleted it (-1).

    Units:  seq: the event that counts. sent: when the request was sent. shown: from when on fetches
            of stable offsets have it; None: a transaction that has not ended.
    """

    seq: int
    sent: int | None
    offset: int | None
    shown: int | None


class Group:
    """One group.

    Shapes:  sets: by partition, in order; open: those in a transaction of a producer. fetched: the
             fetches of offsets. given: the partitions that members were given. instances: by
             member, of static ones. ended: the events by which it ended. clients: its members;
             committers: those that commit in transactions; producers: ids of the cluster's own.
             read: by partition and offset; read_on: the lowest broker. is_sought: another client
             has set an offset.
    """

    def __init__(self) -> None:
        self.sets: dict[Place, list[OffsetSet]] = defaultdict(list)
        self.open: dict[Any, list[tuple[Place, OffsetSet]]] = defaultdict(list)
        self.fetched: list[ClientEvent] = []
        self.given: list[ClientEvent] = []
        self.instances: dict[str | None, str] = {}
        self.ended: list[int] = []
        self.clients: set[str] = set()
        self.committers: set[str] = set()
        self.producers: set[int] = set()
        self.read: dict[Place, dict[int, ClientEvent]] = defaultdict(dict)
        self.read_on: dict[Place, int] = {}
        self.is_sought = False

    def on_response(self, event: ClientEvent) -> None:
        """A response to a member, or to who commits or fetches offsets of the group."""
        if event.f == "own":
            self.given.append(event)
            if event.instance is not None:
                self.instances[event.member] = event.instance
        elif event.f == "committed":
            self.fetched.append(event)
        else:
            shown = event.seq if event.f == "commit" else None
            offset = OffsetSet(event.seq, event.sent, event.offset, shown)
            self.sets[event.place].append(offset)
            if event.f == "pending":
                self.open[event.producer].append((event.place, offset))

    def on_end_of_transaction(self, event: ClientEvent) -> None:
        """A producer has ended its transaction; one that is aborted sets nothing."""
        for place, offset in self.open.pop(event.producer, ()):
            offset.shown = event.seq
            if event.committed is False:
                self.sets[place].remove(offset)

    def on_read(self, event: ClientEvent) -> None:
        """A record that a member got; also one that is excused was read."""
        if event.offset is not None:
            self.read[event.place].setdefault(event.offset, event)
            self.read_on[event.place] = min(
                event.broker, self.read_on.get(event.place, event.broker)
            )

    def on_deleted(self, place: Place, seq: int) -> None:
        """The coordinator deletes an offset."""
        self.sets[place].append(OffsetSet(seq, seq, NO_OFFSET, seq))

    def at_end(
        self,
        coordinator: Coordinator,
        leaders: Mapping[Place, LastLeader],
        misled: Collection[str],
    ) -> Said:
        """The run has ended.

        Shapes:  leaders: of the partitions. misled: the clients that were told what no node said.
        """
        for event in self.fetched:
            sets = self.sets[event.place]
            last = None if event.sent is None else _last_before(sets, event.sent)
            if last is not None and _is_promised(sets, last, event):
                yield from committed_offsets_are_not_forgotten(event, last, sets, coordinator)
        owners: dict[Any, set[str]] = defaultdict(set)
        for event in self.given:
            if event.member is not None and coordinator.excuse_of(event) is None:
                owner = self.instances.get(event.member, event.member)
                owners[self._generation(event)].add(owner)
        for event in self.given:
            of_generation = owners[self._generation(event)]
            yield from a_partition_has_one_owner(event, of_generation, coordinator)
        for place, read in self.read.items():
            leader = leaders.get(place)
            if leader is not None:
                there = {offset: read[offset] for offset in read if leader.log.at(offset)}
                if there:
                    yield from a_group_leaves_no_record_out(self, there, leader, misled)

    def _generation(self, event: ClientEvent) -> tuple[int, int | None, Place]:
        """In which life of the group, and which generation, a partition was given.

        A group that has ended may come again, with its first generation.
        """
        return bisect_left(self.ended, event.seq), event.generation, event.place


def _last_before(sets: list[OffsetSet], event: int) -> OffsetSet | None:
    place = bisect_left(sets, event, key=_SEQ)
    return sets[place - 1] if place else None


def _is_promised(sets: list[OffsetSet], last: OffsetSet, fetched: ClientEvent) -> bool:
    """The offset had been acknowledged by then, for this kind of fetch, and was not deleted."""
    if last.shown is None or fetched.sent is None or last.shown >= fetched.sent:
        return False
    if last.shown != last.seq and not fetched.stable:
        return False  # set in a transaction, which other fetches need not see
    return last.sent is None or not any(
        known.offset == NO_OFFSET and last.sent < known.seq < fetched.seq for known in sets
    )


@rule("H1", "Committed offsets are not forgotten",
      source="KIP-211, KIP-447, KIP-709; OffsetMetadataManager.fetchOffsets; Jepsen: stale read",
      at_end=True, evidence=Evidence.TRACE, tables=_OF_GROUPS,
      breaks="A commit of 4 is acknowledged, and the group fetches 3.",
      keeps="A commit sets the offset back; one fetch was sent before a commit, and "
      "one saw a commit that was acknowledged later.")  # fmt: skip
def committed_offsets_are_not_forgotten(
    fetched: ClientEvent, last: OffsetSet, sets: list[OffsetSet], coordinator: Coordinator
) -> Findings:
    """The offset that a group fetches is not below the last one whose commit, or that of its
    transaction, was acknowledged before, unless it was set later, is expired or was deleted. A
    coordinator that has lost the group, or has not heard yet of the next one, promises nothing."""
    if (why := coordinator.excuse_of(fetched)) is not None:
        yield exempt(why)
        return
    yield CASE
    if fetched.offset is None or last.offset is None or fetched.offset >= last.offset:
        return
    later = sets[bisect_right(sets, fetched.sent, key=_SEQ) :]
    following = next((known.offset for known in later if known.offset is not None), None)
    if fetched.offset != following:
        yield broken(
            f"broker {fetched.broker} returned a committed offset of {fetched.offset} to a group "
            "after it had acknowledged a higher one",
            fetched,
        )


@rule("H2", "A partition has one owner in a group",
      source="KIP-848; ConsumerCoordinator, CurrentAssignmentBuilder", evidence=Evidence.TRACE,
      at_end=True, tables=_OF_GROUPS,
      breaks="Two members own orders-0 in generation 1.",
      keeps="The next generation gives orders-0 to another member, and another "
      "group has an owner of its own.")  # fmt: skip
def a_partition_has_one_owner(
    given: ClientEvent, owners: set[str], coordinator: Coordinator
) -> Findings:
    """In one generation of a classic group, or at one member epoch of a consumer group, a partition
    is assigned to one member, unless the coordinator has lost the group, or has not heard yet of
    the next one."""
    if (why := coordinator.excuse_of(given)) is not None:
        yield exempt(why)
        return
    yield CASE
    # A static member counts by its instance: it comes back under another member id, in the same
    # generation, and keeps what it owns (KIP-345).
    if len(owners) > 1:
        yield broken(
            f"two members own the partition in generation {given.generation} of their group", given
        )


@rule("F10", "A group leaves no record out",
      source="Jepsen, Kafka workload: lost write, unseen", at_end=True, evidence=Evidence.TRACE,
      tables=_OF_READERS,
      breaks="The first member of a group reads 0 and 1, and the next one begins at 3.",
      keeps="The next member of a group reads one record again, and compaction has "
      "taken another.")  # fmt: skip
def a_group_leaves_no_record_out(
    group: Group, read: Mapping[int, ClientEvent], leader: LastLeader, misled: Collection[str]
) -> Findings:
    """The members of a group together read every record of a partition between the first and the
    last one that they read."""
    if group.is_sought:
        yield exempt("another client has set offsets of the group")
        return
    if not group.clients.isdisjoint(misled):
        yield exempt("a member was told what no node said")
        return
    yield CASE
    first, last = min(read), max(read)
    if len(read) < leader.log.between(first, last):
        yield broken(
            f"the members of a group read {len(read)} records of a partition and left others "
            "between them out",
            read[last],
            broker=group.read_on[read[last].place],
        )
