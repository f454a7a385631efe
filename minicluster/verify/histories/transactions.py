"""Transactional producers: what coordinators decide, what the logs hold, what consumers see.

========================  ========================================================================
takes                     ``log_batch`` rows, the batches of producers in the logs at the end of the
                          run, of which those of each partition's last leader count;
                          ``transaction_decision`` rows; ``client_record`` rows; ``replica_log``
                          rows for what was written in transactions
keeps, by partition and   the epochs along the log, the marker that ends each transaction
producer id
keeps, by producer epoch  the decisions of the coordinator, the markers in the log
keeps, by sequence        the offsets at which a record was seen
number
yields                    ``ProducerBatch``, ``TransactionalRead``, ``TransactionDecision``,
                          ``NumberedRead``, ``TransformedRecord``, ``PassedRecord``
========================  ========================================================================

All of it is judged afterwards: the marker that ends a transaction comes last. The cluster's own
members that transform name, in each value that they write, the place of the record that it is of;
other clients may write what they like.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from minicluster.values import dataclass
from minicluster.verify.group.coordinator_losses import group_losses
from minicluster.verify.group.driver import offsets_of_groups
from minicluster.verify.histories.clients import (
    Received,
    last_leaders,
    received,
    returned,
)
from minicluster.verify.histories.traced_run import Row, TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.partition.driver import losses
from minicluster.verify.partition.event import Place
from minicluster.verify.partition.topic_names import topic_names
from minicluster.verify.partition.truth import ALWAYS_LOST

COMMIT, ABORT = "commit", "abort"
OFFSETS = "__consumer_offsets"
READ_COMMITTED = 1  # isolation


# --- batches along the logs -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerBatch:
    """A batch of a producer in the log of the last leader.

    Shapes:  marker: commit abort; None: data. ended_by: the marker that ends the transaction which
             is open there; None: it is still open. excuse: why nothing is promised of the
             partition.
    Units:   epoch_before: the highest of the producer along the log up to there.
    """

    row: Row
    leader: int
    base_offset: int
    epoch: int | None
    epoch_before: int | None
    marker: str | None
    ended_by: str | None
    excuse: str | None

    @property
    def place(self) -> Place:
        """The partition."""
        return self.row["topic_id"], self.row["part"]


def producer_batches(run: TracedRun) -> list[ProducerBatch]:
    """Context: the batches of producers in the logs of the last leaders."""
    leaders, lost = run.context(last_leaders), run.context(losses)
    by_producer: dict[Any, list[Row]] = defaultdict(list)
    for row in run.rows("log_batch"):
        leader = leaders.get((row["topic_id"], row["part"]))
        if leader is not None and leader.election.broker == row["broker"]:
            by_producer[row["topic_id"], row["part"], row["producer_id"]].append(row)
    batches = []
    for (topic_id, part, _), rows in by_producer.items():
        rows.sort(key=lambda row: row["base_offset"])
        loss = lost.get((topic_id, part))
        before: int | None = None
        for row, ended_by in zip(rows, _ended_by(rows), strict=True):
            epoch = row["producer_epoch"]
            batches.append(
                ProducerBatch(
                    row=row,
                    leader=row["broker"],
                    base_offset=row["base_offset"],
                    epoch=epoch,
                    epoch_before=before,
                    marker=row["marker"],
                    ended_by=ended_by,
                    excuse=None if loss is None else loss.why,
                )
            )
            if epoch is not None:
                before = epoch if before is None else max(before, epoch)
    return batches


def _ended_by(rows: list[Row]) -> list[str | None]:
    """The next marker behind each batch."""
    ended_by: list[str | None] = []
    marker: str | None = None
    for row in reversed(rows):
        ended_by.append(marker)
        marker = marker if row["marker"] is None else row["marker"]
    ended_by.reverse()
    return ended_by


@history(ProducerBatch, reads=("log_batch", "partition_event"))
def batches_of_producers(run: TracedRun, judge: Judge) -> None:
    """Each batch of a producer, beside those before it and the marker behind it."""
    for batch in run.context(producer_batches):
        judge.take(batch, -1, batch.row["topic"], batch.row["part"], batch.row["seq"])


# --- what consumers with read_committed get -------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalRead:
    """A record that a consumer with read_committed got, of a transaction or excused.

    Shapes:  visible: the response calls its transaction not aborted. ended_by: as in
             ``ProducerBatch``.
    """

    broker: int
    offset: int
    visible: bool | None
    ended_by: str | None
    excuse: str | None


@history(TransactionalRead, reads=("client_record", "log_batch", "partition_event"))
def transactional_reads(run: TracedRun, judge: Judge) -> None:
    """Each record that a consumer with read_committed got, beside the end of its transaction."""
    transactional = {
        (*batch.place, batch.base_offset): batch
        for batch in run.context(producer_batches)
        if batch.row["transactional"] and batch.marker is None
    }
    for response in run.context(received):
        row = response.row
        if row["f"] != "read" or row["isolation"] != READ_COMMITTED:
            continue
        batch = transactional.get((*response.place, row["batch_offset"]))
        if batch is None and response.excuse is None:
            continue
        if batch is not None and batch.excuse is not None and response.excuse is None:
            continue  # what became of the transaction is not known
        step = TransactionalRead(
            broker=row["broker"],
            offset=row["offset"],
            visible=row["visible"],
            ended_by=None if batch is None else batch.ended_by,
            excuse=response.excuse,
        )
        judge.take(step, -1, response.topic or "", row["part"], row["seq"])


# --- decisions of coordinators --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDecision:
    """A decision of a coordinator for a partition with records of the producer.

    Shapes:  commits: else it aborts. decided_commit, decided_abort: the coordinator decided so at
             some time for the producer's epoch. is_due: its marker must be in the log.
    Units:   commit_markers, abort_markers: of that epoch in the log.
    """

    broker: int
    producer_id: int
    state: str
    is_due: bool
    decided_commit: bool
    decided_abort: bool
    commit_markers: int
    abort_markers: int


@dataclass(slots=True)
class _Decision:
    broker: int
    completed: bool


@history(TransactionDecision, reads=("log_batch", "partition_event", "transaction_decision"))
def transaction_decisions(run: TracedRun, judge: Judge) -> None:
    """Each decision for a partition, beside the markers of that producer and epoch in its log.

    Decisions have the names of topics: any marker in a log has one by that name. Where a name had
    several topics, the marker of a decision up to the first epoch in the log may lie in one that is
    gone, so none is due: from KIP-890 on, the epoch of a decision is above that of its records.
    """
    names = run.context(topic_names)
    first_epochs: dict[tuple[str, int, int], int] = {}
    markers: Counter[tuple[str, int, int, int, str]] = Counter()
    for batch in run.context(producer_batches):
        if batch.excuse is not None:
            continue
        producer = batch.row["topic"], batch.row["part"], batch.row["producer_id"]
        if batch.marker is not None:
            markers[(*producer, batch.epoch or 0, batch.marker)] += 1
        elif batch.epoch is not None:
            first_epochs[producer] = min(batch.epoch, first_epochs.get(producer, batch.epoch))
    decisions: dict[Any, _Decision] = {}
    for row in run.rows("transaction_decision"):
        producer = row["topic"], row["part"], row["producer_id"]
        if producer not in first_epochs:
            continue
        key = *producer, row["producer_epoch"], row["state"]
        known = decisions.setdefault(key, _Decision(row["broker"], False))
        known.broker = min(known.broker, row["broker"])
        known.completed |= bool(row["completed"])
    for (topic, part, producer_id, epoch, state), decision in decisions.items():
        of_epoch = topic, part, producer_id, epoch
        is_shared = len(names.ids_of(topic)) > 1
        first = first_epochs[topic, part, producer_id] if is_shared else None
        step = TransactionDecision(
            broker=decision.broker,
            producer_id=producer_id,
            state=state,
            is_due=decision.completed and (first is None or epoch > first),
            decided_commit=(*of_epoch, "PrepareCommit") in decisions,
            decided_abort=(*of_epoch, "PrepareAbort") in decisions,
            commit_markers=markers[(*of_epoch, COMMIT)],
            abort_markers=markers[(*of_epoch, ABORT)],
        )
        judge.take(step, -1, topic, part)


# --- sequence numbers -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberedRead:
    """A record of a producer with an id that a client saw.

    Units:  lowest_offset, highest_offset: at which its sequence number was seen.
    """

    broker: int
    offset: int
    lowest_offset: int
    highest_offset: int


@history(NumberedRead, reads=("client_record", "partition_event"))
def numbered_reads(run: TracedRun, judge: Judge) -> None:
    """Each record of a producer with an id that a client saw, beside the same one elsewhere."""
    seen: dict[Any, list[Received]] = defaultdict(list)
    for read in run.context(returned):
        row = read.row
        if row["f"] != "read" or not row["visible"]:
            continue
        if _is_number(row["producer_id"]) and _is_number(row["sequence"]):
            record = row["producer_id"], row["producer_epoch"], row["sequence"]
            seen[(*read.place, *record)].append(read)
    for copies in seen.values():
        offsets = [read.row["offset"] for read in copies]
        lowest, highest = min(offsets), max(offsets)
        for read in copies:
            step = NumberedRead(
                broker=read.row["broker"],
                offset=read.row["offset"],
                lowest_offset=lowest,
                highest_offset=highest,
            )
            judge.take(step, -1, read.topic or "", read.row["part"], read.row["seq"])


def _is_number(value: int | None) -> bool:
    return value is not None and value >= 0


# --- members that transform -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformedRecord:
    """A record that a transforming group wrote in a committed transaction.

    Units:  copies: how often it wrote the same. sources: how many topics had a record at the place
            that the value names, one after the other under one name.
    """

    broker: int
    offset: int
    copies: int
    sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedRecord:
    """A record that a member of a transforming group read, below the offset that it committed."""

    broker: int
    offset: int
    is_written: bool


@history(
    TransformedRecord,
    PassedRecord,
    reads=("client_record", "group_event", "log_batch", "partition_event", "replica_log"),
)
def transforms(run: TracedRun, judge: Judge) -> None:
    """What groups that commit offsets in transactions read, and what they wrote of it."""
    producers: dict[int, set[str]] = defaultdict(set)  # producer id -> groups
    members: dict[str, set[str]] = defaultdict(set)  # client id -> groups
    misled, lost = _misled_groups(run), run.context(group_losses)
    for row in run.rows("client_record"):
        group = row["group_id"]
        if row["f"] != "pending" or row["connection"] is not None or group in misled:
            continue
        if not lost.has_lost(group, 0, ALWAYS_LOST):  # else it reads again what it has written
            producers[row["producer_id"]].add(group)
    groups = {group for several in producers.values() for group in several}
    if not groups:
        return
    for row in run.rows("client_record"):
        if row["f"] == "own" and row["connection"] is None and row["group_id"] in groups:
            members[row["client_id"]].add(row["group_id"])
    written = _judge_written(run, judge, producers)
    if not run.context(losses):  # what a partition has lost may have been written
        _judge_passed(run, judge, members, written)


def _misled_groups(run: TracedRun) -> set[str]:
    """The groups of which a client was told what no node said: they may write a record twice."""
    misled = {row["client_id"] for row in run.rows("client_record") if row["misled"]}
    return {
        row["group_id"]
        for row in (run.rows("client_record") if misled else ())
        if row["f"] in ("own", "pending") and row["client_id"] in misled
    }


def _judge_written(
    run: TracedRun, judge: Judge, producers: dict[int, set[str]]
) -> set[tuple[str, str | None]]:
    """What the groups wrote, by group and value."""
    leaders = run.context(last_leaders)
    copies: Counter[tuple[str, str, str | None]] = Counter()
    written: list[tuple[tuple[str, str, str | None], ProducerBatch]] = []
    for batch in run.context(producer_batches):
        if batch.excuse is not None or batch.ended_by != COMMIT or batch.marker is not None:
            continue
        record = leaders[batch.place].log.at(batch.base_offset)
        if record is None or batch.row["topic"] == OFFSETS:
            continue
        for group in producers.get(batch.row["producer_id"], ()):
            key = group, batch.row["topic_id"], record[1]
            copies[key] += 1
            written.append((key, batch))
    sources = _sources(run) if written else {}
    for key, batch in written:
        step = TransformedRecord(
            broker=batch.leader,
            offset=batch.base_offset,
            copies=copies[key],
            sources=len(sources.get(key[2], ())) or 1,
        )
        judge.take(step, -1, batch.row["topic"], batch.row["part"], batch.row["seq"])
    return {(group, value) for group, _, value in copies}


def _sources(run: TracedRun) -> dict[str | None, set[str]]:
    """The topics that had a record, by the value that a member writes for it."""
    names = run.context(topic_names)
    sources: dict[str | None, set[str]] = defaultdict(set)
    for row in run.rows("client_record"):
        topic_id = row["topic_id"]
        if row["f"] == "read" and topic_id is not None and row["value"] is not None:
            name = names.name_of(topic_id)
            if name is not None:
                sources[_transformed(name, row)].add(topic_id)
    return sources


def _transformed(topic: str | None, row: Row) -> str:
    """The value that a member writes for a record."""
    return f"{topic}-{row['part']}@{row['offset']} {row['value']}"


def _judge_passed(
    run: TracedRun,
    judge: Judge,
    members: dict[str, set[str]],
    written: set[tuple[str, str | None]],
) -> None:
    passed: dict[Any, int] = {}
    for name, place, sets in offsets_of_groups(run):
        shown = [
            known.offset for known in sets if known.shown is not None and known.offset is not None
        ]
        if shown:
            passed[(name, *place)] = max(shown)
    judged: set[Any] = set()
    for response in run.context(returned):
        row = response.row
        if row["f"] != "read" or not row["visible"]:
            continue
        for group in members.get(row["client_id"], ()):
            # The value counts: a record may be in the response twice only by an error of its own.
            record = group, *response.place, row["seq"], row["broker"], row["offset"], row["value"]
            if record in judged or row["offset"] >= passed.get((group, *response.place), -1):
                continue
            judged.add(record)
            step = PassedRecord(
                broker=row["broker"],
                offset=row["offset"],
                is_written=(group, _transformed(response.topic, row)) in written,
            )
            judge.take(step, -1, response.topic or "", row["part"], row["seq"])
