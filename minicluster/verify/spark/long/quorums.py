"""Long plain logs of several controllers: compared side by side, then judged as one log.

A worker reads the logs of all controllers at once, a piece of a segment of each at a time. It
judges what is about the logs themselves (E01, E02, E03, E05, E09), and finds the log of which a
majority of the voters holds the most. That log, up to there, is judged by shares of its partitions
(``logs``). Logs that are damaged, or whose offsets do not ascend, are left to be held and judged
whole (``evidence.reading``).
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.lazy_dataclass import dataclass
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import parse_checkpoint_name
from minicluster.log.control import control_records
from minicluster.log.directory import MetadataFiles
from minicluster.log.errors import LogError
from minicluster.log.format.limits import ReadLimits
from minicluster.log.segment import PlacedBatch, check_contents
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import LeaderChangeMessage, VotersRecord
from minicluster.verify.evidence.committed_log import batch_key
from minicluster.verify.evidence.file_systems import at_hand
from minicluster.verify.online.batch_rules import BatchRules
from minicluster.verify.online.findings import Findings
from minicluster.verify.rules.promises import promises_of
from minicluster.verify.spark.fold_job import Task, in_workers
from minicluster.verify.spark.long.logs import OF_QUORUM, Compared, LongLog, log_batches, moved
from minicluster.verify.spark.progress import Meter, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_OFFSET_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LongQuorum:
    """The logs of several controllers; origin: the URI of which the path is a copy."""

    path: Path
    name: str
    logs: tuple[MetadataFiles, ...]
    origin: str | None = None


def compare_quorums(
    spark: SparkSession, quorums: Sequence[LongQuorum], task: Task
) -> list[LongLog | None]:
    """The committed log of each quorum; None for one whose logs have to be held."""
    if not quorums:
        return []
    watch = Watch("comparing the logs of controllers", task.on_progress, len(quorums))
    with watch.over(spark):
        items = [
            pickle.dumps((quorum, task.limits, watch.meter_file(place)))
            for place, quorum in enumerate(quorums)
        ]
        done = in_workers(spark, compare_logs, items)
    return [
        _committed(quorum, pickle.loads(one)) for quorum, one in zip(quorums, done, strict=True)
    ]


def _committed(quorum: LongQuorum, found: tuple[int, Compared] | None) -> LongLog | None:
    if found is None:
        return None
    place, compared = found
    files = quorum.logs[place]
    start = None
    if compared.first > 0:
        snapshots = sorted(one for log in quorum.logs for one in _snapshots(log))
        usable = [one for one in snapshots if compared.first <= one[0] <= compared.end]
        if not usable:
            return None
        start = usable[0]
    others = tuple(log for log in quorum.logs if log is not files)
    return LongLog(quorum.path, quorum.name, files, start, quorum.origin, others, compared)


def _snapshots(files: MetadataFiles) -> list[tuple[int, int, Path]]:
    named = [(parse_checkpoint_name(file.name) or (0, 0), file) for file in files.checkpoints]
    return [(end, epoch, file) for (end, epoch), file in named if end > 0]


def compare_logs(item: bytes) -> bytes:
    """Compare the logs of a quorum in a worker.

    Shapes:  a ``LongQuorum``, limits, the file of its meter -> the place of the log that counts,
             and the results; None where the logs have to be held.
    """
    quorum, limits, meter_file = pickle.loads(item)
    try:
        with at_hand(quorum.path, quorum.origin) as path:
            logs = [moved(files, quorum.path, path) for files in quorum.logs]
            return pickle.dumps(_Comparison(quorum.name, logs, limits, Meter(meter_file)).result())
    except (LogError, ProtocolError, _NotAscending):
        return pickle.dumps(None)


class _NotAscending(Exception):
    """A log whose offsets do not ascend, or that is empty."""


class _Side:
    """One controller's log: the batch that comes next, and how far so many controllers hold it.

    Shapes:  held: by the number of controllers, the offset up to which at least so many hold this
             log, and its records up to there. beyond: likewise the records on any log from where
             this one begins that are not in it.
    """

    def __init__(
        self, files: MetadataFiles, count: int, limits: ReadLimits, meter: Meter, rules: Findings
    ) -> None:
        self.node = -1 if files.node_id is None else files.node_id
        self.torn: str | None = None
        self._batches = self._read(files, limits, meter)
        self.next: tuple[Path, PlacedBatch] | None = next(self._batches, None)
        if self.next is None:
            raise _NotAscending
        self.start = self.next[1].batch.base_offset
        ends = [end for end, _, _ in _snapshots(files)]
        self.begins_well = self.start == 0 or any(end >= self.start for end in ends)
        self.rules = BatchRules(rules, self.node, self.begins_well)
        self.holders = count  # the fewest so far
        self.end, self.records = self.start, 0
        self.held: dict[int, tuple[int, int]] = {}
        self.beyond = dict.fromkeys(range(1, count + 1), 0)

    def _read(
        self, files: MetadataFiles, limits: ReadLimits, meter: Meter
    ) -> Iterator[tuple[Path, PlacedBatch]]:
        last = -1

        def on_end(torn: str | None) -> None:
            self.torn = torn

        for path, placed in log_batches(files, limits, meter, on_end):
            if placed.batch.base_offset <= last or placed.batch.last_offset >= _OFFSET_MAX:
                raise _NotAscending
            last = placed.batch.last_offset
            yield path, placed

    def take(self, holders: int) -> None:
        """Go past the next batch, which so many controllers hold."""
        assert self.next is not None
        batch = self.next[1].batch
        self.rules.on_batch(batch)
        for number in range(holders + 1, self.holders + 1):
            self.held[number] = self.end, self.records
        self.holders = min(self.holders, holders)
        self.end, self.records = batch.next_offset, self.records + batch.count
        self.next = next(self._batches, None)

    def finish(self) -> None:
        """The log is over."""
        for number in range(1, self.holders + 1):
            self.held[number] = self.end, self.records


class _Comparison:
    """The logs of a quorum, read side by side."""

    def __init__(
        self, name: str, logs: Sequence[MetadataFiles], limits: ReadLimits, meter: Meter
    ) -> None:
        self._findings = Findings(name, promises_of(None))
        self._findings.looked_at.update(E05=0, E09=0)
        elected: dict[int, list[tuple[int, int]]] = {}
        self._sides = [_Side(log, len(logs), limits, meter, self._findings) for log in logs]
        for side in self._sides:
            side.rules.elected = elected  # the leaders that any log names
        self._voters: tuple[int, list[int]] = (-1, [side.node for side in self._sides])

    def result(self) -> tuple[int, Compared] | None:
        """Read all logs to their ends.

        Shapes:  -> the place of the log that counts, and the results; None where nothing is
                 committed.
        Errors:  LogError, ProtocolError for damage; _NotAscending.
        """
        for side in self._sides:
            if side.start > 0:
                self._findings.look("E09", 0, None)
                if not side.begins_well:
                    self._findings.find("E09", 0, offset=side.start, broker=side.node)
        while offsets := [s.next[1].batch.base_offset for s in self._sides if s.next is not None]:
            self._step(min(offsets))
        for side in self._sides:
            side.finish()
        needed = min(len(self._voters[1]) // 2 + 1, len(self._sides))
        holding = [side for side in self._sides if side.held[needed][1]]
        if not holding:
            return None
        end = max(side.held[needed][0] for side in holding)
        usable = [side for side in holding if side.held[needed][0] == end]
        best = min(usable, key=lambda side: (not side.begins_well, side.start))
        compared = Compared(
            first=best.start,
            end=end,
            records=best.held[needed][1],
            uncommitted=best.beyond[needed],
            logs=len(self._sides),
            looked_at={rule: self._findings.looked_at[rule] for rule in OF_QUORUM},
            findings=tuple(self._findings.take_new()),
            torn=tuple(side.torn for side in self._sides if side.torn is not None),
        )
        return self._sides.index(best), compared

    def _step(self, offset: int) -> None:
        """Take the batches that begin at an offset, the lowest that is left."""
        count = len(self._sides)
        present = [
            (side, *side.next)
            for side in self._sides
            if side.next is not None and side.next[1].batch.base_offset == offset
        ]
        later = sum(side.start > offset for side in self._sides)
        holders = Counter(batch_key(placed.batch) for _, _, placed in present)
        keys = {side.node: batch_key(placed.batch) for side, _, placed in present}
        records = {batch_key(placed.batch): placed.batch.count for _, _, placed in present}
        held_by_all = len(holders) == 1 and len(present) + later == count
        self._match(present)
        for side, path, placed in present:
            self._note_voters(placed.batch)
            if not held_by_all:  # else the shares of the log that counts decode it
                check_contents(path, placed)
            side.take(holders[keys[side.node]] + later)
        if held_by_all and all(side.holders == count for side, _, _ in present):
            return
        for side in self._sides:
            for number in side.beyond if side.start <= offset else ():
                own = keys.get(side.node) if side.holders >= number else None
                side.beyond[number] += sum(n for key, n in records.items() if key != own)

    def _match(self, present: Sequence[tuple[_Side, Path, PlacedBatch]]) -> None:
        """E05: the batches of one epoch and offset are the same."""
        if len(present) < 2:
            return
        by_epoch: dict[int, list[tuple[_Side, RecordBatch]]] = {}
        for side, _, placed in present:
            by_epoch.setdefault(placed.batch.leader_epoch, []).append((side, placed.batch))
        for epoch, copies in by_epoch.items():
            differs = len({batch.crc for _, batch in copies}) > 1
            for side, batch in copies if len(copies) > 1 else ():
                self._findings.look("E05", 0, None)
                if differs:
                    offset = batch.base_offset
                    self._findings.find("E05", 0, offset=offset, broker=side.node, number=epoch)

    def _note_voters(self, batch: RecordBatch) -> None:
        for control in control_records(batch):
            if isinstance(control.message, LeaderChangeMessage | VotersRecord):
                voters = [voter.voter_id for voter in control.message.voters]
                if voters and batch.base_offset > self._voters[0]:
                    self._voters = batch.base_offset, voters
