"""Records that two members of a group were handed at once, or two programs that commit for it.

subject   a group in a partition: who held it from when to when, and what each was handed
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from msgspec import Struct

from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.group.event import ClientEvent
from minicluster.verify.model import Evidence
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import TopicNames
from minicluster.verify.programs.readings import OF_GROUPS, GroupPlace, Readings
from minicluster.verify.programs.requests import Process
from minicluster.verify.rules.rule import CASE, Findings, SaidOf, broken, rule


class Held(Struct):
    """A partition of a member in a generation, or of a program that commits without one (-1).

    Units:   begun: the event from which it is held; until: the last event that shows it.
    """

    process: Process
    member: str
    generation: int
    broker: int
    begun: int
    until: int

    @property
    def by_cluster(self) -> bool:
        """Its coordinator has assigned the partition."""
        return self.generation >= 0


class Members:
    """Until when a coordinator has taken a member for one of a generation, by its responses."""

    def __init__(self) -> None:
        self._until: dict[tuple[str | None, str, int, int], int] = {}

    def on_exchange(self, exchange: Exchange) -> None:
        """A request of a program has ended."""
        if exchange.api not in ("Heartbeat", "OffsetCommit") or exchange.error != "NONE":
            return
        if exchange.api == "OffsetCommit" and not _has_committed(exchange):
            return
        request = exchange.request
        number: Any = request.get("generationId", request.get("generationIdOrMemberEpoch", -1))
        group, member = request.get("groupId", ""), request.get("memberId", "")
        of_member = group, member, number, exchange.receiver
        self._until[of_member] = max(exchange.handle_seq or -1, self._until.get(of_member, -1))

    def until(self, event: ClientEvent) -> int:
        """The last event that shows a member whose assignment this is; -1: none."""
        member = event.group, event.member or "", event.generation or 0, event.broker
        return self._until.get(member, -1)


def on_holders(known: Readings, members: Members, names: TopicNames) -> Iterator[SaidOf]:
    """Each pair of holders of a partition in a group, by the records that both were handed."""
    when = _when_handed(known)
    for (group, topic_id, part), held in sorted(_holders(known, members).items(), key=str):
        for one, other in combinations(sorted(held, key=lambda each: each.begun), 2):
            if (one.process, one.member) == (other.process, other.member):
                continue
            if one.by_cluster != other.by_cluster:
                continue  # a coordinator with members takes no other commits
            begun, until = other.begun, min(one.until, other.until)
            if one.by_cluster:
                # Another broker may believe that it still coordinates the group: its heartbeats
                # show nothing, and it can commit nothing.
                until = one.until if one.broker == other.broker else -1
            records = _both(when.get((topic_id, part), {}), one, other, begun, until)
            said = no_record_is_handed_to_two_members_at_once(group, one, other, records)
            yield said, names.name_of(topic_id) or "", part, -1


@rule("P6", "No record is handed to two members at once",
      source="ConsumerCoordinator; KIP-848 for what a group promises", evidence=Evidence.PROGRAMS,
      at_end=True, tables=OF_GROUPS,
      breaks="Member m2 is given the partition of m1, whose heartbeats are still taken as before; "
      "both read 0 and 1.",
      keeps="Member m1 is expelled, and what it had read and not committed is "
      "handed to m2.")  # fmt: skip
def no_record_is_handed_to_two_members_at_once(
    group: str, one: Held, other: Held, records: int
) -> Findings:
    """A coordinator that has given a partition to a member takes no other one for its owner, and
    programs that are not members commit for a group only what no other program reads meanwhile. A
    record that is handed out again after a rebalance is not a case."""
    yield CASE
    if not records:
        return
    first, second = sorted((one.process.text, other.process.text))
    both = f"{first} and {second} were handed the same {records} records at once"
    if one.by_cluster:
        yield broken(
            f"{both}; accused is the cluster, which assigned the partition to both in group {group}"
        )
    else:
        yield broken(
            f"{both}; accused are the programs, which commit for group {group} without being "
            "its members (assign)"
        )


def _both(
    handed: Mapping[int, list[tuple[Process, int]]],
    one: Held,
    other: Held,
    begun: int,
    until: int,
) -> int:
    """How many records both were handed, the later of the two while both held the partition."""
    if begun >= until or one.process == other.process:
        return 0
    count = 0
    for times in handed.values():
        ones = [at for process, at in times if process == one.process and at >= one.begun]
        others = [at for process, at in times if process == other.process and at >= other.begun]
        if ones and others and begun < max(min(ones), min(others)) <= until:
            count += 1
    return count


def _when_handed(known: Readings) -> dict[Place, dict[int, list[tuple[Process, int]]]]:
    """The records of each partition, with whom they were handed to and when."""
    when: dict[Place, dict[int, list[tuple[Process, int]]]] = defaultdict(lambda: defaultdict(list))
    for event, asked in known.rows:
        if event.f == "read" and event.visible and event.received is not None:
            when[event.place][event.offset].append((asked.process, event.received))
    return when


def _holders(known: Readings, members: Members) -> dict[GroupPlace, list[Held]]:
    """Who held a partition in a group: members of the classic protocol, and committers."""
    holders: dict[GroupPlace, list[Held]] = defaultdict(list)
    without: dict[tuple[GroupPlace, Process], Held] = {}
    for event, one in known.rows:
        key = event.group, *event.place
        if event.misled:
            continue
        if event.f == "own" and one.api == "SyncGroup" and event.received is not None:
            member, number, last = event.member or "", event.generation or 0, members.until(event)
            holders[key].append(
                Held(one.process, member, number, event.broker, event.responded, last)
            )
        elif event.f == "commit" and event.generation == -1 and one.handled is not None:
            held = without.get((key, one.process))
            if held is None:
                held = Held(one.process, "", -1, event.broker, one.handled, one.handled)
                without[key, one.process] = held
                holders[key].append(held)
            held.until = one.handled
    return holders


def _has_committed(commit: Exchange) -> bool:
    topics = commit.response.get("topics", ())
    return any(part.get("errorCode") == 0 for topic in topics for part in topic["partitions"])
