"""Promises about time as the committed log itself shows them: brokers, ISRs, leaders.

The records of one operation take effect together, at the time at which they are committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from itertools import groupby
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.metadata.image.directory_id import MIGRATING, UNASSIGNED
from minicluster.metadata.image.partition import NO_LEADER, RECOVERING
from minicluster.protocol.uuids import format_uuid
from minicluster.verify.rules.time.waits import Committed, Waits

Row = Mapping[str, Any]
_ANYWHERE = (format_uuid(UNASSIGNED), format_uuid(MIGRATING))
_LISTS = ("replicas", "isr", "adding", "removing", "elr", "directories")


@dataclass(slots=True)
class _Broker:
    registered: bool = False
    fenced: bool = True
    stopping: bool = False
    log_dirs: tuple[str, ...] = ()

    @property
    def active(self) -> bool:
        return self.registered and not self.fenced and not self.stopping


@dataclass(slots=True)
class _Partition:
    topic: str
    leader: int = NO_LEADER
    recovery: int = 0
    lists: dict[str, tuple[Any, ...]] = field(default_factory=dict)


class SettledLog:
    """Plays the log, operation by operation, and notes what waits after each of them."""

    def __init__(
        self, waits: Waits, brokers: Iterable[int], committed: Committed, *, is_whole: bool
    ) -> None:
        self._waits, self._committed, self._is_whole = waits, committed, is_whole
        self._brokers = {broker: _Broker() for broker in brokers}
        self._partitions: dict[tuple[str, int], _Partition] = {}
        self._at_ms = 0

    def play(self, brokers: Iterable[Row], partitions: Iterable[Row]) -> None:
        """Play the facts of a committed log."""
        for broker in self._brokers if self._is_whole else ():
            self._look_at_broker(broker)
        facts = sorted([*brokers, *partitions], key=lambda row: row["pos"])
        for operation, rows in groupby(facts, key=lambda row: row["op"]):
            self._at_ms = self._committed.at_ms(operation) or self._at_ms
            self._operation(list(rows))

    def _operation(self, rows: list[Row]) -> None:
        changed: dict[tuple[str, int], None] = {}
        left: list[tuple[tuple[str, int], int]] = []
        for row in rows:
            if "topic_id" not in row:
                self._on_broker(row)
                changed |= dict.fromkeys(self._of_broker(row["broker"]))
                continue
            place = row["topic_id"], row["part"]
            changed[place] = None
            left += [(place, member) for member in self._on_partition(place, row)]
        for place in changed:
            if place in self._partitions:
                self._look_at(place)
        for place, member in left:
            self._look_at_shrink(place, member)

    def _of_broker(self, broker: int) -> list[tuple[str, int]]:
        return [p for p, state in self._partitions.items() if broker in state.lists["replicas"]]

    def _on_broker(self, row: Row) -> None:
        broker = self._brokers.setdefault(row["broker"], _Broker())
        if row["kind"] in ("Register", "Unregister"):
            broker.registered = row["kind"] == "Register"
            broker.fenced, broker.stopping, broker.log_dirs = True, False, ()
        broker.fenced = broker.fenced if row["fenced"] is None else row["fenced"]
        if row["in_controlled_shutdown"] is not None:
            broker.stopping = row["in_controlled_shutdown"]
        if row["log_dirs"] is not None:
            broker.log_dirs = tuple(row["log_dirs"])
        self._look_at_broker(row["broker"])

    def _look_at_broker(self, number: int) -> None:
        broker = self._brokers[number]
        waits = not broker.registered or broker.fenced
        self._waits.set("G1", (None, None, number), waits, self._at_ms)

    def _on_partition(self, place: tuple[str, int], row: Row) -> list[int]:
        """Take a record in; returns the members that leave the ISR by it."""
        if row["kind"] == "RemoveTopic":
            if self._partitions.pop(place, None) is not None:
                for promise in ("G6", "G7", "G9"):
                    self._waits.end(promise, (row["topic"], place[1], None), self._at_ms)
            return []
        state = self._partitions.get(place)
        if state is None:
            lists: dict[str, tuple[Any, ...]] = dict.fromkeys(_LISTS, ())
            state = self._partitions[place] = _Partition(row["topic"], lists=lists)
        before = state.lists["isr"]
        for name in _LISTS:
            if row[name] is not None:
                state.lists[name] = tuple(row[name])
        state.leader = state.leader if row["leader"] is None else row["leader"]
        state.recovery = state.recovery if row["rec"] is None else row["rec"]
        return [member for member in before if member not in state.lists["isr"]]

    def _eligible(self, state: _Partition, replica: int) -> bool:
        """An active broker whose directory with the replica is online."""
        broker, replicas = self._brokers.get(replica), state.lists["replicas"]
        if broker is None or not broker.active or replica not in replicas:
            return False
        directories = state.lists["directories"]
        if len(directories) != len(replicas) or not broker.log_dirs:
            return True
        directory = directories[replicas.index(replica)]
        return directory in _ANYWHERE or directory in broker.log_dirs

    def _look_at(self, place: tuple[str, int]) -> None:
        """G6, G7, G9 of one partition, at the end of an operation."""
        state, waits, at_ms = self._partitions[place], self._waits, self._at_ms
        key = (state.topic, place[1], None)
        eligible = [one for one in state.lists["replicas"] if self._eligible(state, one)]
        isr, elr = state.lists["isr"], state.lists["elr"]
        led = state.leader != NO_LEADER
        lacks = led and any(one not in isr for one in eligible)
        waits.set("G6", key, lacks, at_ms)
        electable = any(one in isr or one in elr for one in eligible)
        recovers = led and state.recovery == RECOVERING and len(eligible) > 1
        waits.set("G7", key, recovers or (not led and electable), at_ms)
        moves = bool(state.lists["adding"] or state.lists["removing"])
        added = [one for one in state.lists["adding"] if one not in eligible]
        waits.set("G9", key, moves and led and not added, at_ms)
        waits.case("G11", key)

    def _look_at_shrink(self, place: tuple[str, int], member: int) -> None:
        """G11: once all replicas are in sync, an active one does not leave the ISR."""
        state, times = self._partitions.get(place), self._waits.times
        if state is None or member in state.lists["isr"] or "G11" not in times.bounds:
            return
        from_ms = times.from_ms("G11")
        due_ms = from_ms + times.bounds["G11"]
        if self._eligible(state, member) and self._at_ms > due_ms:
            key = (state.topic, place[1], member)
            self._waits.stretch("G11", key, from_ms, self._at_ms)
