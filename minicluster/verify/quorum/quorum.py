"""The quorum's own events: votes, elections, epochs, high watermarks, voters (KIP-595, KIP-853).

subject   the quorum: the events of all of its nodes; of a run that has ended also their responses
          to Fetch
keeps     by node, what is on its disk and was on a disk that it lost, the end and epoch of its log,
          the voters that its log names, its votes by epoch; by process, whether it leads, its
          highest high watermark, the voters that it uses; for all, who was elected in each epoch,
          the highest high watermark of a leader; of a run that has ended, all batches ever appended

Bounded, while a cluster runs, by the nodes, how often they restart, and the epochs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from minicluster.verify.exchange.exchange import Exchange, each
from minicluster.verify.histories.traced_run import Row
from minicluster.verify.model import Evidence
from minicluster.verify.quorum.check_quorum import (
    Leadership,
    a_leader_without_a_majority_resigns,
)
from minicluster.verify.quorum.controller_logs import (
    Copy,
    each_epoch_begins_with_its_leader_change,
    logs_match,
)
from minicluster.verify.rules.rule import CASE, Findings, Said, broken, rule

_VIEWS = frozenset({"voters", "hw", "voted", "elected", "epoch", "resign"})


class RaftEvent:
    """An event of a node; its fields are columns of ``raft_event`` (``trace.py``), None without it.

    Shapes:  topic, part: of no partition. voters: ``101@<directory id>,102@…``.
    """

    __slots__ = (
        "at_ms", "broker", "crc", "epoch", "incarnation", "kind", "kraft_version", "leader",
        "offset", "seq", "voted_for", "voters",
    )  # fmt: skip
    topic, part = "", -1

    def __init__(self, row: Row) -> None:
        cell: Callable[[str], Any] = row.get
        self.seq: int = row.get("seq", -1)
        self.at_ms: int = row.get("vt", 0)
        self.broker: int = row["node"]
        self.incarnation: str | None = cell("incarnation")
        self.kind: str = row["kind"]
        self.epoch: int | None = cell("epoch")
        self.leader: int | None = cell("leader")
        self.offset: Any = cell("offset")
        self.voted_for: int | None = cell("voted_for")
        self.crc: int | None = cell("crc")
        self.voters: str | None = cell("voters")
        self.kraft_version: int | None = cell("kraft_version")


class Node(Struct):
    """A node across its restarts.

    Shapes:  named: the voters and kraft.versions in its log: of events, in order. responds_in: the
             epoch that it told of last. leadership: its last one, of a run that has ended.
    Units:   on_disk: the end of what is on its disk; was_on_disk: of what a lost disk held.
    """

    on_disk: int | None = None
    was_on_disk: int = -1
    log_end: int | None = None
    log_epoch: int | None = None
    named: list[RaftEvent] = field(default_factory=list)
    votes: dict[int | None, list[int]] = field(default_factory=dict)
    has_led: bool = False
    responds_in: int | None = None
    leadership: Leadership | None = None

    def holds(self, offset: int) -> bool:
        """So much is on its disk, or was on one that it lost: a leader had counted that by then."""
        return max(self.was_on_disk, -1 if self.on_disk is None else self.on_disk) >= offset

    def follow(self, event: RaftEvent) -> None:
        """Keep up with its log and its disk."""
        kind, offset = event.kind, event.offset
        if kind in ("flush", "begin") and offset is not None:
            if kind == "begin" and self.on_disk is not None and offset < self.on_disk:
                self.was_on_disk = max(self.on_disk, self.was_on_disk)
            self.on_disk = offset
        if kind == "flush":
            return
        if offset is not None:
            self.log_end = offset + 1 if kind == "append" else offset
        if event.epoch is not None:
            self.log_epoch = event.epoch
        if kind == "truncate" and offset is not None:
            self.named = [one for one in self.named if one.offset is None or one.offset < offset]
        elif kind == "begin":
            self.named = [event]
        elif event.voters is not None or event.kraft_version is not None:
            self.named.append(event)


class Process(Struct):
    """A node from a start to its end.

    Shapes:  leads: it was elected, and knows of no later epoch. voters, kraft_version: it uses.
    """

    leads: bool = False
    high_watermark: int | None = None
    voters: str | None = None
    kraft_version: int | None = None


class Quorum:
    """A quorum of controllers and those that follow it.

    Shapes:  epoch_starts: epoch -> the offset of its LeaderChange, as the logs of a run that has
             ended have it; None while a cluster runs. newest: the latest epoch in which anybody was
             elected. committed: the highest high watermark of a leader, with its epoch.
    Units:   patience_ms: how long a leader leads without a majority, of a run that has ended.
    """

    def __init__(self, epoch_starts: Mapping[int, int] | None = None, patience_ms: int = 0) -> None:
        self.epoch_starts = epoch_starts
        self.patience_ms = patience_ms
        self.nodes: dict[int, Node] = defaultdict(Node)
        self.processes: dict[tuple[int, str | None], Process] = defaultdict(Process)
        self.elected: dict[int | None, list[RaftEvent]] = defaultdict(list)
        self.newest: int | None = None
        self.committed: tuple[int, int] | None = None
        self.appended: dict[tuple[int, int], list[Copy]] = defaultdict(list)  # by epoch and offset

    def on_event(self, event: RaftEvent) -> Said:
        """An event of a node."""
        node, process = self.nodes[event.broker], self.processes[event.broker, event.incarnation]
        match event.kind:
            case "append" | "truncate" | "begin" | "flush":
                node.follow(event)
                self._note_append(event)
            case "hw" if event.offset is not None:
                yield from self._on_high_watermark(process, event)
            case "elected":
                process.leads = node.has_led = True
                yield from self._on_elected(node, event)
            case "resign":
                process.leads = False
            case "epoch":
                process.leads = False
                if event.epoch is not None:
                    node.responds_in = event.epoch
            case "voted":
                votes = node.votes.setdefault(event.epoch, [])
                yield from one_vote_per_epoch(votes, event)
                if event.voted_for is not None and event.voted_for not in votes:
                    votes.append(event.voted_for)
            case "voters":
                if event.voters is not None:
                    process.voters = event.voters
                if event.kraft_version is not None:
                    process.kraft_version = event.kraft_version
        if process.leads and self.patience_ms:
            yield from self._on_act(node, process, event)
        if event.kind in _VIEWS and node.named:
            yield from nodes_use_the_voters_of_their_log(node, process, event)

    def _note_append(self, event: RaftEvent) -> None:
        """Keep a batch, also one that is truncated later, of a run that has ended."""
        if self.epoch_starts is not None and event.kind == "append":
            epoch, offset, crc = event.epoch, event.offset, event.crc
            if epoch is not None and offset is not None and crc is not None:
                self.appended[epoch, offset].append((event.broker, crc))

    def _on_elected(self, node: Node, event: RaftEvent) -> Said:
        if event.epoch is not None:
            self.newest = event.epoch if self.newest is None else max(self.newest, event.epoch)
        if self.committed is not None and node.log_end is not None:
            yield from an_elected_leader_holds_what_is_committed(
                node, node.log_end, self.committed, event
            )
        yield from _and_one_is_elected(self.elected[event.epoch], event)
        self.elected[event.epoch].append(event)

    def _on_high_watermark(self, process: Process, event: RaftEvent) -> Said:
        yield from the_high_watermark_is_held_by_a_majority(self, process, event)
        start = (self.epoch_starts or {}).get(-1 if event.epoch is None else event.epoch)
        if process.leads and start is not None:
            yield from an_epochs_first_commit_is_its_own(process, start, event)
        before = process.high_watermark
        process.high_watermark = event.offset if before is None else max(before, event.offset)
        if process.leads:
            mark = event.offset, -1 if event.epoch is None else event.epoch
            self.committed = mark if self.committed is None else max(mark, self.committed)

    def _on_act(self, node: Node, process: Process, event: RaftEvent) -> Said:
        if node.leadership is None or event.kind == "elected":
            node.leadership = Leadership(event.broker, event.at_ms, self.patience_ms)
        voters = () if process.voters is None else voter_ids(process.voters)
        # What a controller of Apache Kafka fetches, in another process, is not recorded.
        if voters and all(voter in self.nodes for voter in voters):
            node.leadership.on_act(event.at_ms, voters)
            yield from a_leader_without_a_majority_resigns(node.leadership, event)

    def on_fetch(self, exchange: Exchange) -> Said:
        """A response to a Fetch leaves; that of a controller which has led is about its log."""
        node = self.nodes.get(exchange.receiver)
        if node is not None and node.leadership is not None:
            node.leadership.on_fetch(exchange)
        if node is not None and node.has_led and node.responds_in is not None:
            yield from responses_have_the_epoch_of_their_node(exchange, node.responds_in)

    def at_end(self) -> Said:
        """There are no more events."""
        for (epoch, offset), copies in self.appended.items():
            if len(copies) > 1:
                yield from logs_match(offset, epoch, copies)


@lru_cache(maxsize=1024)  # they change only with the voters
def voter_ids(voters: str) -> tuple[int | None, ...]:
    """The ids in ``101@<directory id>,102@…``."""
    every = (voter.partition("@")[0] for voter in voters.split(","))
    return tuple(int(voter) if voter.isdecimal() else None for voter in every)


@each_epoch_begins_with_its_leader_change.also
def _and_one_is_elected(before: list[RaftEvent], event: RaftEvent) -> Findings:
    """The first disagreement makes findings of those who were elected before, too."""
    leaders = {known.leader for known in before} - {None}
    if len(leaders | {event.leader} - {None}) < 2:
        return
    for known in (*before, event) if len(leaders) < 2 else (event,):
        yield broken(
            f"controller {known.broker} was elected in epoch {event.epoch}, and so was another "
            "controller",
            known,
        )


@rule("E04", "One vote per epoch", source="KIP-595; QuorumState (quorum-state file)",
      evidence=Evidence.TRACE, tables=("raft_event",),
      breaks="Controller 101 votes for 102 in epoch 1, restarts, and votes for 103 in epoch 1.",
      keeps="Controller 101 votes for 102 twice in epoch 1 and for 103 in epoch 2; "
      "103 votes for itself in epoch 1.")  # fmt: skip
def one_vote_per_epoch(before: list[int], event: RaftEvent) -> Findings:
    """A controller votes for at most one candidate in an epoch, across restarts."""
    yield CASE
    if event.voted_for is not None and any(other != event.voted_for for other in before):
        yield broken(f"controller {event.broker} voted twice in epoch {event.epoch}", event)


@rule("E06", "The high watermark is held by a majority and does not decrease",
      source="KIP-595; LeaderState.maybeUpdateHighWatermark", evidence=Evidence.TRACE,
      tables=("raft_event",),
      breaks="Controller 101 moves its high watermark back from 5 to 4.",
      keeps="Controller 102, and a new incarnation of 101, begin below the high "
      "watermark 5 of 101.")  # fmt: skip
def the_high_watermark_is_held_by_a_majority(
    quorum: Quorum, process: Process, event: RaftEvent
) -> Findings:
    """A leader's high watermark is on the disks of a majority of its voters and not below that of
    any earlier leader; no node is ahead of the leaders, and no running node goes back."""
    node, offset = event.broker, event.offset
    committed = None if quorum.committed is None else quorum.committed[0]
    if process.high_watermark is not None:
        yield CASE
        if offset < process.high_watermark:
            yield broken(
                f"node {node} moved its high watermark back to {offset} from "
                f"{process.high_watermark}",
                event,
                offset=offset,
            )
    # A leader that was deposed and has not heard of it may still lag.
    is_newest = event.epoch is not None and event.epoch == quorum.newest
    if committed is not None and process.leads and is_newest and offset < committed:
        yield broken(
            f"leader {node} has high watermark {offset}, below the committed offset {committed}",
            event,
            offset=offset,
        )
    if committed is not None and not process.leads and offset > committed:
        yield broken(
            f"node {node} has high watermark {offset}, above the leaders' {committed}",
            event,
            offset=offset,
        )
    if event.voters is None:
        return
    yield CASE
    voters = [quorum.nodes.get(-1 if voter is None else voter) for voter in voter_ids(event.voters)]
    # One whose disk is not recorded is in another process, such as a controller of Apache Kafka.
    recorded = [voter for voter in voters if voter is not None and voter.on_disk is not None]
    lacking = sum(not voter.holds(offset) for voter in recorded)
    if 2 * (len(voters) - lacking) <= len(voters):
        yield broken(
            f"leader {node} has high watermark {offset}, which only {len(recorded) - lacking} of "
            "its voters have on disk: no majority",
            event,
            offset=offset,
        )


@rule("E07", "An elected leader holds every committed record",
      source="KIP-595; VoteRequest (last offset and epoch)", evidence=Evidence.TRACE,
      tables=("raft_event",),
      breaks="The high watermark is 6, and controller 102 is elected with a log that ends at 5.",
      keeps="The high watermark is 6, and controller 102 is elected with a log that "
      "ends at 6.")  # fmt: skip
def an_elected_leader_holds_what_is_committed(
    node: Node, log_end: int, committed: tuple[int, int], event: RaftEvent
) -> Findings:
    """The log of a newly elected leader ends at the high watermark or later, and its last epoch is
    not older."""
    yield CASE
    is_older = node.log_epoch is not None and node.log_epoch < committed[1]
    if log_end < committed[0] or is_older:
        yield broken(
            f"controller {event.broker} was elected with a log that ends at {log_end} and lacks "
            f"records below the high watermark {committed[0]}",
            event,
            offset=log_end,
        )


@rule("E08", "An epoch's first commit is a record of its own",
      source="KIP-595, KAFKA-12619; LeaderState.maybeUpdateHighWatermark",
      at_end=True, evidence=Evidence.TRACE, tables=("raft_event",),
      breaks="The leader of epoch 2 advances its high watermark to the offset of its LeaderChange.",
      keeps="The leader of epoch 2 advances its high watermark past its "
      "LeaderChange.")  # fmt: skip
def an_epochs_first_commit_is_its_own(process: Process, start: int, event: RaftEvent) -> Findings:
    """A leader does not advance its high watermark before a record of its own epoch is
    committed."""
    yield CASE
    before = -1 if process.high_watermark is None else process.high_watermark
    if before < event.offset <= start:
        yield broken(
            f"controller {event.broker} advanced its high watermark to {event.offset} before a "
            f"record of epoch {event.epoch} was committed",
            event,
            offset=event.offset,
        )


@rule("E43", "Nodes use the voter set that their log names last",
      source="KIP-853; PartitionState (KRaftControlRecordStateMachine)", evidence=Evidence.TRACE,
      tables=("raft_event",),
      breaks="The log of 101 names voters 101 and 102, and 101 still uses 103 as well.",
      keeps="Voters are written, truncated, written again, and taken from a "
      "snapshot: 101 follows at once.")  # fmt: skip
def nodes_use_the_voters_of_their_log(node: Node, process: Process, event: RaftEvent) -> Findings:
    """The voter set and kraft.version that a node uses are those of the last such records in its
    log, or in the snapshot before it."""
    named = [one.voters for one in node.named if one.voters is not None]
    if process.voters is not None and named:
        yield CASE
        if process.voters != named[-1]:
            yield broken(
                f"node {event.broker} uses the voters {_ids(process.voters)}, its log has "
                f"{_ids(named[-1])}",
                event,
            )
    versions = [one.kraft_version for one in node.named if one.kraft_version is not None]
    if process.kraft_version is not None and versions:
        yield CASE
        if process.kraft_version != versions[-1]:
            yield broken(
                f"node {event.broker} uses kraft.version {process.kraft_version}, its log has "
                "another",
                event,
            )


def _ids(voters: str) -> str:
    return "[" + ", ".join(str(voter) for voter in voter_ids(voters)) + "]"


@rule("E45", "Responses to Fetch have the epoch of their controller",
      source="KIP-595; KafkaRaftClient.buildFetchResponse", at_end=True, evidence=Evidence.TRACE,
      tables=("raft_event", "rpc"),
      breaks="101 has led epoch 1, is in epoch 2, and responds to a Fetch with epoch 1.",
      keeps="101 has led epoch 1, is in epoch 2, and responds to a Fetch with epoch "
      "2.")  # fmt: skip
def responses_have_the_epoch_of_their_node(exchange: Exchange, own_epoch: int) -> Findings:
    """A controller that has led responds to no Fetch with an epoch below its own, also where the
    Fetch has waited meanwhile."""
    epoch = None
    for topic in each(exchange.response, "responses")[:1]:
        for partition in each(topic, "partitions")[:1]:
            epoch = (partition.get("currentLeader") or {}).get("leaderEpoch")
    if epoch is None:
        return
    yield CASE
    if epoch < own_epoch:
        yield broken(
            f"node {exchange.receiver} responded to a Fetch with an epoch below its own, "
            f"{own_epoch}",
            broker=exchange.receiver,
        )
