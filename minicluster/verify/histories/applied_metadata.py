"""Metadata as brokers apply it, beside the committed states and the images that they published.

========================  ========================================================================
takes                     ``partition_event``, ``publish`` and ``replica_log`` rows; committed
                          states of partitions
keeps                     the images that each node published, as a context (``published_images``)
yields                    ``AppliedState``; ``ActionOfLeader``, ``DeletedReplica``, ``KeptReplica``
========================  ========================================================================
"""

from __future__ import annotations

from bisect import bisect_right

from minicluster.values import dataclass
from minicluster.verify.histories.commits import commits
from minicluster.verify.histories.replica_logs import ended_logs
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

_APPLIES = ("become_leader", "become_follower", "isr_commit")
_LEADS = ("append", "hw", "ack", "stop")
# A published image counts for the events of its broker from this long after it. The replicas of a
# broker that comes back take their first image up once the controller calls it caught up, which
# a lost heartbeat may delay: their first event shows that they have.
APPLIED_WITHIN_MS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedState:
    """A broker applies a state of a partition of the log.

    Shapes:  committed: the state that the log has at that partition epoch; None: no record made it.
    """

    broker: int
    kind: str
    leader_epoch: int | None
    committed: CommittedPartition | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionOfLeader:
    """A leader appends, acknowledges, stops, or moves its high watermark.

    Shapes:  image: the partition in the image that the broker has had for a while.
    """

    broker: int
    leader_epoch: int | None
    partition_epoch: int | None
    image: CommittedPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedReplica:
    """A broker deletes a replica; is_assigned: by its latest image, to this broker."""

    broker: int
    is_assigned: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptReplica:
    """A replica that a broker has at the end of the run.

    Shapes:  is_assigned: by the latest image of the broker. was_told: the state is in an image that
             the broker has had for a while.
    """

    broker: int
    is_assigned: bool
    was_told: bool


class PublishedImages:
    """The offsets of the images that nodes published, by event and by time.

    An image from before the log, as far as it is kept, can be folded says nothing: None.
    """

    def __init__(self, run: TracedRun) -> None:
        self._first = run.first_image
        self._by_event: dict[int, tuple[list[int], list[int]]] = {}
        self._by_time: dict[tuple[int, str | None], list[tuple[int, int]]] = {}
        for row in run.rows("publish"):
            events, offsets = self._by_event.setdefault(row["node"], ([], []))
            events.append(row["seq"])
            offsets.append(row["offset"])
            process = row["node"], row["incarnation"]
            self._by_time.setdefault(process, []).append((row["vt"], row["offset"]))
        for images in self._by_time.values():
            images.sort(key=lambda image: image[0])

    def latest(self, row: Row) -> int | None:
        """The latest image of an event's broker, of any incarnation."""
        events, offsets = self._by_event.get(row["broker"], ((), ()))
        place = bisect_right(events, row["seq"])
        return self._usable(offsets[place - 1]) if place else None

    def applied(self, row: Row) -> int | None:
        """The latest image that this incarnation of an event's broker must have applied."""
        images = self._by_time.get((row["broker"], row["incarnation"]), [])
        place = bisect_right(images, row["vt"] - APPLIED_WITHIN_MS, key=lambda image: image[0])
        return self._usable(images[place - 1][1]) if place else None

    def _usable(self, offset: int) -> int | None:
        return offset if offset >= self._first else None


def published_images(run: TracedRun) -> PublishedImages:
    """Context: the images that nodes published."""
    return PublishedImages(run)


@history(AppliedState, reads=("partition_event", "raft_event"))
def applied_states(run: TracedRun, judge: Judge) -> None:
    """What brokers apply to replicas of partitions that the log has, from its first state on."""
    by_epoch: dict[tuple[str, int], dict[int, list[CommittedPartition]]] = {}
    for place, states in run.timeline.partitions.items():
        for state in states:
            if state.step.leaves_a_state:
                epochs = by_epoch.setdefault(place, {})
                epochs.setdefault(state.partition_epoch, []).append(state)
    first_epochs = {place: min(epochs) for place, epochs in by_epoch.items()}
    for row in run.rows("partition_event"):
        if row["kind"] not in _APPLIES:
            continue
        place, epoch = (row["topic_id"], row["part"]), row["partition_epoch"]
        known = by_epoch.get(place)
        if known is None or epoch is None or epoch < first_epochs[place]:
            continue
        committed = _committed_by(run, known.get(epoch, []), row["seq"])
        step = AppliedState(
            broker=row["broker"],
            kind=row["kind"],
            leader_epoch=row["leader_epoch"],
            committed=committed,
        )
        judge.take(
            step,
            -1 if committed is None else committed.offset,
            row["topic"],
            row["part"],
            row["seq"],
        )


def _committed_by(
    run: TracedRun, states: list[CommittedPartition], event: int
) -> CommittedPartition | None:
    """The state of a partition epoch.

    There are several only where the id of a deleted topic is used again: the latest by then.
    """
    for state in reversed(states[1:]):
        committed_at = run.context(commits).seq_of(state.offset)
        if committed_at is not None and committed_at <= event:
            return state
    return states[0] if states else None


@history(ActionOfLeader, DeletedReplica, reads=("partition_event", "publish"))
def actions_on_replicas(run: TracedRun, judge: Judge) -> None:
    """What brokers do with replicas, beside the images that they have."""
    images = run.context(published_images)
    for row in run.rows("partition_event"):
        kind, place = row["kind"], (row["topic_id"], row["part"])
        if kind == "delete":
            at = images.latest(row)
            if at is not None:
                seen = run.timeline.partition_at(*place, at)
                deleted = DeletedReplica(
                    broker=row["broker"],
                    is_assigned=_is_assigned(seen, row["broker"]),
                )
                judge.take(deleted, at, row["topic"], row["part"], row["seq"])
        elif kind in _LEADS and row["maximal_isr"] is not None:
            at = images.applied(row)
            seen = None if at is None else run.timeline.partition_at(*place, at)
            if at is not None and seen is not None:
                step = ActionOfLeader(
                    broker=row["broker"],
                    leader_epoch=row["leader_epoch"],
                    partition_epoch=row["partition_epoch"],
                    image=seen,
                )
                judge.take(step, at, row["topic"], row["part"], row["seq"])


@history(KeptReplica, reads=("partition_event", "publish", "replica_log"))
def kept_replicas(run: TracedRun, judge: Judge) -> None:
    """The replicas whose logs brokers have at the end, each once, of brokers with any events.

    Each is judged by the newest image, and a removal counts once the broker has had it for a while.
    """
    images = run.context(published_images)
    known = {(row["broker"], row["incarnation"]) for row in run.rows("partition_event")}
    for row in run.context(ended_logs):
        # A process that shows no event of any replica has not caught up since it came back: what
        # lies on its disk may have been taken from it meanwhile, and counts as no stray yet (E37).
        if row["incarnation"] is None or (row["broker"], row["incarnation"]) not in known:
            continue
        at, applied = images.latest(row), images.applied(row)
        if at is None or applied is None:
            continue
        seen = run.timeline.partition_at(row["topic_id"], row["part"], at)
        step = KeptReplica(
            broker=row["broker"],
            is_assigned=_is_assigned(seen, row["broker"]),
            was_told=seen is None or seen.position <= applied,
        )
        judge.take(step, at, row["topic"], row["part"], row["seq"])


def _is_assigned(state: CommittedPartition | None, broker: int) -> bool:
    return state is not None and state.after.alive is True and broker in state.after.replicas
