"""The quorum's own events: votes, elections, epochs, high watermarks, voters.

========================  ========================================================================
takes                     ``raft_event`` rows; the first offset of each epoch, from the logs;
                          responses to Fetch of the metadata log, from ``rpc``
keeps, by node            what is on its disk and was on a disk that it lost; the end and epoch of
                          its log; the voter sets that its log names; its votes by epoch
keeps, by incarnation     whether it leads, its highest high watermark, the voters that it uses
keeps, for all            who was elected in each epoch, the highest high watermark of a leader
yields                    ``Vote``, ``DisputedElection``, ``ElectedController``,
                          ``QuorumHighWatermark``, ``VoterView``; afterwards only:
                          ``CommitInEpoch``, ``AppendedCopy``, ``FetchResponseEpoch``
========================  ========================================================================

``QuorumHistory`` takes rows as they come, live or afterwards. Bounded by the nodes, how often they
restart, and the epochs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from minicluster.values import dataclass
from minicluster.verify.histories.batches import Copies, epoch_starts
from minicluster.verify.histories.requests import body, each
from minicluster.verify.histories.traced_run import TracedRun, history
from minicluster.verify.judging import Judge

Process = tuple[int, str | None]  # node, incarnation
_VIEWS = frozenset({"voters", "hw", "voted", "elected", "epoch", "resign"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Vote:
    """A controller votes; others: for whom it voted earlier in that epoch."""

    node: int
    epoch: int | None
    candidate: int | None
    others: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DisputedElection:
    """A controller was elected in an epoch in which another one was elected, too."""

    node: int
    epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectedController:
    """A controller is elected, once there has been a high watermark.

    Units:   log_end and log_epoch: of its log; committed, committed_epoch: the highest high
             watermark of the leaders before, and the epoch of that leader.
    """

    node: int
    log_end: int
    log_epoch: int | None
    committed: int
    committed_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumHighWatermark:
    """A node moves its high watermark of the metadata log.

    Shapes:  leads: it was elected, and knows of no later epoch. is_newest: nobody was elected in a
             later epoch. voters: how many the leader counts by, 0 where the event names none; of
             them holders have that much on disk, or had on one that was lost, and of unrecorded
             ones nothing is known, for they are in other processes.
    Units:   own_before: the highest of this incarnation; committed: of any leader before. None:
             there is none.
    """

    node: int
    epoch: int | None
    offset: int
    leads: bool
    is_newest: bool
    own_before: int | None
    committed: int | None
    voters: int
    holders: int
    unrecorded: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitInEpoch:
    """A leader moves its high watermark in an epoch of which the logs have the beginning.

    Units:   own_before: its highest high watermark before, -1 for none. epoch_start: the offset of
             the epoch's LeaderChange.
    """

    node: int
    epoch: int
    offset: int
    own_before: int
    epoch_start: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VoterView:
    """The voters and kraft.version that a node uses, and those that its log names last.

    Shapes:  None: it has read none, or its log names none.
    """

    node: int
    used: str | None
    logged: str | None
    used_version: int | None
    logged_version: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendedCopy:
    """A batch that several nodes appended, or one did several times, by its epoch and last offset.

    Shapes:  differs: some of them are not the same.
    """

    node: int
    epoch: int
    last_offset: int
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchResponseEpoch:
    """The epoch in a controller's response to a Fetch, and the one that it was in by then."""

    node: int
    epoch: int
    own_epoch: int


class _NamedVoters:
    """Voters or a kraft.version in a log: the last offset of the batch, or the end of a start."""

    __slots__ = ("kraft_version", "offset", "voters")

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.offset: int | None = row.get("offset")
        self.voters: str | None = row.get("voters")
        self.kraft_version: int | None = row.get("kraft_version")


class _Node:
    """A node across its restarts.

    Shapes:  on_disk: the end of what is on its disk; was_on_disk: of what a lost disk held. named:
             the voters in its log, in order.
    """

    __slots__ = ("log_end", "log_epoch", "named", "on_disk", "votes", "was_on_disk")

    def __init__(self) -> None:
        self.on_disk: int | None = None
        self.was_on_disk = -1
        self.log_end: int | None = None
        self.log_epoch: int | None = None
        self.named: list[_NamedVoters] = []
        self.votes: dict[int | None, list[int]] = {}


class _Incarnation:
    """A node from a start to its end."""

    __slots__ = ("high_watermark", "leads", "used", "used_version")

    def __init__(self) -> None:
        self.leads = False
        self.high_watermark: int | None = None
        self.used: str | None = None
        self.used_version: int | None = None


class QuorumHistory:
    """Takes the events of the quorum's nodes one by one.

    Shapes:  epoch_starts: epoch -> the offset of its LeaderChange, as the logs have it in the end;
             none while a cluster runs.
    """

    def __init__(self, judge: Judge, epoch_starts: Mapping[int, int] | None = None) -> None:
        self._judge = judge
        self._starts = epoch_starts or {}
        self._nodes: dict[int, _Node] = {}
        self._incarnations: dict[Process, _Incarnation] = {}
        self._elected: dict[int | None, list[tuple[int, int | None, int]]] = {}
        self._newest: int | None = None  # the latest epoch in which anybody was elected
        self._committed: tuple[int, int] | None = None  # high watermark of a leader, its epoch

    def on_raft_event(self, row: Mapping[str, Any]) -> None:
        """Take an event of a node."""
        kind, number = row["kind"], row["node"]
        node = self._nodes.get(number)
        if node is None:
            node = self._nodes[number] = _Node()
        process = number, row.get("incarnation")
        incarnation = self._incarnations.get(process)
        if incarnation is None:
            incarnation = self._incarnations[process] = _Incarnation()
        match kind:
            case "append" | "truncate" | "begin" | "flush":
                self._on_log(node, kind, row)
            case "hw":
                self._on_high_watermark(number, incarnation, row)
            case "elected":
                incarnation.leads = True
                self._on_elected(number, node, row)
            case "resign" | "epoch":
                incarnation.leads = False
            case "voted":
                self._on_vote(number, node, row)
            case "voters":
                if row.get("voters") is not None:
                    incarnation.used = row["voters"]
                if row.get("kraft_version") is not None:
                    incarnation.used_version = row["kraft_version"]
        if kind in _VIEWS and node.named:
            self._on_view(number, node, incarnation, row)

    def _on_log(self, node: _Node, kind: str, row: Mapping[str, Any]) -> None:
        offset, epoch = row.get("offset"), row.get("epoch")
        if kind in ("flush", "begin") and offset is not None:
            before = node.on_disk
            # A log that begins below what was on disk: the disk was lost. The leader that had
            # counted it by then did nothing wrong.
            if kind == "begin" and before is not None and offset < before:
                node.was_on_disk = max(before, node.was_on_disk)
            node.on_disk = offset
        if kind == "flush":
            return
        if offset is not None:
            node.log_end = offset + 1 if kind == "append" else offset
        if epoch is not None:
            node.log_epoch = epoch
        if kind == "truncate" and offset is not None:
            node.named = [
                named for named in node.named if named.offset is None or named.offset < offset
            ]
        elif kind == "begin":
            node.named = [_NamedVoters(row)]
        elif row.get("voters") is not None or row.get("kraft_version") is not None:
            node.named.append(_NamedVoters(row))

    def _on_vote(self, number: int, node: _Node, row: Mapping[str, Any]) -> None:
        epoch, candidate = row.get("epoch"), row.get("voted_for")
        votes = node.votes.setdefault(epoch, [])
        vote = Vote(node=number, epoch=epoch, candidate=candidate, others=tuple(votes))
        if candidate is not None and candidate not in votes:
            votes.append(candidate)
        self._judge.take(vote, event=row.get("seq", -1))

    def _on_elected(self, number: int, node: _Node, row: Mapping[str, Any]) -> None:
        epoch, leader = row.get("epoch"), row.get("leader")
        if epoch is not None:
            self._newest = epoch if self._newest is None else max(self._newest, epoch)
        if self._committed is not None and node.log_end is not None:
            step = ElectedController(
                node=number,
                log_end=node.log_end,
                log_epoch=node.log_epoch,
                committed=self._committed[0],
                committed_epoch=self._committed[1],
            )
            self._judge.take(step, node.log_end, event=row.get("seq", -1))
        known = self._elected.setdefault(epoch, [])
        agreed = len({elected for _, elected, _ in known} - {None}) < 2
        known.append((number, leader, row.get("seq", -1)))
        if len({elected for _, elected, _ in known} - {None}) > 1:
            # The first disagreement makes findings of those who were elected before, too.
            for claimant, _, event in known if agreed else known[-1:]:
                disputed = DisputedElection(node=claimant, epoch=epoch)
                self._judge.take(disputed, event=event)

    def _on_high_watermark(
        self, number: int, incarnation: _Incarnation, row: Mapping[str, Any]
    ) -> None:
        offset, epoch = row.get("offset"), row.get("epoch")
        if offset is None:
            return
        voters = row.get("voters")
        every = () if voters is None else voter_ids(voters)
        holders, unrecorded = self._on_disk(every, offset)
        before = incarnation.high_watermark
        step = QuorumHighWatermark(
            node=number,
            epoch=epoch,
            offset=offset,
            leads=incarnation.leads,
            is_newest=epoch is not None and epoch == self._newest,
            own_before=before,
            committed=None if self._committed is None else self._committed[0],
            voters=len(every),
            holders=holders,
            unrecorded=unrecorded,
        )
        event = row.get("seq", -1)
        self._judge.take(step, offset, event=event)
        if incarnation.leads and epoch is not None and epoch in self._starts:
            in_epoch = CommitInEpoch(
                node=number,
                epoch=epoch,
                offset=offset,
                own_before=-1 if before is None else before,
                epoch_start=self._starts[epoch],
            )
            self._judge.take(in_epoch, offset, event=event)
        incarnation.high_watermark = offset if before is None else max(before, offset)
        if incarnation.leads:
            mark = offset, -1 if epoch is None else epoch
            self._committed = mark if self._committed is None else max(mark, self._committed)

    def _on_disk(self, voters: tuple[int | None, ...], offset: int) -> tuple[int, int]:
        """How many voters have that much on disk, and of how many nothing is recorded."""
        holders = unrecorded = 0
        for voter in voters:
            node = None if voter is None else self._nodes.get(voter)
            if node is None or node.on_disk is None:
                unrecorded += 1  # in another process, such as a controller of Apache Kafka
            elif max(node.on_disk, node.was_on_disk) >= offset:
                holders += 1
        return holders, unrecorded

    def _on_view(
        self, number: int, node: _Node, incarnation: _Incarnation, row: Mapping[str, Any]
    ) -> None:
        logged = [named.voters for named in node.named if named.voters is not None]
        versions = [named.kraft_version for named in node.named if named.kraft_version is not None]
        step = VoterView(
            node=number,
            used=incarnation.used,
            logged=logged[-1] if logged else None,
            used_version=incarnation.used_version,
            logged_version=versions[-1] if versions else None,
        )
        self._judge.take(step, event=row.get("seq", -1))


@lru_cache(maxsize=1024)
def voter_ids(voters: str) -> tuple[int | None, ...]:
    """The ids in ``101@<directory id>,102@…``, which changes only with the voters."""
    every = (voter.partition("@")[0] for voter in voters.split(","))
    return tuple(int(voter) if voter.isdecimal() else None for voter in every)


@history(
    Vote,
    DisputedElection,
    ElectedController,
    QuorumHighWatermark,
    CommitInEpoch,
    VoterView,
    reads=("raft_event",),
)
def quorum_events(run: TracedRun, judge: Judge) -> None:
    """The events of all nodes, in order."""
    quorum = QuorumHistory(judge, run.context(epoch_starts))
    for row in run.rows("raft_event"):
        quorum.on_raft_event(row)


def _appended_copy(node: int, epoch: int, offset: int, differs: bool) -> AppendedCopy:
    return AppendedCopy(node=node, epoch=epoch, last_offset=offset, differs=differs)


@history(AppendedCopy, reads=("raft_event",))
def appended_copies(run: TracedRun, judge: Judge) -> None:
    """All batches that nodes ever appended, by their offsets, also those truncated later."""
    copies = Copies(judge, _appended_copy)
    appends = [
        (row["offset"], row["epoch"], row["crc"], row["node"])
        for row in run.rows("raft_event")
        if row["kind"] == "append" and None not in (row["offset"], row["epoch"], row["crc"])
    ]
    appends.sort(key=itemgetter(0))
    for offset, epoch, crc, node in appends:
        copies.on_copy(node, epoch, offset, crc)
    copies.finish()


@history(FetchResponseEpoch, reads=("raft_event", "rpc"))
def fetch_response_epochs(run: TracedRun, judge: Judge) -> None:
    """Responses to Fetch of nodes that were elected at any time, beside their own epochs."""
    events: dict[int, tuple[list[int], list[int]]] = {}
    elected: set[int] = set()
    for row in run.rows("raft_event"):
        if row["kind"] == "elected":
            elected.add(row["node"])
        elif row["kind"] == "epoch" and row["epoch"] is not None:
            numbers, epochs = events.setdefault(row["node"], ([], []))
            numbers.append(row["seq"])
            epochs.append(row["epoch"])
    for row in run.rows("rpc"):
        if row["api"] != "Fetch" or row["resp_seq"] is None or row["dst"] not in elected:
            continue
        epoch = _response_epoch(row["response"])
        numbers, epochs = events.get(row["dst"], ([], []))
        place = bisect_right(numbers, row["resp_seq"])
        if epoch is not None and place:
            step = FetchResponseEpoch(node=row["dst"], epoch=epoch, own_epoch=epochs[place - 1])
            judge.take(step)


def _response_epoch(response: str | None) -> int | None:
    for topic in each(body(response), "responses")[:1]:
        for partition in each(topic, "partitions")[:1]:
            leader = partition.get("currentLeader")
            epoch = leader.get("leaderEpoch") if isinstance(leader, dict) else None
            return epoch if isinstance(epoch, int) else None
    return None
