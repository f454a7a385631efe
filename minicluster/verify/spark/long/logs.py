"""Long plain logs, judged by the code of the online checker, one share of partitions per worker.

The log is read piece by piece, so memory is bounded by the cluster that it describes and not by its
length.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from minicluster.errors import counted
from minicluster.lazy_dataclass import dataclass
from minicluster.log.checkpoint import parse_checkpoint_name, read_checkpoint
from minicluster.log.directory import MetadataFiles
from minicluster.log.errors import LogError
from minicluster.log.format.limits import ReadLimits
from minicluster.log.heads import batch_heads, byte_ranges
from minicluster.log.segment import (
    PlacedBatch,
    SegmentContent,
    TornTail,
    read_piece,
)
from minicluster.protocol.errors import ProtocolError
from minicluster.verify.evidence.committed_log import no_start, uncommitted_note
from minicluster.verify.evidence.file_systems import at_hand
from minicluster.verify.evidence.run import Extent, Problem, Run
from minicluster.verify.online.checker import OnlineChecker
from minicluster.verify.online.share import Share
from minicluster.verify.rules.model import Evidence, Finding
from minicluster.verify.spark.fold_job import Task, in_workers, workers_of
from minicluster.verify.spark.progress import Meter, Watch
from minicluster.verify.tally import Tallies

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OF_QUORUM = ("E01", "E02", "E03", "E05", "E09")
"""The rules about the logs of all controllers, which a comparison of them judges (``quorums``)."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of the logs of several controllers.

    Shapes:  first, end, records: of the part that is committed; without records first is 0 and end
             is where the log that counts begins. uncommitted: records on any log that are not in
             it. logs: the number of those that can be read. notes: tails that are left off, files
             that hold nothing. damaged: a line for each log that is left out, and for the snapshot
             from which the log would be judged. is_lost: too few logs are left for a majority.
    """

    first: int
    end: int
    records: int
    uncommitted: int
    logs: int
    looked_at: dict[str, int]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    damaged: tuple[str, ...] = ()
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class LongLog:
    """One controller's log that begins at 0, or where a snapshot ends.

    Shapes:  start: the snapshot from which it is judged, with its end offset and epoch. origin: the
             URI of which the path is a copy. others: the logs of other controllers, with which it
             was ``compared``. is_foldable: the state from which it begins can be read; else the
             comparison alone judges it.
    """

    path: Path
    name: str
    files: MetadataFiles
    start: tuple[int, int, Path] | None
    origin: str | None = None
    others: tuple[MetadataFiles, ...] = ()
    compared: Compared | None = None
    is_foldable: bool = True

    @property
    def end(self) -> int | None:
        """Where its committed part ends, None for all of it."""
        return None if self.compared is None else self.compared.end


@dataclass(slots=True)
class _Shared:
    """The results of one share, and how much of the log there was."""

    looked_at: dict[str, int]
    not_promised: dict[str, int]
    findings: tuple[Finding, ...] = ()
    records: int = 0
    first: int = -1
    end: int = 0
    ascends: bool = True
    torn: str | None = None
    is_damaged: bool = False


def long_log(
    path: Path, name: str, files: MetadataFiles, origin: str | None = None
) -> LongLog | None:
    """The log, if it can be judged by shares: the state from which it begins is there."""
    head = next(batch_heads(files.segments[0]), None) if files.segments else None
    if head is None:
        return None
    if head.base_offset == 0:
        return LongLog(path, name, files, None, origin)
    for file in sorted(files.checkpoints):
        end, epoch = parse_checkpoint_name(file.name) or (0, 0)
        if end >= head.base_offset:
            return LongLog(path, name, files, (end, epoch, file), origin)
    return None


def judge_logs(
    spark: SparkSession, logs: Sequence[LongLog], task: Task, tallies: Tallies
) -> list[Run | None]:
    """Judge these logs in one job; None for one that is damaged, or whose offsets descend."""
    count = workers_of(spark)
    foldable = [log for log in logs if log.is_foldable]
    shares = [(log, Share(index, count)) for log in foldable for index in range(count)]
    found = iter(_judge_shares(spark, shares, task) if shares else ())
    return [
        _run(log, [next(found) for _ in range(count)] if log.is_foldable else [], task, tallies)
        for log in logs
    ]


def _judge_shares(
    spark: SparkSession, shares: Sequence[tuple[LongLog, Share]], task: Task
) -> list[_Shared]:
    count = len({log.name for log, _ in shares})
    phase = f"judging {counted(count, 'long log')}"
    watch = Watch(phase, task.on_progress, len(shares))
    with watch.over(spark):
        items = [
            pickle.dumps((*share, task.limits, watch.meter_file(place)))
            for place, share in enumerate(shares)
        ]
        return [pickle.loads(one) for one in in_workers(spark, judge_share, items)]


def judge_share(item: bytes) -> bytes:
    """Judge one share of a log in a worker.

    Shapes:  a ``LongLog``, its ``Share``, limits, the file of its meter -> results.
    """
    log, share, limits, meter_file = pickle.loads(item)
    with log_at_hand(log) as here:
        return pickle.dumps(_judge_share(here, share, limits, Meter(meter_file)))


@contextmanager
def log_at_hand(log: LongLog) -> Iterator[LongLog]:
    """The log on this machine: where its copy is not here, another copy of its origin."""
    with at_hand(log.path, log.origin) as path:
        if path == log.path:
            yield log
            return
        start = log.start
        if start is not None:
            start = (*start[:2], path / start[2].relative_to(log.path))
        files = moved(log.files, log.path, path)
        others = tuple(moved(other, log.path, path) for other in log.others)
        yield replace(log, path=path, files=files, others=others, start=start)


def moved(files: MetadataFiles, old: Path, new: Path) -> MetadataFiles:
    """The files of a log, where a copy of the path in which they are is."""
    if old == new:
        return files

    def place(file: Path) -> Path:
        return new / file.relative_to(old)

    return replace(
        files,
        path=place(files.path),
        segments=tuple(map(place, files.segments)),
        checkpoints=tuple(map(place, files.checkpoints)),
        bootstrap=None if files.bootstrap is None else place(files.bootstrap),
    )


def _judge_share(log: LongLog, share: Share, limits: ReadLimits, meter: Meter) -> _Shared:
    node = -1 if log.files.node_id is None else log.files.node_id
    checker = OnlineChecker(log.name, node=node, share=share)
    shared = _Shared(checker.looked_at, checker.not_promised)
    try:
        if log.start is not None:
            end, _, file = log.start
            checker.load(read_checkpoint(file, limits).records, end)
        torn: list[str | None] = []
        for _, placed in log_batches(log.files, limits, meter, torn.append):
            batch = placed.batch
            if log.end is not None and batch.base_offset >= log.end:
                break
            checker.commit(batch)
            shared.records += batch.count
            shared.first = batch.base_offset if shared.first < 0 else shared.first
            shared.ascends = shared.ascends and batch.base_offset >= shared.end
            shared.end = batch.next_offset
        shared.torn = torn[-1] if torn else None
    except (LogError, ProtocolError):
        shared.is_damaged = True  # a comparison that decodes every batch finds the place
    shared.findings = tuple(checker.findings)
    return shared


def log_batches(
    files: MetadataFiles,
    limits: ReadLimits,
    meter: Meter,
    on_end: Callable[[str | None], None] = lambda torn: None,
) -> Iterator[tuple[Path, PlacedBatch]]:
    """Every batch of a log, a piece of a segment at a time.

    Shapes:  on_end: gets what is torn at the end of each segment, None where nothing is.
    """
    sizes = [segment.stat().st_size for segment in files.segments]
    before = 0
    for segment, size in zip(files.segments, sizes, strict=True):
        torn: TornTail | None = None
        for end, content in segment_pieces(files, segment, limits):
            torn = content.torn
            for placed in content.batches:
                yield segment, placed
            meter.done((before + end) / sum(sizes))
        before += size
        on_end(None if torn is None else str(torn))


def segment_pieces(
    files: MetadataFiles, segment: Path, limits: ReadLimits
) -> Iterator[tuple[int, SegmentContent]]:
    """The batches of a segment, a piece at a time, each with the byte at which it ends."""
    size, last_offset = segment.stat().st_size, -1
    for start, end in byte_ranges(segment):
        whole = segment != files.segments[-1] or end < size  # only a log's end may be torn
        content = read_piece(
            segment, start, end, whole=whole, limits=limits, last_offset=last_offset
        )
        yield end, content
        if content.batches:
            last_offset = content.batches[-1].batch.last_offset


def _run(log: LongLog, shares: Sequence[_Shared], task: Task, tallies: Tallies) -> Run | None:
    """Add up the shares of one log."""
    if any(shared.is_damaged or not shared.ascends for shared in shares):
        return None
    compared = log.compared
    chosen = {rule.id for rule in task.rules}
    of_shares = chosen - set(() if compared is None else OF_QUORUM)
    for shared in shares:
        for rule_id in of_shares & shared.looked_at.keys():
            found = [finding for finding in shared.findings if finding.rule == rule_id]
            counts = shared.looked_at[rule_id], shared.not_promised[rule_id]
            tallies.add(rule_id, log.name, *counts, found)
    if compared is not None:
        for rule_id in chosen & compared.looked_at.keys():
            found = [finding for finding in compared.findings if finding.rule == rule_id]
            tallies.add(rule_id, log.name, compared.looked_at[rule_id], 0, found)
    elif shares[0].first > 0 and "E09" in chosen:  # its start is in a snapshot, as ``long_log`` saw
        tallies.add("E09", log.name, 1, 0)
    return Run(
        name=log.name,
        path=log.path,
        header=None,
        nodes=(),
        committed=(),
        start=None,
        uncommitted=0 if compared is None else compared.uncommitted,
        lost=compared is not None and compared.is_lost,
        problems=() if compared is None else _problems(log, compared),
        notes=_notes(log, shares),
        known_extent=_extent(log, shares),
    )


def _problems(log: LongLog, compared: Compared) -> tuple[Problem, ...]:
    if compared.damaged or log.is_foldable:
        return tuple(Problem(evidence=Evidence.LOG, why=why) for why in compared.damaged)
    why = no_start(log.path, compared.first)
    return (Problem(evidence=Evidence.LOG, why=why, partial=True),)


def _notes(log: LongLog, shares: Sequence[_Shared]) -> tuple[str, ...]:
    compared = log.compared
    torn = shares[0].torn if compared is None else None
    notes = list(compared.notes if compared is not None else () if torn is None else (torn,))
    if log.start is not None:
        notes.append(f"judged from the snapshot that ends at offset {log.start[0]}")
    if compared is not None and compared.uncommitted:
        notes.append(uncommitted_note(compared.uncommitted))
    return tuple(notes)


def _extent(log: LongLog, shares: Sequence[_Shared]) -> Extent:
    compared = log.compared
    if compared is None:
        one = shares[0]
        return Extent(
            records=one.records, first_offset=max(one.first, 0), end_offset=one.end, logs=1
        )
    return Extent(
        records=compared.records,
        first_offset=compared.first,
        end_offset=compared.end if compared.records else 0,
        logs=compared.logs,
    )
