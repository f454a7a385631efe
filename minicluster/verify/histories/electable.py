"""Replicas that may be elected, and the records that partitions have lost.

========================  ========================================================================
takes                     ``partition_event`` rows, committed partitions, and when each of these was
                          committed: by the quorum's first high watermark above it
keeps, by partition       its candidates (ISR and ELR; on ZooKeeper its leader's ISR), the highest
                          high watermark of its leaders, the last unclean election, the replicas'
                          logs as epochs (``HeldLogs``)
yields                    ``ElectableReplica``; the context ``losses``
========================  ========================================================================

Records of a partition are lost by an unclean election of a leader that lacks them, where the last
ISR member comes back with less, or where a new incarnation stays in the ISR with a shorter log, as
under Kafka 3.x and on ZooKeeper. An election or a restart that loses nothing excuses nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from heapq import merge

from minicluster.values import dataclass
from minicluster.verify.histories.held_logs import HeldLogs
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

Place = tuple[str, int]  # topic id as the trace has it, partition
_ENDS = ("stop", "delete", "truncate")  # events that say nothing of what a running replica holds
_BEGINS = ("become_leader", "become_follower")
_NO_EPOCH = 2**62
ALWAYS_LOST = 2**62  # the event of a loss of which nobody knows when it was

UNCLEAN, LAST, STAYS, CLEANED = "unclean", "last", "stays", "cleaned"
EXCUSES = {
    UNCLEAN: "an unclean election has lost records of the partition",
    LAST: "the last ISR member came back without records of the partition",
    STAYS: "a new incarnation stayed in the ISR without records of the partition (Kafka 3.x)",
    CLEANED: "the log of the partition was cleaned",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectableReplica:
    """An event of a replica that may be elected.

    Shapes:  has_lost: its partition had lost records by then.
    Units:   true_high_watermark: the highest of its leaders before the event.
    """

    broker: int
    candidates: tuple[int, ...]
    log_end: int | None
    true_high_watermark: int
    has_lost: bool


@dataclass(slots=True)
class Loss:
    """The records that a partition has lost.

    Shapes:  cause: one of ``EXCUSES``.
    Units:   kept: the lowest offset that was lost. lost_from: the leader epoch from which on
             records are there to stay; lost_below: those of an epoch below this one may be lost (a
             member that stays with less may lead at any time, so then there is no such epoch).
             events: those that show it.
    """

    cause: str
    kept: int
    lost_from: int
    lost_below: int
    events: list[int]

    @property
    def why(self) -> str:
        """Why the partition, or a record of it, promises nothing."""
        return EXCUSES[self.cause]

    def take(self, other: Loss) -> None:
        """The partition has lost records once more."""
        self.cause = min(self.cause, other.cause)
        self.kept = min(self.kept, other.kept)
        self.lost_from = min(self.lost_from, other.lost_from)
        self.lost_below = max(self.lost_below, other.lost_below)
        self.events += other.events


Losses = dict[Place, Loss]


class Commits:
    """When each offset of the metadata log was committed: by the first high watermark above it."""

    def __init__(self, run: TracedRun) -> None:
        self._ends: list[int] = []  # high watermarks, each higher than all before it
        self._seqs: list[int] = []
        self._times: list[int] = []
        for row in run.rows("raft_event"):
            if row["kind"] != "hw" or row["offset"] is None:
                continue
            if not self._ends or row["offset"] > self._ends[-1]:
                self._ends.append(row["offset"])
                self._seqs.append(row["seq"])
                self._times.append(row["vt"])

    def seq_of(self, offset: int) -> int | None:
        """The event by which an offset was committed; None if the trace does not show it."""
        place = bisect_right(self._ends, offset)
        return self._seqs[place] if place < len(self._seqs) else None

    def at_ms(self, offset: int) -> int | None:
        """The time at which an offset was committed; None if the trace does not show it."""
        place = bisect_right(self._ends, offset)
        return self._times[place] if place < len(self._times) else None

    def last_at(self, at_ms: int) -> int | None:
        """The last offset that was committed by a moment; None where none was."""
        place = bisect_right(self._times, at_ms) - 1
        return self._ends[place] - 1 if place >= 0 and self._ends[place] else None


def commits(run: TracedRun) -> Commits:
    """Context: when each offset of the metadata log was committed."""
    return Commits(run)


@dataclass(slots=True)
class _Partition:
    candidates: tuple[int, ...] | None = None
    may_stay: bool | None = None
    unclean_epoch: int | None = None  # of the last unclean election
    led_epoch: int = -1  # the highest that a leader had
    true_high_watermark: int | None = None
    has_lost: bool = False


def _events(run: TracedRun) -> Iterator[tuple[int, int, CommittedPartition | Row]]:
    """Commits of partitions and events of replicas, by their events; (number, rank, what)."""
    events = ((row["seq"], -1, row) for row in run.rows("partition_event"))
    # A replica's event comes before a commit of that number.
    return merge(events, run.context(commits_of_partitions), key=lambda event: event[:2])


def commits_of_partitions(run: TracedRun) -> list[tuple[int, int, CommittedPartition]]:
    """Context: the committed states of partitions, by the events that committed them, and offset.

    Without the last ones, of which the trace does not show when they were committed.
    """
    committed = run.context(commits)
    states = [
        (seq, state.offset, state)
        for states in run.timeline.partitions.values()
        for state in states
        if state.step.leaves_a_state and (seq := committed.seq_of(state.offset)) is not None
    ]
    states.sort(key=lambda state: state[:2])
    return states


def _fold(run: TracedRun, judge: Judge | None) -> Losses:
    losses: Losses = {}
    logs = HeldLogs(None)
    partitions: dict[Place, _Partition] = {}
    seen: set[tuple[Place, int, str | None]] = set()
    leaves_from = run.promises.new_incarnation_leaves_from
    for _, _, what in _events(run):
        if isinstance(what, CommittedPartition):
            partition = partitions.setdefault((what.topic_id, what.partition), _Partition())
            after = what.after
            partition.candidates = tuple(dict.fromkeys((*after.isr, *(after.elr or ()))))
            partition.may_stay = what.step.level < leaves_from
            if what.step.is_unclean:
                partition.unclean_epoch = what.leader_epoch
            continue
        logs.on_partition_event(what)
        kind = what["kind"]
        if kind in _ENDS:
            continue
        place = what["topic_id"], what["part"]
        partition = partitions.setdefault(place, _Partition())
        process = (place, what["broker"], what["incarnation"])
        if run.evidence.on_zookeeper:
            _take_isr_of_leader(partition, what)
        kept = logs.kept_by(what) if kind == "become_leader" else None
        loss = _loss(partition, what, kept, is_first=process not in seen)
        seen.add(process)
        if loss is not None:
            partition.has_lost = True
            if place in losses:
                losses[place].take(loss)
            else:
                losses[place] = loss
        if judge is not None:
            _judge(partition, what, judge)
        if kind == "become_leader":
            partition.led_epoch = max(partition.led_epoch, what["leader_epoch"])
        elif kind == "hw" and what["maximal_isr"] is not None:
            mark = partition.true_high_watermark
            partition.true_high_watermark = (
                what["hw_new"] if mark is None else max(mark, what["hw_new"])
            )
    return losses


def _take_isr_of_leader(partition: _Partition, row: Row) -> None:
    """On ZooKeeper no metadata log has the ISR: a leader knows it, and what it has proposed."""
    if row["maximal_isr"] is None or row["leader_epoch"] < partition.led_epoch:
        return  # a leader of before, which has not heard of its successor, knows an old ISR
    known = partition.candidates
    if row["kind"] == "become_leader" and known is not None and row["broker"] not in known:
        partition.unclean_epoch = row["leader_epoch"]
    partition.candidates, partition.may_stay = tuple(row["maximal_isr"]), True


def _loss(partition: _Partition, row: Row, kept: int | None, *, is_first: bool) -> Loss | None:
    """The records that an event shows to be lost."""
    kind, epoch, unclean = row["kind"], row["leader_epoch"], partition.unclean_epoch
    at = [row["seq"]]
    if unclean is not None:
        if kind == "become_leader" and kept is not None and partition.led_epoch < unclean <= epoch:
            return Loss(UNCLEAN, kept, unclean, unclean, at)
        # What a leader of before commits by itself after the election is lost as well.
        is_mark = kind == "hw" and row["maximal_isr"] is not None
        if is_mark and epoch < unclean and row["hw_new"] > row["hw_old"]:
            return Loss(UNCLEAN, row["hw_old"], unclean, unclean, at)
    leo, mark = row["leo"], partition.true_high_watermark
    if leo is None or mark is None or leo >= mark:
        return None
    first_lost = leo if kept is None else kept
    candidates = partition.candidates
    if candidates is None:  # every log begins behind the partition's records: as its leader has it
        candidates = row["isr"]
    if kind == "become_leader" and candidates is not None and len(candidates) <= 1:
        return Loss(LAST, first_lost, epoch, epoch + 1, at)
    if kind in _BEGINS and is_first and partition.may_stay:
        return Loss(STAYS, first_lost, epoch, _NO_EPOCH, at)
    return None


def _judge(partition: _Partition, row: Row, judge: Judge) -> None:
    candidates, mark = partition.candidates, partition.true_high_watermark
    if candidates is None or len(candidates) <= 1 or row["broker"] not in candidates:
        return
    if mark is None:
        return
    step = ElectableReplica(
        broker=row["broker"],
        candidates=candidates,
        log_end=row["leo"],
        true_high_watermark=mark,
        has_lost=partition.has_lost,
    )
    judge.take(step, -1, row["topic"], row["part"], row["seq"])


def losses(run: TracedRun) -> Losses:
    """Context: by topic id and partition, what a run has lost, or what nobody can know of it."""
    from_trace = _fold(run, None)
    return from_trace | {
        place: Loss(CLEANED, 0, 0, _NO_EPOCH, [ALWAYS_LOST]) for place in run.cleaned
    }


@history(ElectableReplica, reads=("partition_event", "raft_event"))
def electable_replicas(run: TracedRun, judge: Judge) -> None:
    """Each event of a replica beside the high watermarks of the leaders before it."""
    _fold(run, judge)
