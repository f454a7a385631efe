"""Runs and logs as rows: what is scanned, put in order by run and place, and folded.

Spark scans them in many tasks and exchanges them by run (``spark.log_source``); one process sorts
those of one log. So a log is read once, and held as Kafka wrote it at most.

=========== ===================================== ==========================================
kind        content                               about
=========== ===================================== ==========================================
run                                               where the folder of a run is
located                                           where a plain log is, and what it lacks
log         the headers of its batches            what is known of one controller's log
unread                                            why one controller's log cannot be read
snapshot    a snapshot beside a log               its file, and why it cannot be read
rejected                                          why there is nothing to judge
batch       one batch of one controller's log
=========== ===================================== ==========================================

The place of a batch is its offset, that of all else -1: whoever takes the rows of a run in order
knows what its logs have to do with each other, and what is damaged, before the first batch comes.
Content is Kafka's bytes, ``about`` is JSON. A run is one row: its histories look back at all of it,
so whoever judges it reads the folder.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import checkpoint_of
from minicluster.log.committed_log import NodeLog, pack_head, unpack_heads
from minicluster.log.directory import MetadataFiles
from minicluster.log.errors import LogError
from minicluster.log.format.limits import DEFAULT_LIMITS, DecompressionBudget, ReadLimits
from minicluster.log.locating import locate
from minicluster.log.segment import bytes_of
from minicluster.protocol.errors import ProtocolError
from minicluster.values import Value
from minicluster.verify.evidence.file_systems import at_hand
from minicluster.verify.evidence.reading import LogReading, UnreadLog, run_of_logs
from minicluster.verify.evidence.run import Problem
from minicluster.verify.log_fold import Step, placed
from minicluster.verify.model import Evidence


class Row(NamedTuple):
    """One row of the scan.

    Shapes:  log: which of the run's logs, -1: all of it.
    """

    run: str
    place: int
    log: int
    kind: str
    about: str | None = None
    content: bytes | None = None


IN_ORDER = attrgetter("place", "log")
"""The order of the rows of a run."""


class Item(Value):
    """One run or log.

    Shapes:  is_run: it has a header or a trace. origin: the URI of which the path is a copy on the
             machine that starts the job.
    """

    path: str
    name: str
    is_run: bool
    origin: str | None = None

    @classmethod
    def at(
        cls,
        path: Path,
        name: str,
        limits: ReadLimits = DEFAULT_LIMITS,
        origin: str | None = None,
    ) -> Item:
        """What is at a path of this machine.

        Errors:  UserError for one that holds nothing to judge.
        """
        located = locate(path, partly=True, limits=limits)
        is_run = located.run_json is not None or any(path.glob("trace/*.parquet"))
        return cls(str(path), name, is_run, origin)


# --- the scan -------------------------------------------------------------------------------------


def rows_of(item: Item, limits: ReadLimits) -> Iterator[Row]:
    """The rows of a run or log, in any order."""
    if item.is_run:
        yield _row(item, "run", path=item.path, origin=item.origin)
        return
    try:
        with at_hand(Path(item.path), item.origin) as path:
            located = locate(path, partly=True, limits=limits)
            yield _row(item, "located", path=item.path, missing=located.missing)
            for number, files in enumerate(located.logs):
                yield from _rows_of_log(item, number, files, alone=path.is_file())
    except UserError as error:
        yield _row(item, "rejected", why=str(error))


def _row(item: Item, kind: str, log: int = -1, content: bytes | None = None, **about: Any) -> Row:
    return Row(item.name, -1, log, kind, json.dumps(about), content)


def _rows_of_log(item: Item, number: int, files: MetadataFiles, *, alone: bool) -> Iterator[Row]:
    """The batches of a log as far as it is sound, then what is known of it."""
    reading, heads = LogReading(files, alone=alone), bytearray()
    try:
        for place, batch in placed(reading.batches()):
            heads += pack_head(batch)
            yield Row(item.name, place, number, "batch", None, batch.encoded)
    except (LogError, ProtocolError) as error:
        unread = UnreadLog.of(error)
        yield _row(item, "unread", number, why=unread.why, is_no_log=unread.is_no_log)
        return
    log = reading.log
    yield _row(
        item,
        "log",
        number,
        bytes(heads),
        node=log.node,
        path=str(files.path),
        start=log.start,
        has_batches=log.has_batches,
        voters=log.voters,
        alone=log.alone,
        torn=log.torn,
        snapshots=[(end, epoch, str(file)) for end, epoch, file in log.snapshots],
    )
    for _, _, file in log.snapshots:
        content, why = None, None
        try:
            content = bytes_of(file)
        except LogError as error:
            why = str(error)
        yield _row(item, "snapshot", number, content, file=str(file), why=why)


# --- the rows of a run, in order ------------------------------------------------------------------


class Rejected(Exception):
    """There is nothing to judge at the path of a run."""


class StreamedRun:
    """The logs of one run, as their rows come.

    Shapes:  run: what is known of it before the first batch. folder: the place of a run that is to
             be read whole; its logs do not come as rows. limits: of reading.
    Errors:  Rejected.
    """

    def __init__(self, name: str, rows: Iterator[Row], limits: ReadLimits) -> None:
        self.limits = limits
        self._contents: dict[Path, Row] = {}
        self.folder: Item | None = None
        located: dict[str, Any] = {}
        read: dict[int, NodeLog | UnreadLog] = {}
        heads: dict[int, bytes] = {}
        self._rows: Iterator[Row] = iter(())
        for row in rows:
            if row.place >= 0:
                self._rows = chain((row,), rows)
                break
            about: dict[str, Any] = json.loads(row.about or "{}")
            match row.kind:
                case "rejected":
                    raise Rejected(about["why"])
                case "run":
                    self.folder = Item(about["path"], name, True, about["origin"])
                case "located":
                    located = about
                case "unread":
                    read[row.log] = UnreadLog(**about)
                case "log":
                    read[row.log] = _node_log(about, limits)
                    heads[row.log] = row.content or b""
                case "snapshot":
                    self._contents[Path(about["file"])] = row
        if self.folder is not None:
            return
        logs, missing = [read[number] for number in sorted(read)], located["missing"]
        if len(logs) == 1 and isinstance(logs[0], UnreadLog) and logs[0].is_no_log:
            raise Rejected(logs[0].why)
        self._of = dict(enumerate(sorted(heads)))
        self.run, self._committed = run_of_logs(
            Path(located["path"]),
            name,
            None,
            logs,
            [Problem(evidence=Evidence.LOG, why=why) for why in missing],
            heads=[unpack_heads(heads[number]) for number in sorted(heads)],
            controllers=len(logs) + len(missing),
            content_of=lambda file: checkpoint_of(file, self.content(file), limits),
        )

    def content(self, file: Path) -> bytes:
        """The bytes of a snapshot beside a log.

        Errors:  LogError.
        """
        row = self._contents[file]
        if row.content is None:
            raise LogError(json.loads(row.about or "{}")["why"])
        return row.content

    def steps(self) -> Iterator[Step]:
        """At each place the batch that is committed there, if one is, and that of each log."""
        nodes = dict(zip(self._of.values(), self.run.nodes, strict=True))
        of, left = self._of.get(self._committed.place), self._committed.batches
        for _, group in groupby(self._rows, key=attrgetter("place")):
            committed, copies = None, []
            for row in group:
                if row.log not in nodes:
                    continue  # its log is damaged further on, so nothing of it counts
                budget = DecompressionBudget(self.limits.decompressed_bytes)
                batch = RecordBatch.decode(row.content or b"", lenient=True, budget=budget)
                if row.log == of and left:
                    committed, left = batch, left - 1
                copies.append((nodes[row.log].node, batch))
            yield committed, copies


def _node_log(about: dict[str, Any], limits: ReadLimits) -> NodeLog:
    """What is known of a log, as its row has it."""
    offset, voters = about["voters"]
    snapshots = tuple((end, epoch, Path(file)) for end, epoch, file in about["snapshots"])
    files = tuple(file for _, _, file in snapshots)
    return NodeLog(
        node=about["node"],
        files=MetadataFiles(Path(about["path"]), about["node"], (), files, limits=limits),
        start=about["start"],
        has_batches=about["has_batches"],
        voters=(offset, tuple(voters)),
        snapshots=snapshots,
        alone=about["alone"],
        torn=about["torn"],
    )
