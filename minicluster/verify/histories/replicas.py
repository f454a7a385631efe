"""The events of each replica: how it begins, appends, truncates; its leader's high watermark.

========================  ========================================================================
takes                     ``partition_event`` rows
keeps, by replica         its last event, and the highest partition epoch that its process, the
                          running broker, has applied; afterwards also the last leader epoch in its
                          log and its highest high watermark
keeps, by partition       afterwards: the highest high watermark and epoch of its leaders
yields                    ``HighWatermarkMoved``, ``Acknowledged``, ``ReplicaBegun``,
                          ``PartitionEpochApplied``; afterwards only: ``Truncated``,
                          ``WrittenByLeader``
========================  ========================================================================

Bounded by the replicas of topics that exist, or were among the last that were deleted: a broker
that brings one of these back must not go back to an older epoch. ``WrittenByLeader`` is bounded by
the appends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from minicluster.values import dataclass
from minicluster.verify.histories.electable import losses
from minicluster.verify.histories.fetch_states import (
    NEVER_FETCHED,
    FetchState,
    fetch_states,
    waits_for,
)
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

Place = tuple[str, int]  # topic id as the trace has it, partition
_GONE_MAX = 1_000  # partitions
_BEGINS = frozenset(("become_leader", "become_follower"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _LeaderEvent:
    """An event of a leader.

    Shapes:  waited_for: the last fetches of the other members of the maximal ISR; None where they
             were not recorded.
    """

    broker: int
    leader_epoch: int
    isr: tuple[int, ...]
    maximal_isr: tuple[int, ...]
    min_isr: int | None
    log_end: int
    waited_for: tuple[FetchState, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HighWatermarkMoved(_LeaderEvent):
    """A leader moves its high watermark."""

    old: int
    new: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged(_LeaderEvent):
    """A leader acknowledges a Produce with acks=all, whose last record is at an offset."""

    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaBegun:
    """A broker makes a replica of its a leader or a follower.

    Shapes:  is_new: the broker has had no log of the partition, or has deleted it. log_end: None
             where it is not recorded. log_end_before: as the same process had it; None: it had no
             log, or has deleted it.
    """

    broker: int
    log_end: int | None
    is_new: bool
    log_end_before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionEpochApplied:
    """The epochs that a replica goes by at an event, and before.

    Shapes:  highest_before: of the partition epochs that its process has applied.
    """

    broker: int
    partition_epoch: int
    leader_epoch: int
    highest_before: int
    partition_epoch_before: int | None
    leader_epoch_before: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncated:
    """A replica truncates its log.

    Shapes:  to: its new end. log_epoch: of its last record. own_high_watermark: the highest that
             it has had. true_high_watermark, true_epoch: the highest of the partition's leaders,
             and of their epochs. excuse: why it promises nothing: what it cuts off is lost.
    """

    broker: int
    to: int
    log_epoch: int | None
    own_high_watermark: int | None
    true_high_watermark: int | None
    true_epoch: int | None
    excuse: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenByLeader:
    """A leader appends records of clients; alone: no other broker does so in its leader epoch."""

    broker: int
    alone: bool


class _Replica:
    """A replica of a broker, and of its last process.

    Shapes:  last_kind: of its last event. last: of the last event of this process.
    """

    __slots__ = ("highest_epoch", "incarnation", "last", "last_kind")

    def __init__(self, incarnation: str | None, last_kind: str | None) -> None:
        self.incarnation, self.last_kind = incarnation, last_kind
        self.last: _Last | None = None
        self.highest_epoch: int | None = None


class _Last(NamedTuple):
    kind: str
    log_end: int | None
    leader_epoch: int | None
    partition_epoch: int | None


class Replicas:
    """Takes the events of replicas one by one, as they come.

    Shapes:  in_log: whether the metadata log has a partition, as far as it is known.
    """

    def __init__(self, judge: Judge, in_log: Callable[[Place], bool]) -> None:
        self._judge = judge
        self._in_log = in_log
        self._judges_epochs = judge.judges(PartitionEpochApplied)
        self._replicas: dict[Place, dict[int, _Replica]] = {}
        self._gone: dict[Place, None] = {}  # partitions of which no replica is left, in order

    def on_partition_event(self, row: Row) -> None:
        """An event of a replica."""
        place, broker, kind = (row["topic_id"], row["part"]), row["broker"], row["kind"]
        replicas = self._replicas.get(place)
        if replicas is None:
            replicas = self._replicas[place] = {}
        self._gone.pop(place, None)
        replica, incarnation = replicas.get(broker), row.get("incarnation")
        if replica is None or replica.incarnation != incarnation:
            # The kind of its last event alone outlives a process: a replica is new where there was
            # none, or the last process deleted it (E27). Epochs are promised of a running broker,
            # and another process begins with the image that it loads (B6).
            last_kind = None if replica is None else replica.last_kind
            replica = replicas[broker] = _Replica(incarnation, last_kind)
        self._on_epochs(replica, row)
        if kind == "hw" or kind == "ack":
            if row.get("maximal_isr") is not None:
                self._on_leader(place, row)
        elif kind in _BEGINS:
            self._on_begun(replica, row)
        replica.last_kind = kind
        epochs = row.get("leader_epoch"), row.get("partition_epoch")
        replica.last = _Last(kind, row.get("leo"), *epochs)
        if kind == "delete" and all(other.last_kind == "delete" for other in replicas.values()):
            self._on_gone(place)

    def _on_gone(self, place: Place) -> None:
        """The last replica of a partition is deleted: the oldest such partition is forgotten."""
        self._gone[place] = None
        if len(self._gone) > _GONE_MAX:
            oldest = next(iter(self._gone))
            del self._gone[oldest], self._replicas[oldest]

    def _take(self, step: object, row: Row) -> None:
        self._judge.take(step, -1, row["topic"], row["part"], row["seq"])

    def _on_epochs(self, replica: _Replica, row: Row) -> None:
        highest, epoch, last = replica.highest_epoch, row.get("partition_epoch"), replica.last
        if highest is not None and last is not None and self._judges_epochs and epoch is not None:
            step = PartitionEpochApplied(
                broker=row["broker"],
                partition_epoch=epoch,
                leader_epoch=row["leader_epoch"],
                highest_before=highest,
                partition_epoch_before=last.partition_epoch,
                leader_epoch_before=last.leader_epoch,
            )
            self._take(step, row)
        if epoch is not None and (highest is None or epoch > highest):
            replica.highest_epoch = epoch

    def _on_leader(self, place: Place, row: Row) -> None:
        state = {
            "broker": row["broker"],
            "leader_epoch": row["leader_epoch"],
            "isr": tuple(row["isr"]),
            "maximal_isr": tuple(row["maximal_isr"]),
            "min_isr": row.get("min_isr"),
            "log_end": row["leo"],
            "waited_for": self._waited_for(place, row),
        }
        if row["kind"] == "hw":
            self._take(HighWatermarkMoved(**state, old=row["hw_old"], new=row["hw_new"]), row)
        else:
            self._take(Acknowledged(**state, offset=row["offset"]), row)

    def _waited_for(self, place: Place, row: Row) -> tuple[FetchState, ...] | None:
        """The last fetches of those for whom the leader waits."""
        followers, awaited = fetch_states(row), waits_for(row, is_in_log=self._in_log(place))
        if followers is None or awaited is None:
            return None
        return tuple(followers.get(member, NEVER_FETCHED) for member in awaited)

    def _on_begun(self, replica: _Replica, row: Row) -> None:
        last, last_kind = replica.last, replica.last_kind
        step = ReplicaBegun(
            broker=row["broker"],
            log_end=row["leo"],
            is_new=last_kind is None or last_kind == "delete",
            log_end_before=None if last is None or last.kind == "delete" else last.log_end,
        )
        self._take(step, row)


@history(
    HighWatermarkMoved,
    Acknowledged,
    ReplicaBegun,
    PartitionEpochApplied,
    reads=("partition_event",),
)
def replicas(run: TracedRun, judge: Judge) -> None:
    """Each event of a replica beside those before it."""
    states = Replicas(judge, run.timeline.partitions.__contains__)
    for row in run.rows("partition_event"):
        states.on_partition_event(row)


@dataclass(slots=True)
class _Marks:
    """High watermarks and leader epochs, as far as they are known."""

    high_watermark: int | None = None
    epoch: int | None = None


def _higher(known: int | None, value: int | None) -> int | None:
    if known is None or value is None:
        return value if known is None else known
    return max(known, value)


@history(Truncated, reads=("partition_event", "raft_event"))
def truncations(run: TracedRun, judge: Judge) -> None:
    """Each truncation, beside the high watermarks before it.

    It needs the whole run: a partition may be known to have lost records by a later event only.
    """
    known = run.context(losses)
    leaders: dict[Place, _Marks] = {}
    own: dict[tuple[Place, int], _Marks] = {}
    for row in run.rows("partition_event"):
        place, broker = (row["topic_id"], row["part"]), row["broker"]
        true, replica = leaders.get(place), own.get((place, broker))
        if true is None:
            true = leaders[place] = _Marks()
        if replica is None:
            replica = own[place, broker] = _Marks()
        if row["kind"] == "truncate":
            epoch = row["leader_epoch"]
            loss = known.get(place)
            is_lost = loss is not None and epoch >= loss.lost_from and row["offset"] >= loss.kept
            step = Truncated(
                broker=broker,
                to=row["offset"],
                log_epoch=replica.epoch,
                own_high_watermark=replica.high_watermark,
                true_high_watermark=true.high_watermark,
                true_epoch=true.epoch,
                excuse=loss.why if loss is not None and is_lost else None,
            )
            judge.take(step, -1, row["topic"], row["part"], row["seq"])
        elif row["kind"] == "append":
            replica.epoch = _higher(replica.epoch, row["leader_epoch"])
        elif row["kind"] == "hw" and row["maximal_isr"] is not None:
            true.high_watermark = _higher(true.high_watermark, row["hw_new"])
            true.epoch = _higher(true.epoch, row["leader_epoch"])
        replica.high_watermark = _higher(replica.high_watermark, row["hw_new"])


@history(WrittenByLeader, reads=("partition_event",))
def writers(run: TracedRun, judge: Judge) -> None:
    """Each append of a leader, beside all others of its leader epoch, also the later ones."""

    def appends() -> Iterator[Row]:
        for row in run.rows("partition_event"):
            if row["kind"] == "append" and row["maximal_isr"] is not None:
                yield row

    brokers: dict[tuple[str, int, int], set[int]] = {}
    for row in appends():
        key = row["topic_id"], row["part"], row["leader_epoch"]
        brokers.setdefault(key, set()).add(row["broker"])
    for row in appends():
        key = row["topic_id"], row["part"], row["leader_epoch"]
        step = WrittenByLeader(broker=row["broker"], alone=len(brokers[key]) == 1)
        judge.take(step, -1, row["topic"], row["part"], row["seq"])
