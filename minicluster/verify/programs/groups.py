"""Groups of users' programs: the records that they pass, and their commits.

subject   a group of programs in a partition: what its programs were handed (``readings.py``), what
          the group has set (``group/groups.py``), what clients were acknowledged
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from minicluster.verify.exchange.exchange import Exchange, each
from minicluster.verify.group.groups import OffsetSet
from minicluster.verify.model import Evidence
from minicluster.verify.partition.clients import ClientsOfPartition, KnownRecord, LastLeader
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import TopicNames
from minicluster.verify.producers.producers import COMMIT, Batch
from minicluster.verify.programs.lag import Lags, the_lag_of_a_group_falls
from minicluster.verify.programs.readings import OF_GROUPS, GroupPlace, Reading, Readings
from minicluster.verify.rules.rule import CASE, Findings, SaidOf, broken, exempt, rule


class GroupInPartition(Struct):
    """A group of programs in a partition.

    Shapes:  commits: the offsets that its programs committed, in order, and by whom. given: a
             higher offset than the group had ever set, which a coordinator gave to a program.
    """

    name: str
    reading: Reading
    commits: list[tuple[int, str]]
    given: int | None

    def passes(self, offset: int, end: int) -> bool:
        """It passes a record before its end, behind where its programs first fetched."""
        lowest = self.reading.lowest
        return lowest is not None and lowest <= offset < end

    def passed_by(self, offset: int) -> str:
        """The program that first committed beyond a record."""
        return next((program for at, program in self.commits if at > offset), "a program")


class Commit(Struct):
    """An offset that a program has committed, or in a transaction would commit; sent: the event."""

    by: str
    group: str | None
    offset: int
    sent: int
    misled: bool


class SentCommits:
    """The offsets that anybody has sent, also where the response never left."""

    def __init__(self, names: TopicNames) -> None:
        self._names = names
        self._sent: dict[GroupPlace, list[tuple[int, int]]] = defaultdict(list)

    def on_exchange(self, exchange: Exchange) -> None:
        """An exchange that has ended."""
        if exchange.api not in ("OffsetCommit", "TxnOffsetCommit"):
            return
        request = exchange.request
        for topic in each(request, "topics"):
            named = self._names.ids_of(topic.get("name"))
            for part in each(topic, "partitions"):
                for topic_id in [topic["topicId"]] if "topicId" in topic else named:
                    key = request.get("groupId", ""), topic_id, part["partitionIndex"]
                    self._sent[key].append((exchange.send_seq, part["committedOffset"]))

    def given_too_much(self, known: Readings) -> dict[GroupPlace, int]:
        """Where a coordinator has given a program a higher offset than any that was sent before."""
        given: dict[GroupPlace, int] = {}
        for event, _ in known.rows:
            if event.f != "committed" or event.misled:
                continue
            key = event.group, *event.place
            before = [value for at, value in self._sent.get(key, ()) if at < event.seq]
            if before and event.offset > max(before):
                given[key] = event.offset
        return given


class GroupsOfPrograms(Struct):
    """All groups of programs, when the run is over.

    Shapes:  clients: what is known of each partition. given: as ``SentCommits`` gives it.
    """

    known: Readings
    names: TopicNames
    clients: Mapping[Place, ClientsOfPartition]
    not_committed: NotCommitted
    lags: Lags
    given: Mapping[GroupPlace, int]

    def on_offsets(
        self, sets: Iterable[tuple[str | None, Place, list[OffsetSet]]]
    ) -> Iterator[SaidOf]:
        """Each group, in each partition of which it has set an offset."""
        commits = _commits(self.known)
        for name, place, of_place in sets:
            if name is not None and name in self.known.groups:
                at = name, *place
                reading = self.known.by_group.get(at, Reading())
                group = GroupInPartition(name, reading, commits[at], self.given.get(at))
                yield from self._on_group(group, place, of_place)

    def _on_group(
        self, group: GroupInPartition, place: Place, sets: list[OffsetSet]
    ) -> Iterator[SaidOf]:
        of_partition = self.clients.get(place)
        records = [
            record
            for record in (() if of_partition is None else of_partition.known)
            if record.is_acknowledged and not self.not_committed.covers(place, record.offset)
        ]
        topic, part = self.names.name_of(place[0]) or "", place[1]
        ends = [one.offset for one in sets if one.shown is not None]
        end = ends[-1] if ends else None
        leader = None if of_partition is None else of_partition.leader
        for record in records:
            # One that the leader's log lacks is gone, which is F1's.
            is_there = leader is not None and leader.log.at(record.offset) is not None
            if is_there and end is not None and group.passes(record.offset, end):
                yield a_group_is_handed_what_it_passes(record, group), topic, part, record.seq
        last = sets[-1] if sets else None
        if last is not None and last.offset is not None and last.offset >= 0:
            lag = self.lags.of(group.name, place, last.offset, last.seq, records)
            yield the_lag_of_a_group_falls(lag), topic, part, -1

    def on_commits(self) -> Iterator[SaidOf]:
        """Each commit of a program, by what the programs of its group had been handed by then."""
        for event, asked in self.known.rows:
            of_partition = self.clients.get(event.place)
            if event.f not in ("commit", "pending") or event.sent is None:
                continue
            if of_partition is None or of_partition.leader is None:
                continue
            group, sent = event.group, event.sent
            commit = Commit(asked.process.text, group, event.offset, sent, event.misled)
            reading = self.known.by_group[group, *event.place]
            said = programs_commit_what_they_were_handed(
                commit, reading, of_partition, of_partition.leader
            )
            yield said, event.topic, event.part, event.seq


@rule("P1", "A group of programs is handed what it passes",
      source="at-least-once delivery: KafkaConsumer, offsets and consumer position",
      at_end=True, evidence=Evidence.PROGRAMS, tables=(*OF_GROUPS, "history"),
      breaks="A program reads 0 and 1, its group has no offset, it begins again at 4 and commits "
      "6.",
      keeps="A program goes from 2 to 4 by itself, and another one has read 5.")  # fmt: skip
def a_group_is_handed_what_it_passes(record: KnownRecord, group: GroupInPartition) -> Findings:
    """Each acknowledged record from the first offset at which a program of a group has fetched, and
    before the offset that the group committed last, was in a response to a program of the group,
    unless a program passed it by a seek of its own."""
    offset, reading = record.offset, group.reading
    handed = offset in reading.handed
    if not handed and _is_in(reading.sought, offset):
        yield exempt("a program of the group has set its own position")
        return
    yield CASE
    if handed:
        return
    lost = f"the record at offset {offset} was acknowledged and is lost to group"
    if any(first <= offset <= last for first, last in reading.spans):
        why = "accused is the cluster: a response to a program of the group left it out"
    elif group.given is not None and group.given > offset:
        why = (
            f"accused is the cluster: the coordinator gave a program the offset {group.given}, "
            "which nobody had committed"
        )
    elif _is_in(reading.reset, offset):
        why = (
            "accused is the program: its group had no offset, and it began behind the record "
            "(auto.offset.reset)"
        )
    else:
        why = f"accused is {group.passed_by(offset)}, which committed beyond it"
    yield broken(f"{lost} {group.name}, which was never handed it; {why}")


@rule("P2", "Programs commit what they were handed",
      source="KafkaConsumer.commitSync: the offset of the next record that it will read",
      at_end=True, evidence=Evidence.PROGRAMS, tables=OF_GROUPS,
      breaks="A program reads 0 and 1, and commits 4.",
      keeps="A program goes from 2 to 4 by itself, and another one has read 5.")  # fmt: skip
def programs_commit_what_they_were_handed(
    commit: Commit, reading: Reading, clients: ClientsOfPartition, leader: LastLeader
) -> Findings:
    """A program commits no offset behind a record that no program of its group was handed before,
    nor one behind the end of the log; an end of the partition that it asked for may be
    committed."""
    if commit.misled:
        yield exempt("the program was told what no node said")
        return
    if clients.loss is not None:
        yield exempt(clients.loss.why)
        return
    known = reading.position_before(commit.sent)
    if known is None:
        yield exempt("no program of the group has fetched the partition: it sets an offset")
        return
    yield CASE
    records = max(0, leader.log.between(known, commit.offset - 1))
    is_beyond = leader.log_end is not None and commit.offset > max(leader.log_end, known)
    if records or is_beyond:
        passed = f"{records} records" if records else "the end of the log"
        yield broken(
            f"{commit.by} committed offset {commit.offset} for group {commit.group}, which had "
            f"been handed what is before {known}: it passes {passed}; accused is the program"
        )


def _is_in(ranges: list[tuple[int, int]], offset: int) -> bool:
    return any(first <= offset < end for first, end in ranges)


def _commits(known: Readings) -> dict[GroupPlace, list[tuple[int, str]]]:
    """The commits of each partition in their order, with who made them."""
    commits: dict[GroupPlace, list[tuple[int, str]]] = defaultdict(list)
    for event, asked in known.rows:
        if event.f in ("commit", "pending") and event.offset is not None:
            commits[event.group, *event.place].append((event.offset, asked.process.text))
    return commits


class NotCommitted:
    """The batches of transactions that were not committed."""

    def __init__(self, every: Iterable[Batch]) -> None:
        self._batches: dict[Place, list[tuple[int, int]]] = defaultdict(list)
        for batch in every:
            if batch.transactional and batch.marker is None and batch.ended_by != COMMIT:
                until = batch.base_offset if batch.last_offset is None else batch.last_offset
                self._batches[batch.place].append((batch.base_offset, until))
        for batches in self._batches.values():
            batches.sort()

    def covers(self, place: Place, offset: int) -> bool:
        """The record at an offset is in one of them."""
        batches = self._batches.get(place, ())
        at = bisect_right(batches, (offset, 2**63))
        return at > 0 and batches[at - 1][1] >= offset
