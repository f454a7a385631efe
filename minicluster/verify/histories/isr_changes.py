"""How leaders change their ISRs, and their ISRs beside the committed ones.

A leader proposes an ISR to the controller, and until the change is answered, or newer metadata has
come, it acts on the maximal ISR: the members of the old ISR and those that it proposes to add.
Metadata that it has applied already leaves such a change pending: its row comes once more, and is
no proposal. Nor is it where the controller has rejected the change as out of date: the leader then
waits for metadata, any of its leader epoch ends the change, and the row has the error.

========================  ========================================================================
takes                     ``partition_event`` rows; afterwards also committed partitions and when
                          each was committed, and the images that brokers published
keeps, by replica         of its process, the running broker: its last event, its last change of
                          leader or ISR, where its log ended when its leader epoch began, and a
                          committed shrink until its next event
keeps, by partition       its committed ISR, and the maximal ISR of its leader
yields                    ``IsrProposed``, ``IsrReverted``, ``ProposalOvertaken``, ``IsrShrunk``;
                          afterwards only: ``LeaderBesideCommit``, ``CommitBesideLeader``,
                          ``ProposedReplica``
========================  ========================================================================

Bounded by the replicas of topics that are not deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from typing import Any, NamedTuple

from minicluster.values import dataclass
from minicluster.verify.histories.electable import commits_of_partitions
from minicluster.verify.histories.fetch_states import (
    NEVER_FETCHED,
    FetchState,
    FetchStates,
    fetch_states,
)
from minicluster.verify.histories.timeline import CommittedPartition
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge

Place = tuple[str, int]  # topic id as the trace has it, partition
Ids = tuple[int, ...]
_CHANGES = frozenset(
    ("become_leader", "become_follower", "isr_pending", "isr_commit", "isr_revert")
)
_OF_A_PROPOSAL = ("kind", "incarnation", "leader_epoch", "partition_epoch", "maximal_isr")
_NOTHING_IN_FLIGHT = frozenset(("become_leader", "isr_commit", "isr_revert"))


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrProposed:
    """A leader proposes an ISR.

    Shapes:  in_flight: the maximal ISR of another change that has not been answered, of the same
             leader and partition epoch; None: there is none. followers: None where they were not
             recorded. epoch_start: its log end when it began to lead, if the trace has it.
    """

    broker: int
    leader_epoch: int
    isr: Ids
    maximal_isr: Ids
    high_watermark: int | None
    epoch_start: int | None
    followers: FetchStates | None
    in_flight: Ids | None

    @property
    def joining(self) -> Ids:
        """The replicas that it proposes to add."""
        return tuple(member for member in self.maximal_isr if member not in self.isr)

    def fetch_state(self, member: int) -> FetchState:
        """The last fetch of a replica."""
        return (self.followers or {}).get(member, NEVER_FETCHED)


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrReverted:
    """A leader goes back to the ISR before its proposal; error: that it was rejected with."""

    broker: int
    isr: Ids
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalOvertaken:
    """A leader applies metadata while its proposal has not been answered."""

    broker: int
    is_newer: bool  # than what the leader had when it proposed, or the proposal was rejected


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrShrunk:
    """A shrink of a leader's ISR is committed.

    Shapes:  leaving: the replicas that leave. followers: None where they were not recorded;
             followers_before: at its last change before, which is the proposal. advances: its next
             event moves the high watermark.
    """

    broker: int
    isr: Ids
    leaving: Ids
    min_isr: int | None
    log_end: int
    high_watermark: int
    followers: FetchStates | None
    followers_before: FetchStates | None
    advances: bool

    @property
    def isr_end(self) -> int:
        """The lowest log end of the smaller ISR."""
        followers = self.followers or {}
        return min(
            self.log_end if member == self.broker else followers.get(member, NEVER_FETCHED).log_end
            for member in self.isr
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderBesideCommit:
    """An event of a leader beside the ISR that is committed by then.

    Shapes:  in_flight: a change may be. committed_isr: None where what is committed is of another
             leader or leader epoch; committed_at: the offset of that state.
    """

    broker: int
    isr: Ids
    maximal_isr: Ids
    in_flight: bool
    committed_isr: Ids | None
    committed_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitBesideLeader:
    """An ISR is committed beside the maximal ISR of the leader, which leads in this epoch."""

    leader: int
    isr: Ids
    maximal_isr: Ids


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedReplica:
    """A replica that a leader proposes to add, in the image that the leader's broker has published.

    Shapes:  broker: of the replica. fetched_as: the broker epoch of its last fetch; None: it told
             none. broker_epoch: in the image.
    """

    broker: int
    maximal_isr: Ids
    image: int
    is_active: bool
    broker_epoch: int | None
    fetched_as: int | None


class _Process:
    """A replica of a running broker: its events since the broker started."""

    __slots__ = ("change", "epoch", "epoch_start", "incarnation", "is_deleted", "isr", "shrunk")

    def __init__(self, incarnation: str | None) -> None:
        self.incarnation = incarnation
        self.is_deleted = False
        self.isr: list[int] | None = None  # at its last event
        self.change: Row | None = None
        self.epoch: int | None = None  # the last one in which it became leader
        self.epoch_start: int | None = None
        self.shrunk: tuple[Row, Ids, Row | None] | None = None


class IsrChanges:
    """Takes the events of replicas one by one, as they come; ``end`` when there are no more."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._processes: dict[Place, dict[int, _Process]] = {}

    def on_partition_event(self, row: Row) -> None:
        """An event of a replica."""
        place, broker, kind = (row["topic_id"], row["part"]), row["broker"], row["kind"]
        processes = self._processes.get(place)
        if processes is None:
            processes = self._processes[place] = {}
        process, incarnation = processes.get(broker), row.get("incarnation")
        # A shrink is judged with the next event of its replica: only that shows whether the leader
        # moves its high watermark now that the member is gone. Another process shows nothing of it.
        if process is not None and process.shrunk is not None:
            self._on_shrunk(process, kind == "hw" and process.incarnation == incarnation)
        if process is None or process.incarnation != incarnation:
            process = processes[broker] = _Process(incarnation)
        if kind in _CHANGES:
            row = dict(row)
            self._on_change(process, kind, row)
            process.change = row
        process.isr, process.is_deleted = row.get("isr"), kind == "delete"
        if process.is_deleted and all(known.is_deleted for known in processes.values()):
            del self._processes[place]

    def end(self) -> None:
        """There are no more events: what waited for the next one is judged without it."""
        for processes in self._processes.values():
            for process in processes.values():
                if process.shrunk is not None:
                    self._on_shrunk(process, advances=False)

    def _take(self, step: object, row: Row) -> None:
        self._judge.take(step, -1, row["topic"], row["part"], row["seq"])

    def _on_change(self, process: _Process, kind: str, row: Row) -> None:
        change = process.change
        waits = change is not None and change["kind"] == "isr_pending"
        if kind == "become_leader":
            if process.epoch != row["leader_epoch"]:
                process.epoch, process.epoch_start = row["leader_epoch"], row.get("leo")
            if change is not None and waits:
                same_leader = change["leader_epoch"] == row["leader_epoch"]
                is_same = same_leader and change["partition_epoch"] >= row["partition_epoch"]
                is_newer = not is_same or change.get("error") is not None
                step = ProposalOvertaken(broker=row["broker"], is_newer=is_newer)
                self._take(step, row)
        elif kind == "isr_pending":
            if change is None or not _is_repeated(change, row):
                self._on_proposed(process, change if waits else None, row)
        elif kind == "isr_revert":
            reverted = IsrReverted(
                broker=row["broker"],
                isr=tuple(row["isr"] or ()),
                error=row.get("error"),
            )
            self._take(reverted, row)
        elif kind == "isr_commit" and process.isr is not None:
            leaving = tuple(member for member in process.isr if member not in row["isr"])
            if leaving:
                process.shrunk = row, leaving, change

    def _on_proposed(self, process: _Process, waiting: Row | None, row: Row) -> None:
        epoch = row["leader_epoch"]
        in_flight = None
        if waiting is not None and (
            (waiting["leader_epoch"], waiting["partition_epoch"]) == (epoch, row["partition_epoch"])
        ):
            in_flight = tuple(waiting["maximal_isr"])
        step = IsrProposed(
            broker=row["broker"],
            leader_epoch=epoch,
            isr=tuple(row["isr"]),
            maximal_isr=tuple(row["maximal_isr"]),
            high_watermark=row["hw_new"],
            epoch_start=process.epoch_start if process.epoch == epoch else None,
            followers=fetch_states(row),
            in_flight=in_flight,
        )
        self._take(step, row)

    def _on_shrunk(self, process: _Process, advances: bool) -> None:
        assert process.shrunk is not None
        row, leaving, change = process.shrunk
        process.shrunk = None
        step = IsrShrunk(
            broker=row["broker"],
            isr=tuple(row["isr"]),
            leaving=leaving,
            min_isr=row.get("min_isr"),
            log_end=row["leo"],
            high_watermark=row["hw_new"],
            followers=fetch_states(row),
            followers_before=None if change is None else fetch_states(change),
            advances=advances,
        )
        self._take(step, row)


def _is_repeated(change: Row, row: Row) -> bool:
    """A pending change is shown again: its leader has applied metadata that it had already.

    Taken for a new proposal, it would be compared with the followers and the image of now, though
    the leader decided by those of then: A5, B7 and F14 accused correct leaders in this way.
    """
    return all(change.get(column) == row.get(column) for column in _OF_A_PROPOSAL)


@history(IsrProposed, IsrReverted, ProposalOvertaken, IsrShrunk, reads=("partition_event",))
def isr_changes(run: TracedRun, judge: Judge) -> None:
    """Each change of a leader's ISR beside what the leader did before."""
    changes = IsrChanges(judge)
    for row in run.rows("partition_event"):
        changes.on_partition_event(row)
    changes.end()


# --- afterwards only ------------------------------------------------------------------------------


class _LeaderIsr(NamedTuple):
    """What the last event of a partition's leaders shows."""

    broker: int
    leader_epoch: int
    maximal_isr: Ids


def _commits_and_leaders(run: TracedRun) -> Iterator[CommittedPartition | Row]:
    """Commits of partitions and events of leaders, by their events; a leader's comes first."""
    events = (
        (row["seq"], -1, row)
        for row in run.rows("partition_event")
        if row["maximal_isr"] is not None
    )
    both: Iterator[Any] = merge(events, run.context(commits_of_partitions), key=itemgetter(0, 1))
    for _, _, what in both:
        yield what


@history(LeaderBesideCommit, CommitBesideLeader, reads=("partition_event", "raft_event"))
def leaders_and_commits(run: TracedRun, judge: Judge) -> None:
    """The ISR that is committed and the one that the leader acts on, each beside the other.

    A record is committed by the first high watermark of the quorum above it, so the order of both
    is known afterwards only.
    """
    committed: dict[Place, CommittedPartition] = {}
    leaders: dict[Place, _LeaderIsr] = {}
    for what in _commits_and_leaders(run):
        if isinstance(what, CommittedPartition):
            place, after = (what.topic_id, what.partition), what.after
            committed[place] = what
            leader = leaders.get(place)
            if leader is None or leader.broker != after.leader:
                continue
            if leader.leader_epoch == what.leader_epoch:
                commit = CommitBesideLeader(
                    leader=after.leader, isr=after.isr, maximal_isr=leader.maximal_isr
                )
                judge.take(commit, what.offset, what.topic, what.partition)
            continue
        place = what["topic_id"], what["part"]
        state, broker = committed.get(place), what["broker"]
        maximal_isr = tuple(what["maximal_isr"])
        leaders[place] = _LeaderIsr(broker, what["leader_epoch"], maximal_isr)
        leads = (
            state is not None
            and state.leader_epoch == what["leader_epoch"]
            and state.after.leader == broker
        )
        event = LeaderBesideCommit(
            broker=broker,
            isr=tuple(what["isr"]),
            maximal_isr=maximal_isr,
            in_flight=what["kind"] not in _NOTHING_IN_FLIGHT,
            committed_isr=state.after.isr if state is not None and leads else None,
            committed_at=-1 if state is None else state.offset,
        )
        judge.take(event, -1, what["topic"], what["part"], what["seq"])


def _proposals(events: Iterable[Row]) -> list[Row]:
    """The events with which leaders propose an ISR."""
    proposals: list[Row] = []
    changes: dict[tuple[Place, int], Row] = {}
    for row in events:
        if row["kind"] not in _CHANGES:
            continue
        replica = (row["topic_id"], row["part"]), row["broker"]
        change = changes.get(replica)
        changes[replica] = {column: row[column] for column in _OF_A_PROPOSAL}
        if row["kind"] == "isr_pending" and (change is None or not _is_repeated(change, row)):
            proposals.append(dict(row))
    return proposals


@history(ProposedReplica, reads=("partition_event", "publish"))
def proposed_replicas(run: TracedRun, judge: Judge) -> None:
    """Each replica that a leader proposes to add, beside its state in the leader's own image."""
    proposals = _proposals(run.rows("partition_event"))
    if not proposals:
        return
    proposed = ((row["seq"], 0, row) for row in proposals)
    published = ((row["seq"], 1, row) for row in run.rows("publish"))
    images: dict[int, int] = {}
    for _, is_publish, row in merge(proposed, published, key=lambda entry: entry[:2]):
        if is_publish:
            images[row["node"]] = row["offset"]
            continue
        image = images.get(row["broker"])
        if image is None or image < run.first_image:
            continue  # it published nothing, or what the log can make no more
        followers = fetch_states(row) or {}
        for member in dict.fromkeys(row["maximal_isr"]):
            if member in row["isr"]:
                continue
            broker = run.timeline.broker_at(member, image)
            step = ProposedReplica(
                broker=member,
                maximal_isr=tuple(row["maximal_isr"]),
                image=image,
                is_active=broker is not None and broker.active,
                broker_epoch=None if broker is None else broker.epoch,
                fetched_as=followers.get(member, NEVER_FETCHED).broker_epoch,
            )
            judge.take(step, image, row["topic"], row["part"], row["seq"])
