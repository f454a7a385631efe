"""Users' programs inside the simulation: what they were handed, commit, leave open, die of.

========================  ========================================================================
takes                     ``apps`` of ``run.json``; ``rpc`` rows of the programs' nodes;
                          ``client_record`` rows; what groups have set and own (``groups.py``); the
                          log of each partition's last leader, with the markers of transactions
keeps, by group and       the positions that its programs were told of, what they were handed, the
partition                 jumps over records, who held it from when to when
keeps, by producer epoch  its transaction, from its first request to the one that ends it
yields                    ``PassedByGroup``, ``ProgramCommit``, ``GroupLag``, ``OpenTransaction``,
                          ``EndOfProgram``, ``HeldAtOnce``
========================  ========================================================================

All of it is judged when the run is over. A program is known by its node, so that two consumers of
one program are one reader here: what a program fetches beside its groups counts as handed to them,
which accuses nobody wrongly. A record counts as handed once the response with it has arrived;
nothing shows whether it was processed.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import field
from itertools import combinations
from typing import Any

from minicluster.values import dataclass
from minicluster.verify.evidence.run_header import ProgramLife
from minicluster.verify.group.driver import offsets_of_groups
from minicluster.verify.histories.clients import (
    Received,
    acknowledged,
    last_leaders,
    received,
)
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import losses
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import topic_names
from minicluster.verify.transactions import COMMIT, producer_batches

GroupPlace = tuple[str, str, int]  # group, topic id, partition

LAG_MS = 30_000
"""How long a group may take for what it lags behind, beside its sessions and rebalances."""
ASKED_AFTER_MS = 5_000
"""How long after a record was acknowledged a fetch that does not have it accuses the cluster."""
MARKERS_MS = 30_000
"""How long the markers of a transaction may take after the response that it is ended."""
_TRANSACTION_TIMEOUT_MS = 60_000  # where no InitProducerId shows another
_READS = (
    "client_record", "group_event", "history", "log_batch", "partition_event", "raft_event",
    "replica_log", "rpc",
)  # fmt: skip
_OF_TRANSACTIONS = frozenset({"AddOffsetsToTxn", "AddPartitionsToTxn", "EndTxn", "InitProducerId"})


# --- who sent what --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Process:
    """A process of a program."""

    program: str
    number: int
    life: ProgramLife

    @property
    def text(self) -> str:
        """The program; of a later process with its number."""
        return self.program if self.number == 1 else f"{self.program} (process {self.number})"


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a program, and by whom; ``handled``: the event of its handling."""

    process: Process
    api: str
    handled: int | None


class ProgramRequests:
    """The requests of users' programs, each with the process that sent it."""

    def __init__(self, run: TracedRun) -> None:
        self._processes: dict[int, list[Process]] = {
            app.node: [Process(app.name, number, life) for number, life in enumerate(app.lives, 1)]
            for app in run.header.apps
        }
        self.processes = [one for several in self._processes.values() for one in several]
        self.by_id: dict[int, Asked] = {}
        self.last_error: dict[Process, str] = {}
        for row in self.rows(run):
            process = self.process_of(row)
            if process is None:
                continue
            self.by_id[row["id"]] = Asked(process, row["api"], row["handle_seq"])
            if row["error"] not in (None, "NONE") and row["answer"] is None:
                said = f"{row['api']} was answered {row['error']} by broker {row['dst']}"
                self.last_error[process] = said

    def rows(self, run: TracedRun) -> Iterator[Row]:
        """The rows of ``rpc`` that programs sent."""
        return (row for row in run.rows("rpc") if row["src"] in self._processes)

    def process_of(self, row: Row) -> Process | None:
        """The process that sent a request."""
        before = [
            process
            for process in self._processes.get(row["src"], ())
            if process.life.started_ms <= (row["sent_ms"] or 0)
        ]
        return before[-1] if before else None


def program_requests(run: TracedRun) -> ProgramRequests:
    """Context: the requests of users' programs."""
    return ProgramRequests(run)


def _body(row: Row, column: str) -> Mapping[str, Any]:
    """A request or response as its table has it: a text on disk, the value itself in memory."""
    value = row[column]
    read = json.loads(value) if isinstance(value, str) else value
    return read if isinstance(read, Mapping) else {}


# --- what programs were handed --------------------------------------------------------------------


@dataclass(slots=True)
class Reading:
    """What the programs of a group know of a partition, and what they were handed of it.

    Shapes:  handed: offsets. spans: of responses that arrived, where the fetch began and the offset
             of each record. lowest: where the lowest fetch began. sought, reset: ranges of offsets
             that a program passed by a seek of its own, and by a position that no offset of its
             group gave it.
    Units:   positions: (event, the highest position by then), rising.
    """

    handed: set[int] = field(default_factory=set)
    spans: list[tuple[int, int]] = field(default_factory=list)
    lowest: int | None = None
    sought: list[tuple[int, int]] = field(default_factory=list)
    reset: list[tuple[int, int]] = field(default_factory=list)
    positions: list[tuple[int, int]] = field(default_factory=list)

    def position_before(self, event: int) -> int | None:
        """The highest position that a program knew before an event; None: it knew none."""
        known = bisect_left(self.positions, (event, -1))
        return self.positions[known - 1][1] if known else None


@dataclass(slots=True)
class _Track:
    """One process in a partition: where its next fetch is due, and what its group gave it last."""

    due: int | None = None
    given: int | None = None  # the committed offset; None: since then it has fetched


class Readings:
    """What programs of groups read: ``by_group``; and the programs of each group."""

    def __init__(self, run: TracedRun) -> None:
        self._asked = run.context(program_requests)
        rows = [
            (response, asked)
            for response in run.context(received)
            if (asked := self._asked.by_id.get(response.row["rpc"])) is not None
        ]
        self.groups: dict[str, set[str]] = defaultdict(set)  # group -> programs
        for response, asked in rows:
            group = response.row["group_id"]
            if group is not None and response.row["f"] in ("own", "commit", "pending", "committed"):
                self.groups[group].add(asked.process.program)
        of_program: dict[str, list[str]] = defaultdict(list)
        for group, programs in sorted(self.groups.items()):
            for program in programs:
                of_program[program].append(group)
        self.rows = rows
        self.by_group: dict[GroupPlace, Reading] = defaultdict(Reading)
        self._known: dict[GroupPlace, list[tuple[int, int]]] = defaultdict(list)
        self._tracks: dict[tuple[Process, Place], _Track] = defaultdict(_Track)
        self._last_fetch: dict[tuple[str, Place], tuple[int, int]] = {}  # moment, offset
        for response, asked in sorted(rows, key=_as_sent):
            row = response.row
            groups = of_program.get(asked.process.program, ())
            mine = [(group, *response.place) for group in groups]
            if row["f"] == "fetch":
                self._fetch(response, asked.process, mine)
            elif row["f"] == "read" and row["received_seq"] is not None:
                self._read(response, asked.process, mine)
            elif row["f"] == "committed" and row["received_seq"] is not None:
                self._tracks[asked.process, response.place].given = row["offset"]
                self._knows(mine, row["received_seq"], row["offset"])
        self._ends_of_partitions(run, of_program)
        for key, known in self._known.items():
            highest = -1
            for event, position in sorted(known):
                if position > highest:
                    highest = position
                    self.by_group[key].positions.append((event, position))

    def asks_for(self, programs: tuple[str, ...], place: Place, offset: int, since_ms: int) -> bool:
        """One of some programs was answered a fetch at or before an offset since a moment."""
        last = (self._last_fetch.get((program, place), (-1, 0)) for program in programs)
        return any(at_ms >= since_ms and begins <= offset for at_ms, begins in last)

    def _knows(self, keys: list[GroupPlace], event: int, position: int | None) -> None:
        for key in keys:
            if position is not None and position >= 0:
                self._known[key].append((event, position))

    def _fetch(self, response: Received, process: Process, keys: list[GroupPlace]) -> None:
        begins, track = response.row["fetch_offset"], self._tracks[process, response.place]
        if begins is None:  # in a session of fetches, whose requests name what has changed alone
            return
        self._last_fetch[process.program, response.place] = response.row["vt"], begins
        self._knows(keys, response.row["send_seq"] or 0, begins)
        due = track.due if track.given is None else track.given
        for key in keys:
            reading = self.by_group[key]
            reading.lowest = begins if reading.lowest is None else min(reading.lowest, begins)
            if due == -1:
                reading.reset.append((0, begins))
            elif due is not None and begins > due:
                reading.sought.append((due, begins))
        track.due, track.given = begins, None

    def _read(self, response: Received, process: Process, keys: list[GroupPlace]) -> None:
        row, track = response.row, self._tracks[process, response.place]
        begins = row["offset"] if row["fetch_offset"] is None else row["fetch_offset"]
        if track.given is None:
            track.due = max(track.due or 0, row["offset"] + 1)
        self._knows(keys, row["received_seq"], row["offset"] + 1)
        for key in keys:
            reading = self.by_group[key]
            reading.handed.add(row["offset"])
            reading.spans.append((begins, row["offset"]))
            reading.lowest = begins if reading.lowest is None else min(reading.lowest, begins)

    def _ends_of_partitions(self, run: TracedRun, of_program: Mapping[str, list[str]]) -> None:
        """A program may commit an end that it asked for."""
        names = run.context(topic_names)
        for row in self._asked.rows(run):
            process = self._asked.process_of(row)
            if row["api"] != "ListOffsets" or process is None or row["resp_seq"] is None:
                continue
            for topic in _body(row, "response").get("topics", ()):
                for part in topic.get("partitions", ()):
                    for topic_id in names.ids_of(topic["name"]):
                        keys = [
                            (group, topic_id, part["partitionIndex"])
                            for group in of_program.get(process.program, ())
                        ]
                        self._knows(keys, row["resp_seq"], part.get("offset"))


def _as_sent(of_program: tuple[Received, Asked]) -> tuple[int, int, int]:
    """Fetches as they were sent; what a response gave when it arrived."""
    row = of_program[0].row
    at = row["send_seq"] if row["f"] == "fetch" else row["received_seq"]
    return -1 if at is None else at, row["seq"], -1 if row["offset"] is None else row["offset"]


def readings(run: TracedRun) -> Readings:
    """Context: what programs of groups read."""
    return Readings(run)


# --- P1: records that a group passed --------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedByGroup:
    """An acknowledged record that lies before the offset that a group committed last.

    Shapes:  handed: to a program of the group. sought: a program passed it by a seek of its own.
             left_out: a response to a program had records before and behind it. is_reset: a program
             began behind it without an offset of its group. given: the coordinator gave a program a
             higher offset than the group had ever set. by: the program that committed beyond it.
    """

    offset: int
    group: str
    handed: bool
    sought: bool
    left_out: bool
    is_reset: bool
    given: int | None
    by: str
    excuse: str | None


@history(PassedByGroup, reads=_READS)
def records_passed_by_groups(run: TracedRun, judge: Judge) -> None:
    """Each acknowledged record before a group's offset, beside what its programs were handed."""
    if not run.header.apps:
        return
    known, leaders = run.context(readings), run.context(last_leaders)
    passed: dict[Place, list[tuple[str, int, Reading]]] = defaultdict(list)
    for group, place, sets in offsets_of_groups(run):
        if group not in known.groups or (group, *place) not in known.by_group:
            continue
        shown = [one.offset for one in sets if one.shown is not None]
        if shown and shown[-1] is not None:
            passed[place].append((group, shown[-1], known.by_group[group, *place]))
    who, given = _who_passed(known), _given_too_much(run, known)
    in_transactions = _not_committed(run)
    for place, record in acknowledged(run) if passed else ():
        leader = leaders.get(place)
        if leader is None or leader.log.at(record.offset) is None:
            continue  # it is gone, which is F1's
        if in_transactions.covers(place, record.offset):
            continue
        for group, end, reading in passed.get(place, ()):
            if record.offset >= end or reading.lowest is None or record.offset < reading.lowest:
                continue
            offset, handed = record.offset, record.offset in reading.handed
            step = PassedByGroup(
                offset=offset,
                group=group,
                handed=handed,
                sought=not handed and _is_in(reading.sought, offset),
                left_out=not handed
                and any(first <= offset <= last for first, last in reading.spans),
                is_reset=not handed and _is_in(reading.reset, offset),
                given=given.get((group, *place)),
                by=next((one for at, one in who[group, *place] if at > offset), "a program"),
                excuse=record.excuse,
            )
            judge.take(step, -1, record.topic, record.part, record.seq)


def _is_in(ranges: list[tuple[int, int]], offset: int) -> bool:
    return any(first <= offset < end for first, end in ranges)


def _who_passed(known: Readings) -> dict[GroupPlace, list[tuple[int, str]]]:
    """The commits of each partition in their order, with who made them."""
    who: dict[GroupPlace, list[tuple[int, str]]] = defaultdict(list)
    for response, asked in known.rows:
        row = response.row
        if row["f"] in ("commit", "pending") and row["offset"] is not None:
            who[row["group_id"], *response.place].append((row["offset"], asked.process.text))
    return who


def _given_too_much(run: TracedRun, known: Readings) -> dict[GroupPlace, int]:
    """Where a coordinator has given a program a higher offset than any that was sent before."""
    sent: dict[GroupPlace, list[tuple[int, int]]] = defaultdict(list)
    names = run.context(topic_names)
    for row in run.rows("rpc"):  # also of others, and those whose response never left
        if row["api"] not in ("OffsetCommit", "TxnOffsetCommit"):
            continue
        request = _body(row, "request")
        for topic in request.get("topics", ()):
            ids = [topic["topicId"]] if "topicId" in topic else names.ids_of(topic.get("name"))
            for part in topic.get("partitions", ()):
                for topic_id in ids:
                    key = request.get("groupId", ""), topic_id, part["partitionIndex"]
                    sent[key].append((row["send_seq"], part["committedOffset"]))
    given: dict[GroupPlace, int] = {}
    for response, _ in known.rows:
        row = response.row
        if row["f"] != "committed" or row["misled"]:
            continue
        key = row["group_id"], *response.place
        before = [value for at, value in sent.get(key, ()) if at < row["seq"]]
        if before and row["offset"] > max(before):
            given[key] = row["offset"]
    return given


class _NotCommitted:
    """The batches of transactions that were not committed."""

    def __init__(self, run: TracedRun) -> None:
        self._batches: dict[Place, list[tuple[int, int]]] = defaultdict(list)
        for batch in producer_batches(run):
            if batch.transactional and batch.marker is None and batch.ended_by != COMMIT:
                until = batch.base_offset if batch.last_offset is None else batch.last_offset
                self._batches[batch.place].append((batch.base_offset, until))
        for batches in self._batches.values():
            batches.sort()

    def covers(self, place: Place, offset: int) -> bool:
        batches = self._batches.get(place, ())
        at = bisect_right(batches, (offset, 2**63))
        return at > 0 and batches[at - 1][1] >= offset


def _not_committed(run: TracedRun) -> _NotCommitted:
    return _NotCommitted(run)


# --- P2: commits ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCommit:
    """An offset that a program has committed, or in a transaction would commit.

    Units:   known: the highest position that a program of the group knew when it was sent; None:
             none has asked for the partition. records: of the last leader's log between both.
             log_end: of that log.
    """

    by: str
    group: str
    offset: int
    known: int | None
    records: int
    log_end: int | None
    misled: bool
    excuse: str | None


@history(ProgramCommit, reads=_READS)
def commits_of_programs(run: TracedRun, judge: Judge) -> None:
    """Each commit of a program, beside what the programs of its group had been handed by then."""
    if not run.header.apps:
        return
    known, leaders, lost = run.context(readings), run.context(last_leaders), run.context(losses)
    for response, asked in known.rows:
        row = response.row
        if row["f"] not in ("commit", "pending") or row["send_seq"] is None:
            continue
        leader, loss = leaders.get(response.place), lost.get(response.place)
        if leader is None:
            continue
        at = known.by_group[row["group_id"], *response.place].position_before(row["send_seq"])
        step = ProgramCommit(
            by=asked.process.text,
            group=row["group_id"],
            offset=row["offset"],
            known=at,
            records=0 if at is None else max(0, leader.log.between(at, row["offset"] - 1)),
            log_end=leader.log_end,
            misled=bool(row["misled"]),
            excuse=None if loss is None else loss.why,
        )
        judge.take(step, -1, response.topic or "", row["part"], row["seq"])


# --- P3: lag --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLag:
    """A group at the end of a run, in a partition of which it has committed offsets.

    Shapes:  unjudged: why nothing can be said. programs: those of the group that run.
             handed: the first record that it lags behind was handed to a program after the calm
             began; asked: a program asked for records there.
    Units:   records: acknowledged, and still not passed when the bound was over. still_ms: for how
             long the offset has stood still by then, in the calm.
    """

    group: str
    offset: int
    records: int
    still_ms: int
    bound_ms: int
    programs: tuple[str, ...]
    handed: bool
    asked: bool
    unjudged: str | None = None


@history(GroupLag, reads=_READS)
def lags_of_groups(run: TracedRun, judge: Judge) -> None:
    """Each partition of a group of programs: what it has not passed, and for how long."""
    if not run.header.apps:
        return
    known, asked = run.context(readings), run.context(program_requests)
    healed_ms, ended_ms = run.header.healed_ms, run.header.ended_at_ms
    sessions = _sessions(run)
    in_transactions = _not_committed(run)
    records: dict[Place, list[tuple[int, int]]] = defaultdict(list)  # offset, when acknowledged
    times = _Moments(run)
    for place, record in acknowledged(run):
        if record.excuse is None and not in_transactions.covers(place, record.offset):
            records[place].append((record.offset, times.of(record.seq)))
    names = run.context(topic_names)
    for group, place, sets in offsets_of_groups(run):
        if group is None or group not in known.groups or not sets:
            continue
        last = sets[-1]
        if last.offset is None or last.offset < 0:
            continue
        living = tuple(
            sorted(
                process.program
                for process in asked.processes
                if process.program in known.groups[group] and process.life.lasts
            )
        )
        bound_ms = LAG_MS + sessions.get(group, 0)
        unjudged = None
        if healed_ms is None or ended_ms is None:
            unjudged = "a disturbance lasts"
        elif not living:
            unjudged = "no program of the group runs at the end"
        elif ended_ms - healed_ms < bound_ms:
            unjudged = "the run ends before the bound is over"
        if unjudged is not None or healed_ms is None or ended_ms is None:
            step = GroupLag(
                group=group, offset=last.offset, records=0, still_ms=0, bound_ms=bound_ms,
                programs=living, handed=False, asked=False, unjudged=unjudged,
            )  # fmt: skip
        else:
            since_ms = max(healed_ms, times.of(last.seq))
            left = [
                (offset, at_ms)
                for offset, at_ms in records.get(place, ())
                if offset >= last.offset and at_ms <= ended_ms - bound_ms
            ]
            since_ms = max(since_ms, min((at_ms for _, at_ms in left), default=ended_ms))
            reading = known.by_group.get((group, *place), Reading())
            step = GroupLag(
                group=group,
                offset=last.offset,
                records=len(left),
                still_ms=ended_ms - since_ms,
                bound_ms=bound_ms,
                programs=living,
                handed=any(offset in reading.handed for offset, _ in left),
                asked=bool(left)
                and known.asks_for(living, place, left[0][0], since_ms + ASKED_AFTER_MS),
            )
        judge.take(step, -1, names.name_of(place[0]) or "", place[1])


class _Moments:
    """When events of clients' responses were, in virtual time."""

    def __init__(self, run: TracedRun) -> None:
        self._moments = sorted(
            {(row["seq"], row["vt"]) for row in run.rows("client_record")}
            | {
                (row["complete_seq"], row["vt"])
                for row in run.rows("history")
                if row["complete_seq"] is not None
            }
        )

    def of(self, seq: int) -> int:
        """The moment of an event, or of the last one before it."""
        at = bisect_right(self._moments, (seq, 2**63))
        return self._moments[at - 1][1] if at else 0


def _sessions(run: TracedRun) -> dict[str, int]:
    """The longest session and rebalance that a member of each group has asked for, together."""
    longest: dict[str, int] = {}
    for row in run.context(program_requests).rows(run):
        if row["api"] in ("JoinGroup", "ConsumerGroupHeartbeat"):
            request = _body(row, "request")
            # The new protocol's session is the broker's: 45 s, unless a config says otherwise.
            session_ms = request.get("sessionTimeoutMs", 45_000)
            rebalance_ms = max(request.get("rebalanceTimeoutMs", 0), 0)
            group = request.get("groupId", "")
            longest[group] = max(longest.get(group, 0), session_ms + rebalance_ms)
    return longest


# --- P4: transactions -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction of a program: it was ended, or not.

    Shapes:  ended: by a request of the program, or by the next producer of its transactional id.
             how: as the process has ended; None: it runs. unmarked: it was ended, and the log of a
             partition has no marker of it long after.
    Units:   open_ms: for how long it was open when the run ended, in the calm.
    """

    by: str
    transactional_id: str
    ended: bool
    how: str | None
    open_ms: int
    timeout_ms: int
    unmarked: bool
    unjudged: str | None


@dataclass(slots=True)
class _Begun:
    process: Process
    transactional_id: str
    at_ms: int
    timeout_ms: int
    ended_ms: int | None = None
    accepted: bool = False


@history(OpenTransaction, reads=_READS)
def transactions_of_programs(run: TracedRun, judge: Judge) -> None:
    """Each transaction that a program has begun, and whether it has ended it."""
    if not run.header.apps:
        return
    healed_ms, ended_ms = run.header.healed_ms, run.header.ended_at_ms or 0
    unended = {
        (batch.producer_id, batch.epoch)
        for batch in producer_batches(run)
        if batch.transactional and batch.marker is None and batch.ended_by is None
        and batch.excuse is None
    }  # fmt: skip
    latest: dict[tuple[int, int], _Begun] = {}
    every = _transactions(run, latest)
    for begun in every:
        life = begun.process.life
        calm_ms = 0 if healed_ms is None else ended_ms - max(healed_ms, begun.at_ms)
        unjudged = None
        if begun.ended_ms is None:
            if life.ended not in (None, "ended", "cancelled", "stopped"):
                unjudged = "its program was killed or has failed"
            elif life.paused or healed_ms is None:
                unjudged = "a disturbance lasts"
        producer = next((key for key, one in latest.items() if one is begun), None)
        marked_by_ms = max(begun.ended_ms or 0, healed_ms or 0) + MARKERS_MS
        step = OpenTransaction(
            by=begun.process.text,
            transactional_id=begun.transactional_id,
            ended=begun.ended_ms is not None,
            how=None if life.ended in (None, "stopped") else life.ended,
            open_ms=max(calm_ms, 0),
            timeout_ms=begun.timeout_ms,
            unmarked=begun.accepted and producer in unended and healed_ms is not None
            and ended_ms > marked_by_ms,
            unjudged=unjudged,
        )  # fmt: skip
        judge.take(step)


def _transactions(run: TracedRun, latest: dict[tuple[int, int], _Begun]) -> list[_Begun]:
    """The transactions of programs in their order; the latest of each producer and epoch."""
    asked = run.context(program_requests)
    every: list[_Begun] = []
    timeouts: dict[str, int] = {}
    for row in asked.rows(run):
        process, api = asked.process_of(row), row["api"]
        if api not in _OF_TRANSACTIONS or process is None:
            continue
        request = _body(row, "request")
        name = request.get("transactionalId") or request.get("v3AndBelowTransactionalId")
        if not name:
            continue
        if api == "InitProducerId":
            timeouts[name] = request.get("transactionTimeoutMs", _TRANSACTION_TIMEOUT_MS)
            for begun in every:
                if begun.transactional_id == name and begun.ended_ms is None:
                    begun.ended_ms = row["sent_ms"]
            continue
        producer = (
            request.get("producerId", request.get("v3AndBelowProducerId")),
            request.get("producerEpoch", request.get("v3AndBelowProducerEpoch")),
        )
        known = latest.get(producer)
        if api == "EndTxn":
            if known is not None:
                known.ended_ms = row["sent_ms"]
                known.accepted = row["error"] == "NONE"
        elif (known is None or known.ended_ms is not None) and _is_accepted(row):
            begun = _Begun(
                process, name, row["sent_ms"], timeouts.get(name, _TRANSACTION_TIMEOUT_MS)
            )
            latest[producer] = begun
            every.append(begun)
    return every


def _is_accepted(row: Row) -> bool:
    """The coordinator has taken partitions or offsets into the transaction."""
    if row["resp_seq"] is None or row["answer"] is not None or row["error"] != "NONE":
        return False
    topics = _body(row, "response").get("resultsByTopicV3AndBelow")
    if topics is None:
        return True
    codes = [part["partitionErrorCode"] for topic in topics for part in topic["resultsByPartition"]]
    return 0 in codes


# --- P5: programs that died -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOfProgram:
    """A process of a program has ended, or runs.

    Shapes:  restarted: another process of the program was started since. said: the last response
             with an error that it got.
    """

    program: str
    life: ProgramLife
    restarted: bool
    said: str | None


@history(EndOfProgram, reads=("rpc",))
def ends_of_programs(run: TracedRun, judge: Judge) -> None:
    """Each process of each program."""
    if not run.header.apps:
        return
    asked = run.context(program_requests)
    for process in asked.processes:
        lives = [one for one in asked.processes if one.program == process.program]
        step = EndOfProgram(
            program=process.text,
            life=process.life,
            restarted=process is not lives[-1],
            said=asked.last_error.get(process),
        )
        judge.take(step)


# --- P6: records handed to two at once ------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldAtOnce:
    """Two members of a group that were handed records of a partition, or two programs that commit
    its offset without being members.

    Shapes:  by_cluster: both were assigned it by the coordinator.
    Units:   records: that both were handed while both held it.
    """

    group: str
    one: str
    other: str
    records: int
    by_cluster: bool


@dataclass(slots=True)
class _Held:
    """A partition of a member in a generation, or of a program that commits without one (-1).

    Units:   begun: the event from which it is held; until: the last event that shows it.
    """

    process: Process
    member: str
    generation: int
    broker: int
    begun: int
    until: int


@history(HeldAtOnce, reads=_READS)
def held_at_once(run: TracedRun, judge: Judge) -> None:
    """Each pair of holders of a partition in a group, and the records that both were handed."""
    if not run.header.apps:
        return
    known, names = run.context(readings), run.context(topic_names)
    when = _when_handed(known)
    for (group, topic_id, part), held in sorted(_holders(run, known).items(), key=str):
        for one, other in combinations(sorted(held, key=lambda each: each.begun), 2):
            if (one.process, one.member) == (other.process, other.member):
                continue
            by_cluster = one.generation >= 0
            if by_cluster != (other.generation >= 0):
                continue  # a coordinator with members takes no other commits
            begun, until = other.begun, min(one.until, other.until)
            if by_cluster:
                # Another broker may believe that it still coordinates the group: its heartbeats
                # show nothing, and it can commit nothing.
                until = one.until if one.broker == other.broker else -1
            first, second = sorted((one.process.text, other.process.text))
            step = HeldAtOnce(
                group=group,
                one=first,
                other=second,
                records=_both(when.get((topic_id, part), {}), one, other, begun, until),
                by_cluster=by_cluster,
            )
            judge.take(step, -1, names.name_of(topic_id) or "", part)


def _both(
    handed: Mapping[int, list[tuple[Process, int]]],
    one: _Held,
    other: _Held,
    begun: int,
    until: int,
) -> int:
    """How many records both were handed, the later of the two while both held the partition."""
    if begun >= until or one.process == other.process:
        return 0
    count = 0
    for times in handed.values():
        ones = [at for process, at in times if process == one.process and at >= one.begun]
        others = [at for process, at in times if process == other.process and at >= other.begun]
        if ones and others and begun < max(min(ones), min(others)) <= until:
            count += 1
    return count


def _when_handed(known: Readings) -> dict[Place, dict[int, list[tuple[Process, int]]]]:
    """The records of each partition, with whom they were handed to and when."""
    when: dict[Place, dict[int, list[tuple[Process, int]]]] = defaultdict(lambda: defaultdict(list))
    for response, asked in known.rows:
        row = response.row
        if row["f"] == "read" and row["visible"] and row["received_seq"] is not None:
            when[response.place][row["offset"]].append((asked.process, row["received_seq"]))
    return when


def _holders(run: TracedRun, known: Readings) -> dict[GroupPlace, list[_Held]]:
    """Who held a partition in a group: members of the classic protocol, and committers."""
    asked = run.context(program_requests)
    # Until when a coordinator has taken a member for one of a generation.
    until: dict[tuple[str, str, int, int], int] = {}
    for row in asked.rows(run):
        if row["api"] in ("Heartbeat", "OffsetCommit") and row["error"] == "NONE":
            request = _body(row, "request")
            number = request.get("generationId", request.get("generationIdOrMemberEpoch", -1))
            if row["api"] == "OffsetCommit" and not _has_committed(row):
                continue
            of_member = request.get("groupId", ""), request.get("memberId", ""), number, row["dst"]
            until[of_member] = max(row["handle_seq"] or -1, until.get(of_member, -1))
    holders: dict[GroupPlace, list[_Held]] = defaultdict(list)
    without: dict[tuple[GroupPlace, Process], _Held] = {}
    for response, one in known.rows:
        row = response.row
        key = row["group_id"], *response.place
        if row["misled"]:
            continue
        if row["f"] == "own" and one.api == "SyncGroup" and row["received_seq"] is not None:
            member, number = row["member_id"] or "", row["generation"]
            last = until.get((row["group_id"], member, number, row["broker"]), -1)
            holders[key].append(
                _Held(one.process, member, number, row["broker"], row["resp_seq"], last)
            )
        elif row["f"] == "commit" and row["generation"] == -1 and one.handled is not None:
            held = without.get((key, one.process))
            if held is None:
                held = _Held(one.process, "", -1, row["broker"], one.handled, one.handled)
                without[key, one.process] = held
                holders[key].append(held)
            held.until = one.handled
    return holders


def _has_committed(row: Row) -> bool:
    topics = _body(row, "response").get("topics", ())
    return any(part.get("errorCode") == 0 for topic in topics for part in topic["partitions"])
