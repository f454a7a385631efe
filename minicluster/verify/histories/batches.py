"""The batches of each controller's own log, as they lie on its disk.

========================  ========================================================================
takes                     the batches of each log in order; those of all logs by their offsets
keeps, by log             the epoch and the end of the last batch, the step of an ordinary batch
keeps, for all            by epoch, each LeaderChange that a log names (``ControllerLogs``);
                          the batches that begin at the current offset (``Copies``)
yields                    ``FirstBatch``, ``NextBatch``, ``SecondLeader``; ``CopiedBatch``
========================  ========================================================================

Neither state grows with the log, but by an entry for each epoch: logs are read side by side, by
their offsets.
"""

from __future__ import annotations

from collections.abc import Callable

from minicluster.log.batch import RecordBatch
from minicluster.log.control import control_records
from minicluster.protocol.records import LeaderChangeMessage
from minicluster.values import dataclass
from minicluster.verify.histories.releases import Releases
from minicluster.verify.histories.traced_run import TracedRun
from minicluster.verify.judging import Judge
from minicluster.verify.promises import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstBatch:
    """The batch with which a log begins.

    Shapes:  elected: the leader that it names, if it begins with a LeaderChange. begins_well: it is
             at offset 0, or a snapshot covers the records before it. release: the oldest that may
             have written it.
    """

    node: int
    base_offset: int
    epoch: int
    elected: int | None
    begins_well: bool
    release: Release


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NextBatch:
    """A batch behind another one of a log.

    Shapes:  gap: where it begins, and where it should, if that is not the same. elected and release
             are those of ``FirstBatch``.
    """

    node: int
    epoch: int
    epoch_before: int
    elected: int | None
    gap: tuple[int, int] | None
    release: Release


@dataclass(frozen=True, slots=True, kw_only=True)
class SecondLeader:
    """A LeaderChange of an epoch for which the logs name several leaders."""

    epoch: int
    leader: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CopiedBatch:
    """A batch of which there are several by one epoch and offset; differs: from some of them."""

    node: int
    epoch: int
    base_offset: int
    differs: bool


class _Log:
    """One log so far; ordinary: the step of a batch that only continues it."""

    __slots__ = ("end", "epoch", "ordinary")

    def __init__(self, end: int, epoch: int) -> None:
        self.end, self.epoch = end, epoch
        self.ordinary: NextBatch | None = None


class ControllerLogs:
    """Judges batches one by one, in order for each log; live, a committed log is that of node -1.

    Shapes:  releases: what the committed log tells of those that may have written it; it comes
             first.
    Bounded by the logs and their epochs.
    """

    def __init__(self, judge: Judge, releases: Releases) -> None:
        self._judge = judge
        self._releases = releases
        self._logs: dict[int, _Log] = {}
        self._begin_badly: set[int] = set()
        self._elected: dict[int, dict[tuple[int, int], None]] = {}  # epoch -> offsets and leaders

    def begin(self, node: int, *, begins_well: bool) -> None:
        """The next batch of a node is the first of a log."""
        self._logs.pop(node, None)
        self._begin_badly.discard(node)
        if not begins_well:
            self._begin_badly.add(node)

    def on_batch(self, node: int, batch: RecordBatch) -> None:
        """Take the next batch of a log."""
        base, epoch, elected = batch.base_offset, batch.leader_epoch, leader_of(batch)
        log = self._logs.get(node)
        if log is None:
            log = self._logs[node] = _Log(batch.last_offset + 1, epoch)
            first = FirstBatch(
                node=node,
                base_offset=base,
                epoch=epoch,
                elected=elected,
                begins_well=node not in self._begin_badly,
                release=self._releases.at(batch.last_offset),
            )
            self._judge.take(first, base)
        else:
            self._next(node, log, batch, elected)
            log.end, log.epoch = batch.last_offset + 1, epoch
        if elected is not None:
            self._on_leader(epoch, base, elected)

    def _next(self, node: int, log: _Log, batch: RecordBatch, elected: int | None) -> None:
        base, epoch = batch.base_offset, batch.leader_epoch
        is_ordinary = base == log.end and epoch == log.epoch and elected is None
        if is_ordinary and log.ordinary is not None and log.ordinary.epoch == epoch:
            self._judge.take_known((log.ordinary,), base, "", -1)
            return
        step = NextBatch(
            node=node,
            epoch=epoch,
            epoch_before=log.epoch,
            elected=elected,
            gap=None if base == log.end else (base, log.end),
            release=self._releases.at(batch.last_offset),
        )
        if is_ordinary:
            log.ordinary = step
            self._judge.take_known((step,), base, "", -1)
        else:
            self._judge.take(step, base)

    def _on_leader(self, epoch: int, base: int, leader: int) -> None:
        """The first disagreement makes findings of what was agreed on before, too."""
        known = self._elected.setdefault(epoch, {})
        if (base, leader) in known:
            return
        agreed = len({leader for _, leader in known}) < 2
        known[base, leader] = None
        if len({leader for _, leader in known}) > 1:
            for offset, elected in list(known) if agreed else [(base, leader)]:
                self._judge.take(SecondLeader(epoch=epoch, leader=elected), offset)


class Copies:
    """Compares the batches of one epoch and offset; they have to come in the order of offsets.

    Shapes:  make: the step of a copy. Kept are the copies at the current offset, as many as there
             are logs.
    """

    def __init__(self, judge: Judge, make: Callable[[int, int, int, bool], object]) -> None:
        self._judge = judge
        self._make = make
        self._offset = -1
        self._by_epoch: dict[int, list[tuple[int, int]]] = {}

    def on_copy(self, node: int, epoch: int, offset: int, crc: int) -> None:
        """Take a batch of a node."""
        if offset != self._offset:
            self.finish()
            self._offset = offset
        self._by_epoch.setdefault(epoch, []).append((node, crc))

    def finish(self) -> None:
        """Judge the copies at the current offset: no more of them come."""
        for epoch, copies in self._by_epoch.items():
            differs = len({crc for _, crc in copies}) > 1
            for node, _ in copies if len(copies) > 1 else ():
                step = self._make(node, epoch, self._offset, differs)
                self._judge.take(step, self._offset)
        self._by_epoch.clear()


def copied_batch(node: int, epoch: int, offset: int, differs: bool) -> CopiedBatch:
    """The step of a batch that lies on disk."""
    return CopiedBatch(node=node, epoch=epoch, base_offset=offset, differs=differs)


def leader_of(batch: RecordBatch) -> int | None:
    """The leader that a batch names, if its first record is a LeaderChange."""
    if not batch.is_control:
        return None
    controls = control_records(batch)
    message = controls[0].message if controls else None
    return message.leader_id if isinstance(message, LeaderChangeMessage) else None


def epoch_starts(run: TracedRun) -> dict[int, int]:
    """Context: the offset of the first LeaderChange of each epoch."""
    starts: dict[int, int] = {}
    for log in run.evidence.nodes:
        for batch in log.batches:
            if leader_of(batch) is not None:
                epoch, base = batch.leader_epoch, batch.base_offset
                starts[epoch] = min(base, starts.get(epoch, base))
    return starts
