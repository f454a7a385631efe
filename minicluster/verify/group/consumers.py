"""A consumer of the cluster's own: where it fetches, and which records it gets.

Positions are compared within one assignment only, because a consumer begins at other offsets with
each: the last assignment or fetched offset that it had received when it sent a fetch is the one to
which the fetch belongs. Another client may seek, and is not judged. What is excused is passed, and
not judged: without it, the first record behind what a loss has left was taken for a skip.

subject   a consumer: its fetches as it sends them, its assignments and records as it receives them;
          of the partitions the logs of their last leaders
keeps     by partition, where it fetched last in this assignment, and how far the records go that it
          got; of the response at hand the record that is due
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping

from msgspec import Struct

from minicluster.verify.group.event import BEFORE_ALL, ClientEvent
from minicluster.verify.model import Evidence
from minicluster.verify.partition.clients import LastLeader
from minicluster.verify.partition.event import Place
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, rule

_TABLES = ("client_record", "partition_event", "replica_log", "raft_event")


class Position(Struct):
    """Where a consumer is in a partition, in one assignment.

    Units:  fetched: where its last fetch began. passed: behind all records that it got.
    """

    fetched: int | None = None
    passed: int = 0


class Consumer:
    """One consumer."""

    def __init__(self, leaders: Mapping[Place, LastLeader]) -> None:
        self.leaders = leaders
        self.assigned = BEFORE_ALL
        self.positions: dict[Place, Position] = defaultdict(Position)
        self.due: dict[Place, tuple[int, int]] = {}  # by response

    def on_assigned(self, at: int) -> None:
        """It has received an assignment, or the offsets at which it begins."""
        self.assigned = at
        self.positions.clear()

    def on_fetch(self, event: ClientEvent, offset: int) -> Said:
        """It sends a fetch, behind all that it got or where the last one began."""
        position = self.positions[event.place]
        if position.fetched is not None and event.excuse is None:
            yield from positions_do_not_go_back(position.fetched, offset, event)
            due = max(position.fetched, position.passed)
            yield from polls_skip_no_record(due, offset, self.leaders.get(event.place), event)
        position.fetched = offset

    def on_record(self, event: ClientEvent, offset: int) -> Said:
        """It receives a record, at the beginning of a fetch or behind the record before."""
        request, due = self.due.get(event.place, (event.request, 0))
        due = max(due if request == event.request else 0, event.fetch_offset or 0)
        self.due[event.place] = event.request, offset + 1
        if event.excuse is None:
            yield from polls_skip_no_record(due, offset, self.leaders.get(event.place), event)
        if (BEFORE_ALL if event.sent is None else event.sent) >= self.assigned:
            position = self.positions[event.place]
            position.passed = max(position.passed, offset + 1)


@rule("F7", "Positions of consumers do not go back",
      source="KAFKA-2334; Jepsen, Kafka workload: nonmonotonic poll", evidence=Evidence.TRACE,
      at_end=True, tables=_TABLES,
      breaks="A consumer fetches at 2, 3 and 2 in one assignment.",
      keeps="A lost response is fetched again; a new assignment begins at its "
      "committed offset, and what was fetched before arrives late.")  # fmt: skip
def positions_do_not_go_back(before: int, offset: int, fetch: ClientEvent) -> Findings:
    """Between two assignments the offsets at which a consumer fetches a partition do not fall."""
    yield CASE
    if offset < before:
        yield broken(
            f"a consumer went back to offset {offset}, which it fetched from broker {fetch.broker}",
            fetch,
        )


@rule("F12", "Polls skip no record",
      source="Jepsen, Kafka workload: poll skip", at_end=True, evidence=Evidence.TRACE,
      tables=_TABLES,
      breaks="A consumer reads 0, 1 and 3, and the log has a record at 2.",
      keeps="A lost response is fetched again; a new assignment begins at its "
      "committed offset, and what was fetched before arrives late.")  # fmt: skip
def polls_skip_no_record(
    due: int, offset: int, leader: LastLeader | None, event: ClientEvent
) -> Findings:
    """A fetch of a consumer returns the records of a partition from its offset on without a gap,
    and the next fetch begins where they end, or before."""
    yield CASE
    log = () if leader is None else leader.log.offsets
    place = bisect_left(log, due)
    if place < len(log) and log[place] < offset:
        yield broken(
            f"a consumer came to offset {offset} on broker {event.broker} and had skipped records "
            "before it",
            event,
        )
