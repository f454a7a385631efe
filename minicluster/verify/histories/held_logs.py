"""The log of each replica as its own events have it, beside what its leader counts on.

Nothing here rests on what a leader believes of its followers. A log is known as its end and the
leader epochs along it: two logs with the same epoch at an offset are the same up to there.

========================  ========================================================================
takes                     ``partition_event`` rows, also while the cluster runs
keeps, by replica         the end of its log, the leader epochs along it, and until it has fetched
                          again what it held before its broker crashed
keeps, by partition       the end of what its leaders committed, and the leader epochs along it
yields                    ``HighWatermarkBesideLogs``
========================  ========================================================================

Bounded by the replicas of topics that are not deleted, and by the leader epochs in their logs.
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.log.epochs import LeaderEpochs
from minicluster.values import dataclass
from minicluster.verify.histories.fetch_states import waits_for
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

Place = tuple[str, int]  # topic id as the trace has it, partition


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWatermarkBesideLogs:
    """A leader advances its high watermark.

    Shapes:  lacking: members of its maximal ISR whose own logs do not hold its records up to there.
    """

    leader: int
    high_watermark: int
    lacking: tuple[int, ...]


@dataclass(slots=True)
class _Log:
    """The log of one replica.

    Shapes:  lost: what it held before a crash, or before it was deleted. A leader may count it
             until the follower has fetched again, which its next append or truncation shows.
    """

    incarnation: str | None
    end: int
    epochs: LeaderEpochs
    leader_epoch: int = -1
    lost: _Log | None = None
    is_deleted: bool = False

    def holds(self, end: int, epoch: int | None) -> bool:
        """The records below an offset, of which the last one is of an epoch; None: of any."""
        if self.end < end:
            return self.lost is not None and self.lost.holds(end, epoch)
        own = self.epochs.epoch_of(end - 1)
        if own is None or epoch is None or own == epoch:
            return True
        return self.lost is not None and self.lost.holds(end, epoch)


def _log_on_disk(before: _Log | None, row: Row) -> _Log:
    """The log as a broker finds it on its disk when it starts."""
    numbers = row.get("epochs") or ()
    entries = tuple(zip(numbers[::2], numbers[1::2], strict=True))
    log = _Log(row.get("incarnation"), row.get("leo") or 0, LeaderEpochs(entries))
    if before is not None:
        # The leader still counts what the follower fetched before its crash: without that log, B2
        # would accuse a leader that cannot know of it yet. One log back is kept and no chain, or a
        # broker that crashes again and again would keep all of its logs.
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
    if row.get("offset") is None:  # the log is emptied, and begins further on
        log.epochs.clear()
    for epoch, start in zip(numbers[::2], numbers[1::2], strict=True):
        log.epochs.truncate_from_end(start)
        log.epochs.assign(epoch, start)
    log.end = row["leo"]


@dataclass(frozen=True, slots=True)
class _Committed:
    """The records of a partition that its leaders committed: their end, and the epochs of them."""

    end: int
    epochs: tuple[tuple[int, int], ...]

    def kept_in(self, end: int, epochs: tuple[tuple[int, int], ...]) -> int:
        """The offset up to which a log that ends at ``end`` holds the same records.

        Without epochs, as runs of earlier versions have them, the ends decide.
        """
        if not self.epochs or not epochs:
            return min(self.end, end)
        # The ends alone would not do: a log may be as long, with records of another leader epoch.
        ends = dict(zip((epoch for epoch, _ in epochs), _ends(epochs, end), strict=True))
        own = zip((epoch for epoch, _ in self.epochs), _ends(self.epochs, self.end), strict=True)
        return max((min(until, ends[epoch]) for epoch, until in own if epoch in ends), default=0)


def _ends(epochs: tuple[tuple[int, int], ...], end: int) -> list[int]:
    """The offset at which each epoch of a log ends."""
    return [*(min(start, end) for _, start in epochs[1:]), end]


class HeldLogs:
    """Takes the events of replicas one by one, as they come.

    Shapes:  judge: None where only ``kept_by`` is asked. in_log: whether the metadata log has a
             partition, as far as it is known.
    """

    def __init__(
        self, judge: Judge | None, in_log: Callable[[Place], bool] = lambda place: True
    ) -> None:
        self._judge = judge
        self._in_log = in_log
        self._logs: dict[tuple[str, int], dict[int, _Log]] = {}
        self._committed: dict[tuple[str, int], _Committed] = {}

    def on_partition_event(self, row: Row) -> None:
        """An event of a replica."""
        place, broker, kind = (row["topic_id"], row["part"]), row["broker"], row["kind"]
        logs = self._logs.get(place)
        if logs is None:
            logs = self._logs[place] = {}
        own = logs.get(broker)
        if kind == "delete":
            # A leader that has not heard of it may still count what the replica has fetched, so
            # the log stays as the lost one; dropped at once, B2 would find the member lacking.
            logs[broker] = _Log(
                row.get("incarnation"), 0, LeaderEpochs(), lost=own, is_deleted=True
            )
            if all(log.is_deleted for log in logs.values()):
                del self._logs[place]
                self._committed.pop(place, None)
            return
        if own is None or own.incarnation != row.get("incarnation"):
            own = logs[broker] = _log_on_disk(own, row)
        own.is_deleted = False
        if kind == "append" or kind == "truncate":
            _change(own, kind, row)
        leader_epoch = row.get("leader_epoch")
        if leader_epoch is not None and leader_epoch > own.leader_epoch:
            own.leader_epoch = leader_epoch
        if kind == "hw" and row.get("maximal_isr") is not None and row["hw_new"] > row["hw_old"]:
            self._on_advance(own, logs, row)

    def _on_advance(self, own: _Log, logs: dict[int, _Log], row: Row) -> None:
        leader, advanced = row["broker"], row["hw_new"]
        place = row["topic_id"], row["part"]
        committed = self._committed.get(place)
        if committed is None or advanced > committed.end:
            self._committed[place] = _Committed(advanced, own.epochs.entries)
        if self._judge is None:
            return
        epoch = own.epochs.epoch_of(advanced - 1)
        awaited = waits_for(row, is_in_log=self._in_log(place))
        lacking = []
        for member in row["maximal_isr"] if awaited is None else awaited:
            log = logs.get(member)
            if member == leader or log is None:
                continue
            # A member that follows a leader of a later epoch has left this one, which need not see
            # it yet.
            if log.leader_epoch <= row["leader_epoch"] and not log.holds(advanced, epoch):
                lacking.append(member)
        step = HighWatermarkBesideLogs(
            leader=leader, high_watermark=advanced, lacking=tuple(lacking)
        )
        self._judge.take(step, -1, row["topic"], row["part"], row["seq"])

    def kept_by(self, row: Row) -> int | None:
        """The end of the committed records that a new leader's log has; None: it has all of them.

        Shapes:  row: the last that was taken, of a broker that becomes the leader.
        """
        place, broker, end = (row["topic_id"], row["part"]), row["broker"], row["leo"]
        committed = self._committed.get(place)
        if committed is None or end is None:
            return None
        kept = committed.kept_in(end, self._logs[place][broker].epochs.entries)
        return kept if kept < committed.end else None


@history(HighWatermarkBesideLogs, reads=("partition_event",))
def held_logs(run: TracedRun, judge: Judge) -> None:
    """Each advance of a leader's high watermark beside the logs of its maximal ISR."""
    logs = HeldLogs(judge, run.timeline.partitions.__contains__)
    for row in run.rows("partition_event"):
        logs.on_partition_event(row)
