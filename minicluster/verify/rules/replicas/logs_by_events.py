"""The log of each replica as its own events have it; ``held_logs.py`` has the rules.

Online checks come here with every event of a replica, so the compiled wheel has it as native code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minicluster.lazy_dataclass import dataclass
from minicluster.log.epochs import LeaderEpochs

Row = Mapping[str, Any]


@dataclass(slots=True)
class _Log:
    """The log of one replica.

    Shapes:  lost: what it held before a crash. A leader may count it until the follower has fetched
             again, which its next append or truncation shows.
    """

    incarnation: str | None
    end: int
    epochs: LeaderEpochs
    leader_epoch: int = -1
    lost: _Log | None = None

    def holds(self, end: int, epoch: int | None) -> bool:
        """The records below an offset, of which the last one is of an epoch; None: of any."""
        if self.end < end:
            return self.lost is not None and self.lost.holds(end, epoch)
        held = self.epochs.epoch_of(end - 1)
        if None in (held, epoch) or held == epoch:
            return True
        return self.lost is not None and self.lost.holds(end, epoch)


def _taken_up(before: _Log | None, row: Row) -> _Log:
    """The log as a broker finds it on its disk."""
    numbers = row.get("epochs") or ()
    entries = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    log = _Log(row.get("incarnation"), row.get("leo") or 0, LeaderEpochs(entries))
    if before is not None:
        before.lost = None
        log.lost = before
    return log


def _change(log: _Log, kind: str, row: Row) -> None:
    """Append to a log, or truncate it."""
    log.lost = None
    if kind == "truncate":
        log.epochs.truncate_from_end(row["offset"])
        log.end = row["offset"]
        return
    numbers = row.get("epochs") or ()
    if row.get("offset") is None:  # the log begins anew, further on
        log.epochs.clear()
    for epoch, start in zip(numbers[::2], numbers[1::2], strict=True):
        log.epochs.truncate_from_end(start)
        log.epochs.assign(epoch, start)
    log.end = row["leo"]


@dataclass(frozen=True, slots=True)
class Advance:
    """An advance of a leader's high watermark beside the log of a member of its maximal ISR."""

    member: int
    lacks: bool


class HeldLogs:
    """The logs of all replicas, event by event.

    A member that follows a leader of a later epoch has left this one, which need not see it yet.
    """

    def __init__(self) -> None:
        self._logs: dict[tuple[str, int], dict[int, _Log]] = {}

    def on_event(self, row: Row) -> Sequence[Advance]:
        """Take a row of ``partition_event``; what it advances is held against the other logs."""
        place, broker, kind = (row["topic_id"], row["part"]), row["broker"], row["kind"]
        replicas = self._logs.get(place)
        if replicas is None:
            replicas = self._logs[place] = {}
        own = replicas.get(broker)
        if kind == "delete":
            replicas[broker] = _Log(row.get("incarnation"), 0, LeaderEpochs())
            return ()
        if own is None or own.incarnation != row.get("incarnation"):
            own = replicas[broker] = _taken_up(own, row)
        if kind == "append" or kind == "truncate":
            _change(own, kind, row)
        leader_epoch = row.get("leader_epoch")
        if leader_epoch is not None and leader_epoch > own.leader_epoch:
            own.leader_epoch = leader_epoch
        if kind != "hw":
            return ()
        members = row.get("maximal_isr")
        if members is None or row["hw_new"] <= row["hw_old"]:
            return ()
        advanced: int = row["hw_new"]
        epoch = own.epochs.epoch_of(advanced - 1)
        return [
            Advance(member, not log.holds(advanced, epoch))
            for member in members
            if member != broker
            and (log := replicas.get(member)) is not None
            and log.leader_epoch <= row["leader_epoch"]
        ]
