"""The lag of groups of users' programs at the end of a run.

subject   a group of programs in a partition, from the last disturbance on
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from msgspec import Struct

from minicluster.verify.exchange.exchange import Exchange
from minicluster.verify.model import Evidence
from minicluster.verify.partition.clients import KnownRecord
from minicluster.verify.partition.event import Place
from minicluster.verify.programs.readings import OF_GROUPS, Reading, Readings
from minicluster.verify.programs.requests import Process
from minicluster.verify.rules.rule import CASE, Findings, broken, exempt, rule

LAG_MS = 30_000
"""How long a group may take for what it lags behind, beside its sessions and rebalances."""
ASKED_AFTER_MS = 5_000
"""How long after a record was acknowledged a fetch that does not have it accuses the cluster."""


class Lag(Struct):
    """A group at the end of a run, in a partition of which it has committed offsets.

    Shapes:  programs: those of the group that run. handed: the first record that it lags behind was
             handed to a program after the calm began; asked: a program asked for records there.
    Units:   calm_ms: since the last disturbance, None while one lasts. records: acknowledged, and
             still not passed when the bound was over. still_ms: for how long the offset has stood
             still by then, in the calm.
    """

    group: str
    offset: int
    programs: tuple[str, ...]
    calm_ms: int | None
    bound_ms: int
    records: int = 0
    still_ms: int = 0
    handed: bool = False
    asked: bool = False


@rule("P3", "The lag of a group of programs falls",
      source="liveness after the last disturbance", at_end=True, evidence=Evidence.PROGRAMS,
      tables=(*OF_GROUPS, "history"),
      breaks="A program reads all six records, and has committed 2 since the first of them.",
      keeps="A program has committed all but two records, which were acknowledged a "
      "second ago.")  # fmt: skip
def the_lag_of_a_group_falls(lag: Lag) -> Findings:
    """While a program of a group runs, and nothing disturbs the run any more, the offset of a
    partition for which the group has committed before, and behind which records were acknowledged,
    rises within 30 seconds, a session and a rebalance of its members."""
    if lag.calm_ms is None:
        yield exempt("a disturbance lasts")
        return
    if not lag.programs:
        yield exempt("no program of the group runs at the end")
        return
    if lag.calm_ms < lag.bound_ms:
        yield exempt("the run ends before the bound is over")
        return
    yield CASE
    if not lag.records or lag.still_ms < lag.bound_ms:
        return
    still = (
        f"group {lag.group} has stood at offset {lag.offset} for {lag.still_ms / 1000:g} s in the "
        f"calm, {lag.records} acknowledged records behind"
    )
    programs = ", ".join(lag.programs)
    if lag.handed:
        why = f"accused is {programs}: handed the records, and commits nothing"
    elif lag.asked:
        why = f"accused is the cluster: {programs} asked for the records, and was not given them"
    else:
        why = f"accused is {programs}: running, and asking for no record of the partition"
    yield broken(f"{still}; {why}")


class Sessions:
    """The longest session and rebalance that a member of each group has asked for, together."""

    def __init__(self) -> None:
        self.longest_ms: dict[str, int] = {}

    def on_exchange(self, exchange: Exchange) -> None:
        """A request of a program has ended."""
        if exchange.api in ("JoinGroup", "ConsumerGroupHeartbeat"):
            request = exchange.request
            # The new protocol's session is the broker's: 45 s, unless a config says otherwise.
            session_ms = request.get("sessionTimeoutMs", 45_000)
            rebalance_ms = max(request.get("rebalanceTimeoutMs", 0), 0)
            group = request.get("groupId", "")
            longest_ms = self.longest_ms.get(group, 0)
            self.longest_ms[group] = max(longest_ms, session_ms + rebalance_ms)


class Moments:
    """When events of clients were, in virtual time.

    Shapes:  known: (event, ms), in any order.
    """

    def __init__(self, known: Iterable[tuple[int, int]]) -> None:
        self._moments = sorted(set(known))

    def of(self, seq: int) -> int:
        """The moment of an event, or of the last one before it."""
        at = bisect_right(self._moments, (seq, 2**63))
        return self._moments[at - 1][1] if at else 0


class Lags(Struct):
    """The lag of each group at the end of a run.

    Shapes:  processes: of all programs. healed_ms: None while a disturbance lasts.
    """

    known: Readings
    processes: Sequence[Process]
    sessions: Sessions
    moments: Moments
    healed_ms: int | None
    ended_ms: int | None

    def of(
        self, group: str, place: Place, offset: int, since: int, records: list[KnownRecord]
    ) -> Lag:
        """The lag of a group that stands at an offset since an event."""
        programs = {
            process.program
            for process in self.processes
            if process.program in self.known.groups[group] and process.life.lasts
        }
        lag = Lag(
            group,
            offset,
            tuple(sorted(programs)),
            None,
            LAG_MS + self.sessions.longest_ms.get(group, 0),
        )
        healed_ms, ended_ms = self.healed_ms, self.ended_ms
        if healed_ms is None or ended_ms is None:
            return lag
        acknowledged = (
            (record.offset, self.moments.of(record.seq))
            for record in records
            if record.excuse is None and record.offset >= offset
        )
        left = [(at, at_ms) for at, at_ms in acknowledged if at_ms <= ended_ms - lag.bound_ms]
        first_ms = min((at_ms for _, at_ms in left), default=ended_ms)
        since_ms = max(healed_ms, self.moments.of(since), first_ms)
        lag.calm_ms, lag.still_ms = ended_ms - healed_ms, ended_ms - since_ms
        lag.records = len(left)
        reading = self.known.by_group.get((group, *place), Reading())
        lag.handed = any(at in reading.handed for at, _ in left)
        if left:
            asked_ms = since_ms + ASKED_AFTER_MS
            lag.asked = self.known.asks_for(lag.programs, place, left[0][0], asked_ms)
        return lag
