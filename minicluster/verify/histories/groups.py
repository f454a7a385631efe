"""Groups: what their members own, commit and read, and what of it they are given back.

========================  ========================================================================
takes                     ``client_record`` rows, ``group_event`` rows; for what members read also
                          the log of each partition's last leader; of the partitions of
                          ``__consumer_offsets`` what they have lost
keeps, by group and       what has set its offset, in order; its owners in the life and generation
partition                 of the group; the records that its members read
keeps, by consumer and    its fetches and the records that it got, since its last assignment
partition
yields                    ``FetchedOffset``, ``OwnedPartition``, ``FetchPosition``,
                          ``ConsumerProgress``, ``GroupPassage``
========================  ========================================================================

All of it is judged afterwards: a commit that comes later excuses an offset, and where records lie
is known by the log of the last leader. What consumers passed, left out or saw twice is judged of
the cluster's own consumers only, since another client may seek. The names are those of Jepsen's
workload for Kafka.

Positions are compared within one assignment only, because a consumer begins at other offsets with
each: the last assignment or fetched offset that it had received when it sent a fetch is the one to
which the fetch belongs. A fetch is due where the last one began, or behind all records that the
consumer had received by then; a record is due where its own fetch began, or behind the record
before it in the same response. How one response follows another is judged by their fetches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from minicluster.values import dataclass
from minicluster.verify.histories.clients import (
    Received,
    last_leaders,
    received,
    returned,
)
from minicluster.verify.histories.coordinator_losses import group_losses
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import topic_names

NO_OFFSET = -1
GroupPartition = tuple[str | None, str, int]  # group, topic id, partition


# --- offsets of groups ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OffsetSet:
    """Something has set the offset of a group, or deleted it (-1).

    Units:  seq: the event that counts. sent: when the request was sent. shown: from when on fetches
            of stable offsets have it; None: a transaction that has not ended.
    """

    seq: int
    sent: int | None
    offset: int | None
    shown: int | None


class OffsetsInOrder:
    """What has set the offset of a group and partition, in the order of the events."""

    def __init__(self, offsets: list[OffsetSet]) -> None:
        self.all = sorted(offsets, key=attrgetter("seq"))
        self._named = [known for known in self.all if known.offset is not None]
        self._deleted = [known.seq for known in self.all if known.offset == NO_OFFSET]

    def last_before(self, event: int) -> OffsetSet | None:
        """What set the offset last before an event."""
        place = bisect_left(self.all, event, key=attrgetter("seq"))
        return self.all[place - 1] if place else None

    def next_after(self, event: int) -> int | None:
        """To what the offset was set next after an event; None: never."""
        place = bisect_right(self._named, event, key=attrgetter("seq"))
        return self._named[place].offset if place < len(self._named) else None

    def deleted_before(self, event: int) -> int | None:
        """The last event before another that deleted the offset; None: there is none."""
        place = bisect_left(self._deleted, event)
        return self._deleted[place - 1] if place else None


class OffsetsOfGroups:
    """What has set the offset of each group and partition, in the order of the events."""

    def __init__(self, run: TracedRun) -> None:
        self._sets: dict[GroupPartition, list[OffsetSet]] = defaultdict(list)
        ends = _ends_of_transactions(run)
        for response in run.context(returned):
            row = response.row
            if row["f"] not in ("commit", "pending"):
                continue
            shown = row["seq"]
            if row["f"] == "pending":
                end = _next_end(ends.get((row["producer_id"], row["producer_epoch"]), []), row)
                if end is not None and end["committed"] is False:
                    continue  # an aborted transaction sets nothing
                shown = None if end is None else end["seq"]
            self._add(row, response.topic_id, row["send_seq"], row["offset"], shown)
        names = run.context(topic_names)
        for row in run.rows("group_event"):
            if row["kind"] == "forget":
                # The coordinator keeps offsets by name, so the deletion is of each topic of it.
                for topic_id in names.ids_of(row["topic"]):
                    self._add(row, topic_id, row["seq"], NO_OFFSET, row["seq"])
        self.by_partition = {key: OffsetsInOrder(sets) for key, sets in self._sets.items()}

    def _add(
        self, row: Row, topic_id: str, sent: int | None, offset: int | None, shown: int | None
    ) -> None:
        key = row["group_id"], topic_id, row["part"]
        self._sets[key].append(OffsetSet(row["seq"], sent, offset, shown))


def _ends_of_transactions(run: TracedRun) -> dict[tuple[Any, Any], list[Row]]:
    ends: dict[tuple[Any, Any], list[Row]] = defaultdict(list)
    for row in run.rows("client_record"):
        if row["f"] == "end":
            ends[row["producer_id"], row["producer_epoch"]].append(row)
    return ends


def _next_end(ends: list[Row], row: Row) -> Row | None:
    """The next end of a producer's transaction after a row of it."""
    place = bisect_right(ends, row["seq"], key=_seq)
    return ends[place] if place < len(ends) else None


def _seq(row: Row) -> int:
    seq: int = row["seq"]
    return seq


def offsets_of_groups(run: TracedRun) -> OffsetsOfGroups:
    """Context: what has set the offsets of groups."""
    return OffsetsOfGroups(run)


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedOffset:
    """A group has fetched its offset, which was set and acknowledged before, and not deleted since.

    Shapes:  next_set: to what it was set next; None: never. is_lost: the coordinator's log has lost
             records since it was set.
    """

    broker: int
    offset: int | None
    last_set: int | None
    next_set: int | None
    is_lost: bool


@history(
    FetchedOffset, reads=("client_record", "group_event", "partition_event", "raft_event")
)  # fmt: skip
def fetched_offsets(run: TracedRun, judge: Judge) -> None:
    """Each fetch of a group's offset, as of when it was sent, beside what set the offset."""
    offsets = run.context(offsets_of_groups).by_partition
    lost = run.context(group_losses)
    for response in run.context(returned):
        row = response.row
        if row["f"] != "committed" or row["send_seq"] is None:
            continue
        known = offsets.get((row["group_id"], response.topic_id, row["part"]))
        last = None if known is None else known.last_before(row["send_seq"])
        if known is not None and last is not None and _is_promised(known, last, row):
            step = FetchedOffset(
                broker=row["broker"],
                offset=row["offset"],
                last_set=last.offset,
                next_set=known.next_after(row["send_seq"]),
                is_lost=lost.has_lost(row["group_id"], last.seq, row["seq"]),
            )
            judge.take(step, -1, response.topic or "", row["part"], row["seq"])


def _is_promised(known: OffsetsInOrder, last: OffsetSet, row: Row) -> bool:
    """The offset had been acknowledged by then, for this kind of fetch, and was not deleted."""
    if last.shown is None or last.shown >= row["send_seq"]:
        return False
    if last.shown != last.seq and not row["stable"]:
        return False  # set in a transaction, which other fetches need not see
    deleted_at = known.deleted_before(row["seq"])
    return deleted_at is None or last.sent is None or deleted_at <= last.sent


# --- owners of partitions -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedPartition:
    """A partition that a member of a group was given.

    Shapes:  owners: the members to which the partition was given in that generation; a static
             member by its instance, since it keeps what it owns when it comes back (KIP-345).
    """

    broker: int
    generation: int | None
    owners: frozenset[str]


@history(
    OwnedPartition, reads=("client_record", "group_event", "partition_event", "raft_event")
)  # fmt: skip
def owned_partitions(run: TracedRun, judge: Judge) -> None:
    """Each partition that a member was given, with all that were given it in that generation."""
    ended: dict[str | None, list[int]] = defaultdict(list)
    for row in run.rows("group_event"):
        if row["kind"] == "end":
            ended[row["group_id"]].append(row["seq"])
    lost = run.context(group_losses)
    owned: dict[Any, list[Received]] = defaultdict(list)
    # A member of a consumer group names its instance when it joins. Without it, a static member
    # that comes back under another member id, in the same generation, would be a second owner of
    # all that it owns, and H2 would accuse its group (KIP-345).
    instances: dict[Any, str] = {}
    for response in run.context(returned):
        if response.row["f"] == "own":
            group = response.row["group_id"]
            if response.row["instance_id"] is not None:
                instances[group, response.row["member_id"]] = response.row["instance_id"]
            # A group that has ended may come again, with its first generation, and so does one
            # that its coordinator has lost.
            seq = response.row["seq"]
            lives = bisect_left(ended.get(group, []), seq)
            lives += bisect_left(lost.events(group), seq)
            # With more partitions of its topic, two brokers may coordinate it for a while.
            elsewhere = lost.may_be_elsewhere(group, seq) and response.row["broker"]
            owned[group, lives, elsewhere, response.row["generation"], *response.place].append(
                response
            )
    for (group, *_), assignments in owned.items():
        members = {assignment.row["member_id"] for assignment in assignments}
        owners = frozenset(
            instances.get((group, member), member) for member in members if member is not None
        )
        for assignment in assignments:
            step = OwnedPartition(
                broker=assignment.row["broker"],
                generation=assignment.row["generation"],
                owners=owners,
            )
            judge.take(
                step, -1, assignment.topic or "", assignment.row["part"], assignment.row["seq"]
            )


# --- positions of consumers -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchPosition:
    """A consumer fetches a partition once more, without a new assignment in between.

    Units:  before: where the last fetch began.
    """

    broker: int
    offset: int
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerProgress:
    """A consumer has come to an offset, by a fetch or a record.

    Units:  next_in_log: the first record of the log at or behind the offset that was due; None: the
            log ends before.
    """

    broker: int
    offset: int
    next_in_log: int | None


@dataclass(slots=True)
class _Fetched:
    """A fetch of a consumer or a record that it got, and which assignment of its it belongs to."""

    received: Received
    assignment: int

    @property
    def is_read(self) -> bool:
        return bool(self.received.row["f"] == "read")

    @property
    def sent(self) -> int:
        return _none_first(self.received.row["send_seq"])

    @property
    def at(self) -> int:
        row = self.received.row
        return _none_first(row["received_seq" if self.is_read else "send_seq"])


def _none_first(number: int | None) -> int:
    return -1 if number is None else number


@history(
    FetchPosition, ConsumerProgress, reads=("client_record", "partition_event", "replica_log")
)  # fmt: skip
def positions_of_consumers(run: TracedRun, judge: Judge) -> None:
    """Each fetch of a consumer beside the one before, and each record beside the one that was due.

    A consumer begins at the offsets that it fetches with each assignment. What is excused is
    passed, and not judged: without it, the first record behind what a loss has left was taken for
    a skip.
    """
    leaders = run.context(last_leaders)
    logs = {place: leader.log.offsets for place, leader in leaders.items()}
    tracks: dict[Any, list[_Fetched]] = defaultdict(list)
    for fetched in _fetched(run):
        if fetched.received.row["fetch_offset"] is not None:
            key = fetched.received.row["client_id"], *fetched.received.place, fetched.assignment
            tracks[key].append(fetched)
    for track in tracks.values():
        place = track[0].received.place
        for fetched, due in _due(track, judge):
            if fetched.received.excuse is not None:
                continue
            log = logs.get(place, ())
            at = bisect_left(log, due)
            row = fetched.received.row
            step = ConsumerProgress(
                broker=row["broker"],
                offset=row["offset"] if fetched.is_read else row["fetch_offset"],
                next_in_log=log[at] if at < len(log) else None,
            )
            judge.take(step, -1, fetched.received.topic or "", row["part"], row["seq"])


def _fetched(run: TracedRun) -> Iterator[_Fetched]:
    """The fetches of the cluster's own consumers and the records that they got."""
    by_client: dict[str, list[Received]] = defaultdict(list)
    for response in run.context(received):
        row = response.row
        if row["connection"] is not None or row["f"] not in ("own", "committed", "fetch", "read"):
            continue
        if row["misled"]:
            continue
        if row["f"] == "fetch" or row["received_seq"] is not None:
            by_client[row["client_id"]].append(response)
    for responses in by_client.values():
        begun = sorted(
            response.row["received_seq"]
            for response in responses
            if response.row["f"] in ("own", "committed")
        )
        for response in responses:
            if response.row["f"] in ("fetch", "read"):
                sent = _none_first(response.row["send_seq"])
                yield _Fetched(response, bisect_right(begun, sent))


def _due(track: list[_Fetched], judge: Judge) -> Iterator[tuple[_Fetched, int]]:
    """Each fetch and record of one assignment, with the offset that was due.

    That of the fetch, or behind the record before; for a fetch behind all that the consumer got.
    """
    fetches = sorted((fetched for fetched in track if not fetched.is_read), key=attrgetter("sent"))
    reads = sorted((fetched for fetched in track if fetched.is_read), key=attrgetter("at"))
    passed = 0
    read = iter(reads)
    ahead = next(read, None)
    before: int | None = None
    for fetched in fetches:
        while ahead is not None and ahead.at <= fetched.at:
            passed = max(passed, ahead.received.row["offset"] + 1)
            ahead = next(read, None)
        row = fetched.received.row
        if before is not None and fetched.received.excuse is None:
            step = FetchPosition(broker=row["broker"], offset=row["fetch_offset"], before=before)
            judge.take(step, -1, fetched.received.topic or "", row["part"], row["seq"])
            yield fetched, max(before, passed)
        before = row["fetch_offset"]
    for records in _by_response(reads):
        due = 0
        for fetched in sorted(records, key=lambda fetched: fetched.received.row["offset"]):
            row = fetched.received.row
            yield fetched, max(due, row["fetch_offset"])
            due = row["offset"] + 1


def _by_response(reads: Iterable[_Fetched]) -> Iterable[list[_Fetched]]:
    responses: dict[int, list[_Fetched]] = defaultdict(list)
    for read in reads:
        responses[read.received.row["rpc"]].append(read)
    return responses.values()


# --- what groups read together --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPassage:
    """All that the members of a group read of a partition.

    Shapes:  may_seek: another client has set an offset of the group. misled: a member was told what
             no node said.
    Units:   records: how many of the log's. in_log: how many it has from the first of them to the
             last.
    """

    broker: int
    records: int
    in_log: int
    may_seek: bool
    misled: bool = False


@history(
    GroupPassage, reads=("client_record", "partition_event", "replica_log")
)  # fmt: skip
def passages_of_groups(run: TracedRun, judge: Judge) -> None:
    """What the members of each group read of each partition together."""
    leaders = run.context(last_leaders)
    groups: dict[str, set[str | None]] = defaultdict(set)
    sought: set[str | None] = set()
    misled: set[str] = set()
    for row in run.rows("client_record"):
        if row["misled"]:
            misled.add(row["client_id"])
        if row["f"] == "own":
            groups[row["client_id"]].add(row["group_id"])
        elif row["f"] in ("commit", "pending") and row["connection"] is not None:
            sought.add(row["group_id"])
    places: dict[tuple[str | None, Place], dict[int, Received]] = defaultdict(dict)
    brokers: dict[tuple[str | None, Place], int] = {}
    for response in run.context(received):  # also what is excused was read
        row = response.row
        if row["f"] != "read" or row["connection"] is not None or row["received_seq"] is None:
            continue
        leader = leaders.get(response.place)
        if leader is None or leader.log.at(row["offset"]) is None:
            continue
        for group in groups.get(row["client_id"], ()):
            key = group, response.place
            places[key].setdefault(row["offset"], response)
            brokers[key] = min(row["broker"], brokers.get(key, row["broker"]))
    misled_groups = {group for client in misled for group in groups.get(client, ())}
    for (group, place), records in places.items():
        first, last = min(records), max(records)
        any_of_them = next(iter(records.values()))
        step = GroupPassage(
            broker=brokers[group, place],
            records=len(records),
            in_log=leaders[place].log.between(first, last),
            may_seek=group in sought,
            misled=group in misled_groups,
        )
        judge.take(step, -1, any_of_them.topic or "", place[1], records[last].row["seq"])
