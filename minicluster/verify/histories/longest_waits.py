"""How long each thing was waited for, once all disturbances of a run had ended.

What holds later than promised is a stretch of time: from its beginning, or from the end of the last
disturbance, to the event that ends it. Of each promise and subject the longest stretch counts.
Bounded by the subjects: brokers, partitions, groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from minicluster.values import dataclass


class Awaited(StrEnum):
    """What is waited for, as ``bounds_ms`` of run.json names it."""

    UNFENCED = "G1"  # a broker
    ELECTED = "G2"  # a controller
    PUBLISHED = "G3"  # an image with what is committed
    ISR_CHANGE_ENDED = "G4"  # of a leader
    COMMITTED = "G5"  # what a leader has appended
    IN_SYNC = "G6"  # the replicas of a partition
    LED = "G7"  # a partition
    COMPLETED = "G8"  # a request that is parked
    REASSIGNED = "G9"
    SHUT_DOWN = "G10"  # a broker
    ISR_AT_REST = "G11"
    AT_THE_END = "G12"  # a group


# A lost ISR change ends by controller.socket.timeout.ms, and until then its leader proposes nothing
# else (DefaultAlterPartitionManager). A lost Fetch ends by request.timeout.ms, and until then its
# follower fetches nothing else from that leader. So these count from the end of the requests of
# both kinds that were on their way when the last disturbance ended.
BY_LOST_REQUESTS = frozenset(
    {
        Awaited.ISR_CHANGE_ENDED,
        Awaited.COMMITTED,
        Awaited.IN_SYNC,
        Awaited.LED,
        Awaited.REASSIGNED,
        Awaited.ISR_AT_REST,
        Awaited.AT_THE_END,
    }
)


class Subject(NamedTuple):
    """What waits: a node, a partition, a partition on a node, or the cluster."""

    topic: str | None = None
    partition: int | None = None
    node: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """The longest time for which a subject waited; unjudged: why nothing can be said of any."""

    awaited: Awaited
    node: int | None = None
    waited_ms: int = 0
    bound_ms: int = 0
    unjudged: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """The moments of a run, and the bounds of its promises in milliseconds.

    Units:  lost_requests_ended_ms: the end of the ISR changes and Fetches of replicas that were on
            their way when the last disturbance ended.
    """

    healed_ms: int
    lost_requests_ended_ms: int
    ended_ms: int
    bounds: Mapping[str, int]

    def from_ms(self, awaited: Awaited) -> int:
        """The moment from which a promise counts."""
        return self.lost_requests_ended_ms if awaited in BY_LOST_REQUESTS else self.healed_ms

    def is_over(self, awaited: Awaited) -> bool:
        """The run lasts longer than a promise's bound; else it decides nothing about it."""
        bound_ms = self.bounds.get(awaited)
        return bound_ms is not None and self.ended_ms - self.from_ms(awaited) > bound_ms


class LongestWaits:
    """The longest stretch of each promise and subject, and its beginning."""

    def __init__(self, times: Times) -> None:
        self.times = times
        self.longest: dict[tuple[Awaited, Subject], int] = {}
        self.since_ms: dict[tuple[Awaited, Subject], int] = {}
        self._open: dict[tuple[Awaited, Subject], int] = {}

    def case(self, awaited: Awaited, subject: Subject) -> None:
        """The promise has a case, whether anything waits or not."""
        if self.times.is_over(awaited):
            self.longest.setdefault((awaited, subject), 0)

    def begin(self, awaited: Awaited, subject: Subject, at_ms: int) -> None:
        """Something is waited for from here on, unless it is waited for already."""
        self._open.setdefault((awaited, subject), at_ms)

    def end(self, awaited: Awaited, subject: Subject, at_ms: int) -> None:
        """End a wait: what was waited for holds, or need not hold any more."""
        since_ms = self._open.pop((awaited, subject), None)
        self.stretch(awaited, subject, since_ms, at_ms)

    def set(self, awaited: Awaited, subject: Subject, waits: bool, at_ms: int) -> None:
        """Begin or end a wait."""
        (self.begin if waits else self.end)(awaited, subject, at_ms)

    def drop(self, awaited: Awaited, subject: Subject) -> None:
        """Drop a wait for what is not promised any more."""
        self._open.pop((awaited, subject), None)

    def stretch(
        self, awaited: Awaited, subject: Subject, since_ms: int | None, until_ms: int
    ) -> None:
        """A whole stretch, None: of nothing; the part after the last disturbance counts."""
        self.case(awaited, subject)
        key = awaited, subject
        if since_ms is not None and key in self.longest:
            since_ms = max(since_ms, self.times.from_ms(awaited))
            if until_ms - since_ms > self.longest[key]:
                self.longest[key] = until_ms - since_ms
                self.since_ms[key] = since_ms

    def end_all(self) -> None:
        """The run has ended, and with it what was still waited for."""
        for awaited, subject in list(self._open):
            self.end(awaited, subject, self.times.ended_ms)
