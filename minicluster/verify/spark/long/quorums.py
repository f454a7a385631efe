"""Long plain logs of several controllers: compared side by side, then judged as one log.

A worker reads the logs of all controllers at once, a piece of a segment of each at a time. It
judges what is about the logs themselves (E01, E02, E03, E05, E09), and finds the log of which a
majority of the voters holds the most. That log, up to there, is judged by shares of its partitions
(``logs``). A damaged log is left out, and the others are read again without it. Logs whose offsets
descend from one segment to the next are left to be held and judged whole (``evidence.reading``).
"""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.lazy_dataclass import dataclass
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import parse_checkpoint_name, read_checkpoint
from minicluster.log.control import control_records
from minicluster.log.directory import MetadataFiles
from minicluster.log.errors import LogError, NotALog
from minicluster.log.format.limits import ReadLimits
from minicluster.log.segment import PlacedBatch
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import LeaderChangeMessage, VotersRecord
from minicluster.verify.evidence.committed_log import batch_key
from minicluster.verify.evidence.file_systems import at_hand
from minicluster.verify.evidence.reading import check_batch
from minicluster.verify.online.batch_rules import BatchRules
from minicluster.verify.online.findings import Findings
from minicluster.verify.rules.promises import promises_of
from minicluster.verify.spark.fold_job import Task, in_workers
from minicluster.verify.spark.long.logs import (
    OF_QUORUM,
    Compared,
    LongLog,
    log_batches,
    moved,
    segment_pieces,
)
from minicluster.verify.spark.progress import Meter, Watch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class LongQuorum:
    """The logs of several controllers, or one that cannot be judged by shares as it is.

    Shapes:  origin: the URI of which the path is a copy. decodes_all: a share of them has found
             damage, so every record is decoded.
    """

    path: Path
    name: str
    logs: tuple[MetadataFiles, ...]
    origin: str | None = None
    decodes_all: bool = False


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


_Found = tuple[tuple[int, ...], bool, Compared]


def _committed(quorum: LongQuorum, found: _Found | None) -> LongLog | None:
    if found is None:
        return None
    places, is_foldable, compared = found
    logs = tuple(quorum.logs[place] for place in places)
    return LongLog(
        quorum.path,
        quorum.name,
        logs[0] if logs else quorum.logs[0],
        _start(logs, compared) if is_foldable else None,
        quorum.origin,
        logs[1:],
        compared,
        is_foldable,
    )


def _start(logs: Sequence[MetadataFiles], compared: Compared) -> tuple[int, int, Path] | None:
    """The snapshot from which the committed log is judged, as ``starting_snapshot`` has it."""
    every = sorted(one for log in logs for one in _snapshots(log))
    if not compared.records:
        return every[-1] if every else None
    usable = [one for one in every if compared.first <= one[0] <= compared.end]
    return usable[0] if compared.first and usable else None


def _snapshots(files: MetadataFiles) -> list[tuple[int, int, Path]]:
    named = [(parse_checkpoint_name(file.name) or (0, 0), file) for file in files.checkpoints]
    return [(end, epoch, file) for (end, epoch), file in named if end > 0 or not files.segments]


def compare_logs(item: bytes) -> bytes:
    """Compare the logs of a quorum in a worker.

    Shapes:  a ``LongQuorum``, limits, the file of its meter -> the places of the logs that can be
             read, that of the one that counts first, whether the committed log can be folded, and
             the results; None where the logs have to be held.
    """
    quorum, limits, meter_file = pickle.loads(item)
    try:
        with at_hand(quorum.path, quorum.origin) as path:
            logs = tuple(moved(files, quorum.path, path) for files in quorum.logs)
            here = replace(quorum, path=path, logs=logs)
            return pickle.dumps(_compared(here, limits, Meter(meter_file)))
    except _MustBeHeld:
        return pickle.dumps(None)


def _compared(quorum: LongQuorum, limits: ReadLimits, meter: Meter) -> _Found:
    """Compare the logs that can be read; each that cannot costs one more reading of the others.

    Errors:  _MustBeHeld.
    """
    damage: dict[int, LogError | ProtocolError] = {}
    while True:
        left = {place: one for place, one in enumerate(quorum.logs) if place not in damage}
        comparison = _Comparison(quorum.name, left, quorum.decodes_all)
        try:
            comparison.read(limits, meter)
        except _Damaged as found:
            error = _first_damage(quorum.logs[found.place], limits) or found.error
            if isinstance(error, NotALog) and len(quorum.logs) == 1:
                raise _MustBeHeld from error  # a mistake of the user's
            damage[found.place] = error
        else:
            break
    first, compared = comparison.result(damage)
    places = () if first is None else (first, *(place for place in left if place != first))
    logs = [quorum.logs[place] for place in places]
    is_foldable = bool(places)
    try:
        if (start := _start(logs, compared)) is not None:
            read_checkpoint(start[2], limits)
        elif compared.first:
            is_foldable = False
    except (LogError, ProtocolError) as error:
        is_foldable = False
        compared = replace(compared, damaged=(*compared.damaged, str(error)))
    return places, is_foldable, compared


def _first_damage(files: MetadataFiles, limits: ReadLimits) -> LogError | ProtocolError | None:
    """The damage that a reader finds first who reads the batches of a segment, then its records."""
    try:
        for segment in files.segments:
            deque(segment_pieces(files, segment, limits), maxlen=0)
            for _, content in segment_pieces(files, segment, limits):
                for placed in content.batches:
                    check_batch(segment, placed)
    except (LogError, ProtocolError) as error:
        return error
    return None


class _MustBeHeld(Exception):
    """A log whose offsets descend from one segment to the next, or one alone that is no log."""


class _Damaged(Exception):
    """A log that cannot be read."""

    def __init__(self, place: int, error: LogError | ProtocolError) -> None:
        super().__init__(place, error)
        self.place = place
        self.error = error


class _Side:
    """One controller's log: the batch that comes next, and how far so many controllers hold it.

    Shapes:  held: by the number of controllers, the offset up to which at least so many hold this
             log, and its records up to there. beyond: likewise the records on any log from where
             this one begins that are not in it.
    """

    def __init__(
        self, place: int, files: MetadataFiles, count: int, decodes_all: bool, rules: Findings
    ) -> None:
        self.place = place
        self.files = files
        self.node = -1 if files.node_id is None else files.node_id
        self.torn: str | None = None
        self.next: tuple[Path, PlacedBatch] | None = None
        self.start = self.end = self.records = 0
        self.begins_well = True
        self.rules = BatchRules(rules, self.node, True)
        self.holders = count  # the fewest so far
        self.held: dict[int, tuple[int, int]] = {}
        self.beyond = dict.fromkeys(range(1, count + 1), 0)
        self._decodes_all = decodes_all
        self._batches: Iterator[tuple[Path, PlacedBatch]] = iter(())

    def open(self, limits: ReadLimits, meter: Meter) -> None:
        """Read up to the first batch.

        Errors:  _Damaged, as every method that reads on.
        """
        self._batches = self._read(limits, meter)
        self.next = next(self._batches, None)
        if self.next is None:
            return
        self.start = self.end = self.next[1].batch.base_offset
        ends = [end for end, _, _ in _snapshots(self.files)]
        is_alone = self.files.path.is_file()
        self.begins_well = is_alone or self.start == 0 or any(end >= self.start for end in ends)
        self.rules.begins_well = self.begins_well

    def _read(self, limits: ReadLimits, meter: Meter) -> Iterator[tuple[Path, PlacedBatch]]:
        last = -1

        def on_end(torn: str | None) -> None:
            self.torn = torn

        try:
            for path, placed in log_batches(self.files, limits, meter, on_end):
                if placed.batch.base_offset <= last:
                    raise _MustBeHeld
                last = placed.batch.last_offset
                if self._decodes_all or placed.batch.is_control:
                    check_batch(path, placed)
                yield path, placed
        except (LogError, ProtocolError) as error:
            raise _Damaged(self.place, error) from error

    def decode(self) -> None:
        """Decode the records of the next batch."""
        assert self.next is not None
        try:
            check_batch(*self.next)
        except (LogError, ProtocolError) as error:
            raise _Damaged(self.place, error) from error

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

    def __init__(self, name: str, logs: Mapping[int, MetadataFiles], decodes_all: bool) -> None:
        self._findings = Findings(name, promises_of(None))
        self._findings.looked_at.update(E05=0, E09=0)
        elected: dict[int, list[tuple[int, int]]] = {}
        self._sides = [
            _Side(place, log, len(logs), decodes_all, self._findings) for place, log in logs.items()
        ]
        for side in self._sides:
            side.rules.elected = elected  # the leaders that any log names
        self._voters: tuple[int, list[int]] = (-1, [side.node for side in self._sides])

    def read(self, limits: ReadLimits, meter: Meter) -> None:
        """Read all logs to their ends.

        Errors:  _Damaged, _MustBeHeld.
        """
        for side in self._sides:
            side.open(limits, meter)
            if side.start > 0:
                self._findings.look("E09", 0, None)
                if not side.begins_well:
                    self._findings.find("E09", 0, offset=side.start, broker=side.node)
        while offsets := [s.next[1].batch.base_offset for s in self._sides if s.next is not None]:
            self._step(min(offsets))
        for side in self._sides:
            side.finish()

    def result(self, damage: Mapping[int, LogError | ProtocolError]) -> tuple[int | None, Compared]:
        """Compare how far each log is held by so many controllers.

        Shapes:  damage: of the logs that were left out, by their places -> the place of the log
                 that counts, None without one that can be read, and the results.
        """
        sides = self._sides
        needed = min(len(self._voters[1]) // 2 + 1, len(sides))
        holding = [side for side in sides if side.held[needed][1]]
        end = max((side.held[needed][0] for side in holding), default=0)
        usable = [side for side in holding if side.held[needed][0] == end] or sides
        best = min(usable, key=lambda side: (not side.begins_well, side.start), default=None)
        notes = {side.place: side.torn for side in sides if side.torn is not None}
        unusable = {place: str(error) for place, error in damage.items()}
        for place, error in damage.items():
            if isinstance(error, NotALog):
                notes[place] = f"nothing to read: {unusable.pop(place)}"
        whole = sum(bool(side.records or _snapshots(side.files)) for side in sides)
        return None if best is None else best.place, Compared(
            first=best.start if best is not None and holding else 0,
            end=end if best is None or holding else best.start,
            records=0 if best is None else best.held[needed][1],
            uncommitted=0 if best is None else best.beyond[needed],
            logs=len(sides),
            looked_at={rule: self._findings.looked_at[rule] for rule in OF_QUORUM},
            findings=tuple(self._findings.take_new()),
            notes=tuple(notes[place] for place in sorted(notes)),
            damaged=tuple(unusable[place] for place in sorted(unusable)),
            is_lost=bool(unusable) and 2 * whole <= len(sides) + len(damage),
        )

    def _step(self, offset: int) -> None:
        """Take the batches that begin at an offset, the lowest that is left."""
        count = len(self._sides)
        present = [
            (side, side.next[1])
            for side in self._sides
            if side.next is not None and side.next[1].batch.base_offset == offset
        ]
        later = sum(side.start > offset for side in self._sides)
        holders = Counter(batch_key(placed.batch) for _, placed in present)
        keys = {side.node: batch_key(placed.batch) for side, placed in present}
        records = {batch_key(placed.batch): placed.batch.count for _, placed in present}
        held_by_all = len(holders) == 1 and len(present) + later == count
        self._match(present)
        for side, placed in present:
            self._note_voters(placed.batch)
            if not held_by_all:  # else the shares of the log that counts decode it
                side.decode()
            side.take(holders[keys[side.node]] + later)
        if held_by_all and all(side.holders == count for side, _ in present):
            return
        for side in self._sides:
            for number in side.beyond if side.start <= offset else ():
                own = keys.get(side.node) if side.holders >= number else None
                side.beyond[number] += sum(n for key, n in records.items() if key != own)

    def _match(self, present: Sequence[tuple[_Side, PlacedBatch]]) -> None:
        """E05: the batches of one epoch and offset are the same."""
        if len(present) < 2:
            return
        by_epoch: dict[int, list[tuple[_Side, RecordBatch]]] = {}
        for side, placed in present:
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
