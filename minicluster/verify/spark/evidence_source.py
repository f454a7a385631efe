"""Runs and logs as the events that rules judge: the tasks that read them, and what each reads.

A run, or a log that is not long, is read by one task (``evidence.reading``), so what is damaged or
missing in it is known before its first row. Of long logs the headers are walked first
(``evidence.long_logs``), where the job is started; then tasks read them piece by piece.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.errors import LogError
from minicluster.log.format.limits import ReadLimits
from minicluster.log.locating import Located, locate, moved
from minicluster.log.segment import PlacedBatch, read_batches, read_piece
from minicluster.protocol.errors import ProtocolError
from minicluster.values import dataclass
from minicluster.verify.evidence.file_systems import at_hand, below, opened
from minicluster.verify.evidence.long_logs import LongLogs, MustBeHeld, Piece, Unsure, plan_logs
from minicluster.verify.evidence.packed_rows import Packed
from minicluster.verify.evidence.reading import check_batch, read_run
from minicluster.verify.evidence.run import LogFacts, Problem, Run, without_contents
from minicluster.verify.evidence.trace_tables import DamagedTable, read_packed
from minicluster.verify.model import Evidence
from minicluster.verify.spark.evidence_rows import (
    Heading,
    Phase,
    RowWriter,
    in_chunks,
)

HELD_LOG_BYTES = 1 << 20  # of each controller; longer logs are read in pieces
_ZNODE_ROWS = 2_000  # in one row of evidence


@dataclass(frozen=True)
class Item:
    """One run or log.

    Shapes:  origin: the URI of which the path is a copy on the machine that starts the job.
             slot: the partition in which it is judged. is_careful: a reader has found damage in
             it, so all of it is read before it is judged.
    """

    path: str
    name: str
    origin: str | None
    slot: int
    is_careful: bool = False


@dataclass(frozen=True)
class Request:
    """What is to be read.

    Shapes:  tables: of traces. phases: the kinds of rows that are wanted. timed: records with their
             times.
    """

    items: tuple[Item, ...]
    limits: ReadLimits
    tables: tuple[str, ...]
    tasks: int
    phases: tuple[Phase, ...] = tuple(Phase)
    timed: bool = False

    def writer(self, item: Item) -> RowWriter:
        """A writer of the rows of a run."""
        phases = frozenset(self.phases)
        return RowWriter(item.name, item.slot, timed=self.timed, phases=phases)

    def option(self) -> str:
        """The request as text."""
        return json.dumps(
            {
                "items": [vars(item) for item in self.items],
                "limits": [self.limits.batch_bytes, self.limits.decompressed_bytes],
                "tables": self.tables,
                "tasks": self.tasks,
                "phases": self.phases,
                "timed": self.timed,
            }
        )

    @classmethod
    def of_option(cls, text: str) -> Request:
        """The request that a text carries."""
        plan: dict[str, Any] = json.loads(text)
        batch_bytes, decompressed_bytes = plan["limits"]
        return cls(
            tuple(Item(**item) for item in plan["items"]),
            ReadLimits(batch_bytes=batch_bytes, decompressed_bytes=decompressed_bytes),
            tuple(plan["tables"]),
            plan["tasks"],
            tuple(map(Phase, plan["phases"])),
            plan["timed"],
        )


@dataclass(frozen=True)
class Whole(InputPartition):
    """Runs and logs that one task reads, one after the other."""

    items: tuple[Item, ...]


@dataclass(frozen=True)
class Rest(InputPartition):
    """What is known of long logs from their headers, and the snapshots beside them."""

    item: Item
    logs: LongLogs


@dataclass(frozen=True)
class LogPiece(InputPartition):
    """Some bytes of a long log."""

    item: Item
    piece: Piece


Part = Whole | Rest | LogPiece


class EvidenceReader:
    """A reader of runs and logs."""

    def __init__(self, request: Request) -> None:
        self._request = request

    def partitions(self) -> Sequence[Part]:
        """Short runs several to a task, long logs in pieces."""
        whole_items: list[Item] = []
        pieces: list[Part] = []
        for item in self._request.items:
            logs = self._planned(item)
            if logs is None:
                whole_items.append(item)
                continue
            pieces.append(Rest(item, logs))
            pieces += (LogPiece(item, piece) for piece in logs.pieces)
        tasks = max(1, self._request.tasks)
        several = -(-len(whole_items) // tasks)
        return [*(Whole(tuple(some)) for some in in_chunks(whole_items, several or 1)), *pieces]

    def _planned(self, item: Item) -> LongLogs | None:
        """The pieces of long logs; None for what one task is to read."""
        with at_hand(Path(item.path), item.origin) as path:
            try:
                located = locate(path, partly=True, limits=self._request.limits)
            except UserError:
                return None  # the task that reads it says so
            if not is_long(path, located):
                return None
            for is_careful in (False, True)[item.is_careful :]:
                try:
                    logs = plan_logs(
                        path,
                        item.name,
                        located,
                        self._request.limits,
                        self._request.tasks,
                        checked=is_careful,
                    )
                except (Unsure, LogError):
                    continue
                except MustBeHeld:
                    return None
                return logs if path == Path(item.path) else _moved(logs, path, Path(item.path))
        return None

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The events of a part of the evidence."""
        match partition:
            case Whole(items):
                for item in items:
                    yield from self._whole(item)
            case Rest(item, logs):
                yield from self._rest(item, logs)
            case LogPiece(item, piece):
                yield from self._piece(item, piece)

    # --- runs, and logs that are held -------------------------------------------------------------

    def _whole(self, item: Item) -> Iterator[pa.RecordBatch]:
        writer = self._request.writer(item)
        try:
            with at_hand(Path(item.path), item.origin) as path:
                run = read_run(path, item.name, self._request.limits)
                run, rows = self._traced(run)
                for _ in self._events(run, writer, rows):
                    yield from writer.taken_if_full()
        except UserError as error:
            rejected = (type(error), str(error))
            writer.add_heading(Heading(run=None, rejected=rejected))
        if len(writer):
            yield writer.taken()

    def _traced(self, run: Run) -> tuple[Run, list[tuple[str, Packed]]]:
        """The rows of its trace, and the run with a problem for each table that is damaged."""
        rows: list[tuple[str, Packed]] = []
        problems: list[Problem] = []
        written = (run.header and run.header.written) or {}
        for table in self._request.tables:
            if table not in run.trace:
                continue
            as_written = f"trace/{table}.parquet" in written
            try:
                pieces = read_packed(run.trace[table], table, as_written=as_written)
            except DamagedTable as error:
                problems.append(Problem(evidence=Evidence.TRACE, why=str(error), table=table))
                continue
            rows += ((table, piece) for piece in pieces)
        return replace(run, problems=(*run.problems, *problems)), rows

    def _events(
        self, run: Run, writer: RowWriter, rows: Sequence[tuple[str, Packed]]
    ) -> Iterator[None]:
        """Write a run, with a pause after each of its parts."""
        start = run.start
        in_files = run.is_run or not all(_ascends(log.batches) for log in run.nodes)
        ends = frozenset(end for log in run.nodes for end, _, _ in log.snapshots)
        heading = Heading(
            run=without_contents(run),
            start=None if start is None else (start.end_offset, start.epoch, start.file),
            logs=tuple(
                LogFacts(
                    node=log.node,
                    files=log.files,
                    alone=log.alone,
                    torn=log.torn,
                    snapshots=log.snapshots,
                )
                for log in run.nodes
            ),
            in_files=in_files,
        )
        writer.add_heading(heading)
        if start is not None:
            writer.add(Phase.START, start.snapshot.content, subject=start.file)
        place, control_from = 0, -1
        for batch in run.committed if run.foldable and not run.on_zookeeper else ():
            if batch.next_offset in ends or not place:
                writer.add_batch(Phase.END, batch, place, None)
            if batch.is_control:
                control_from = batch.base_offset if control_from < 0 else control_from
            else:
                writer.add_records(batch, place, control_from)
                control_from = -1
            place += batch.count
            yield
        ordinal = 0
        for log in run.nodes:
            for batch in log.batches:
                at = ordinal if in_files else batch.base_offset
                writer.add_batch(Phase.BATCH, batch, at, log.node)
                ordinal += 1
            yield
            _add_snapshots(writer, log.node, log.snapshots)
        for table, piece in rows:
            writer.add(Phase.TRACE, pickle.dumps(piece), place=ordinal, subject=table)
            ordinal += 1
            yield
        for some in in_chunks(run.znodes, _ZNODE_ROWS):
            writer.add(Phase.ZNODES, pickle.dumps(tuple(some)), place=ordinal)
            ordinal += 1
            yield

    # --- long logs --------------------------------------------------------------------------------

    def _rest(self, item: Item, logs: LongLogs) -> Iterator[pa.RecordBatch]:
        """The heading of long logs, and the snapshots beside them."""
        writer = self._request.writer(item)
        start = logs.start
        heading = Heading(
            run=logs.run,
            start=None if start is None else (start[0], start[1], start[2].name),
            logs=logs.facts,
        )
        writer.add_heading(heading)
        with at_hand(Path(item.path), item.origin) as path:
            if start is not None:
                content = (path / start[2].relative_to(item.path)).read_bytes()
                writer.add(Phase.START, content, subject=start[2].name)
            for log in logs.facts:
                here = tuple(
                    (end, epoch, path / file.relative_to(item.path))
                    for end, epoch, file in log.snapshots
                )
                _add_snapshots(writer, log.node, here)
        yield writer.taken()

    def _piece(self, item: Item, piece: Piece) -> Iterator[pa.RecordBatch]:
        """The events of a part of a log, as far as it is sound."""
        writer = self._request.writer(item)
        place, control_from = piece.place, piece.control_from
        try:
            for placed in self._batches(item, piece):
                batch = placed.batch
                writer.add_batch(Phase.BATCH, batch, batch.base_offset, piece.node)
                is_judged = (
                    piece.committed_to is not None and batch.base_offset < piece.committed_to
                )
                if is_judged and (batch.next_offset in piece.ends or not place):
                    writer.add_batch(Phase.END, batch, place, None)
                if batch.is_control or batch.base_offset >= piece.decoded_from:
                    check_batch(piece.segment, placed)
                if batch.is_control:
                    control_from = batch.base_offset if control_from < 0 else control_from
                else:
                    if is_judged:
                        writer.add_records(batch, place, control_from)
                    control_from = -1
                place += batch.count
                yield from writer.taken_if_full()
        except (LogError, ProtocolError) as error:
            writer.add(Phase.DAMAGE, str(error).encode())
        if len(writer):
            yield writer.taken()

    def _batches(self, item: Item, piece: Piece) -> Iterator[PlacedBatch]:
        """The batches of a piece, of which there are more than fit into memory.

        Errors:  LogError.
        """
        limits, last_offset = self._request.limits, piece.last_offset
        path = piece.segment
        for start, end in pairwise(piece.bounds):
            if item.origin is None or path.exists():
                content = read_piece(
                    path, start, end, whole=True, limits=limits, last_offset=last_offset
                )
            else:
                root = Path(item.path)
                uri = item.origin
                if path != root:
                    uri = below(uri, path.relative_to(root).as_posix())
                buffer = opened(uri).read(start, end)
                content = read_batches(
                    path, buffer, whole=True, limits=limits, start=start, last_offset=last_offset
                )
            yield from content.batches
            if content.batches:
                last_offset = content.batches[-1].batch.last_offset


def is_long(path: Path, located: Located) -> bool:
    """Plain logs that are read in pieces."""
    return is_plain(path, located) and max(sizes_of(located)) > HELD_LOG_BYTES


def is_plain(path: Path, located: Located) -> bool:
    """Logs without a run's header and trace."""
    is_run = located.run_json is not None or any(path.glob("trace/*.parquet"))
    return bool(located.logs) and not is_run


def sizes_of(located: Located) -> list[int]:
    """The bytes of each controller's segments."""
    return [sum(file.stat().st_size for file in log.segments) for log in located.logs]


def _ascends(batches: Iterable[RecordBatch]) -> bool:
    return all(batch.last_offset < following.base_offset for batch, following in pairwise(batches))


def _add_snapshots(
    writer: RowWriter, node: int, snapshots: Iterable[tuple[int, int, Path]]
) -> None:
    for end, _, file in snapshots:
        content: bytes | None = None
        with suppress(OSError):
            content = file.read_bytes()
        writer.add(Phase.SNAPSHOT, content, node=node, offset=end, subject=file.name)


def _moved(logs: LongLogs, old: Path, new: Path) -> LongLogs:
    """The same with the names that the files have where the job was started."""

    def place(file: Path) -> Path:
        return new / file.relative_to(old)

    start = logs.start
    return replace(
        logs,
        run=replace(logs.run, path=new),
        pieces=tuple(replace(piece, segment=place(piece.segment)) for piece in logs.pieces),
        start=None if start is None else (*start[:2], place(start[2])),
        facts=tuple(
            replace(
                log,
                files=moved(log.files, old, new),
                snapshots=tuple((end, epoch, place(file)) for end, epoch, file in log.snapshots),
            )
            for log in logs.facts
        ),
    )
