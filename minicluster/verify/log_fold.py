"""One pass over the log of a cluster, in the order of its offsets: the only driver of its rules.

``fold_logs`` drives it over a run that was read (``whole``), over the rows that Spark has sorted
(``spark.judging_worker``) and for views (``shown.worker``), a running cluster batch by batch
(``live``). What it keeps is bounded by the cluster that the log describes, and not by the log.

========================  ========================================================================
takes                     a snapshot, the committed batches, the batches of each controller's log
gives                     operations to ``CommittedLog`` and to the fold of images; every batch of
                          every log to ``ControllerLogs``; at its end the snapshots beside the logs
========================  ========================================================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Protocol

from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import Snapshot, checkpoint_of
from minicluster.log.committed_log import NodeLog
from minicluster.log.errors import LogError
from minicluster.log.segment import bytes_of
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import VersionedRecord
from minicluster.verify.evidence.operations import OperationDivider
from minicluster.verify.evidence.run import Problem, Run
from minicluster.verify.histories.committed_log import CommittedLog
from minicluster.verify.histories.image_fold import ImageFold
from minicluster.verify.histories.timeline import CommittedStates
from minicluster.verify.images import publications, snapshots
from minicluster.verify.images.snapshots import SnapshotFile, on_snapshot
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence
from minicluster.verify.promises import Promises
from minicluster.verify.quorum.controller_logs import ControllerLogs
from minicluster.verify.rules.rule import rules_in

OF_PUBLICATIONS, OF_SNAPSHOTS = rules_in(publications), rules_in(snapshots)

Step = tuple[RecordBatch | None, Sequence[tuple[int, RecordBatch]]]
"""The batch that is committed next, if one is, and the next ones of controllers' own logs."""


class Logs(Protocol):
    """The logs of a run, wherever they come from."""

    @property
    def run(self) -> Run:
        """What is known of it before its batches come."""
        ...

    def steps(self) -> Iterator[Step]:
        """The batches of all logs; each is committed before it comes as a controller's."""
        ...

    def content(self, file: Path) -> bytes:
        """The bytes of a snapshot.

        Errors:  LogError.
        """
        ...


class HeldLogs:
    """The logs of a run that was read."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def steps(self) -> Iterator[Step]:
        """The batches of all logs."""
        nodes, left = self.run.nodes, deque(self.run.committed)
        logs = [[(place, log.node, batch) for place, batch in placed(log.batches)] for log in nodes]
        for _, group in groupby(merge(*logs, key=itemgetter(0)), key=itemgetter(0)):
            copies = [(node, batch) for _, node, batch in group]
            is_next = left and any(batch is left[0] for _, batch in copies)
            yield left.popleft() if is_next else None, copies
        yield from ((batch, ()) for batch in left)  # those of a cluster that is not on disk

    def content(self, file: Path) -> bytes:
        """The bytes of a snapshot."""
        return bytes_of(file)


def fold_logs(fold: LogFold, logs: Logs) -> None:
    """Fold the logs of a run."""
    run = logs.run
    if run.start is not None:
        fold.load(run.start.records, run.start.end_offset)
    for log in run.nodes:
        fold.begin(log.node, begins_well=log.begins_well)
    for committed, copies in logs.steps():
        if committed is not None and run.foldable:
            fold.commit(committed)
        for node, batch in copies:
            fold.copy(node, batch)
    fold.end(run.nodes, lambda log, file: checkpoint_of(file, logs.content(file), log.files.limits))


def placed(batches: Iterable[RecordBatch]) -> Iterator[tuple[int, RecordBatch]]:
    """The batches of a log with their places beside other logs: their offsets, where these ascend.

    A segment may begin below the end of the one before; its batches still come behind that.
    """
    place = -1
    for batch in batches:
        place = max(place + 1, batch.base_offset)
        yield place, batch


def images_of(judge: Judge, run: Run) -> ImageFold | None:
    """A fold of images, if anything is compared with it: of a plain log the snapshots beside it."""
    if run.is_run:
        return ImageFold() if judge.asks(OF_PUBLICATIONS + OF_SNAPSHOTS) else None
    ends = frozenset(end - 1 for log in run.nodes for end, _, _ in log.snapshots)
    return ImageFold(ends) if ends and judge.asks(OF_SNAPSHOTS) else None


class LogFold:
    """The fold of one cluster's log.

    Shapes:  timeline: gets every committed state, where something needs them. images: the fold of
             the log into an image, where something is compared with it.
    """

    def __init__(
        self,
        judge: Judge,
        promises: Promises,
        *,
        timeline: CommittedStates | None = None,
        images: ImageFold | None = None,
    ) -> None:
        self.committed = CommittedLog(judge, promises, timeline=timeline)
        self.images = images
        self._judge = judge
        self._divider = OperationDivider()
        self._begins_at = 0
        self._logs = ControllerLogs(self.committed.cluster.releases)

    @property
    def epoch_starts(self) -> Mapping[int, int]:
        """The offset of the LeaderChange of each epoch, as the logs have it."""
        return self._logs.epoch_starts

    @property
    def has_open_records(self) -> bool:
        """Records of a metadata transaction have no effect yet."""
        return self._divider.has_open_records

    def load(self, records: Sequence[VersionedRecord], end_offset: int) -> None:
        """Begin from a snapshot that ends (exclusive) at an offset."""
        self._begins_at = end_offset
        self.committed.load(records, end_offset)
        if self.images is not None:
            self.images.load(records, end_offset)

    def begin(self, node: int, *, begins_well: bool) -> None:
        """The next batch of a controller is the first of its log."""
        self._logs.begin(node, begins_well=begins_well)

    def commit(self, batch: RecordBatch) -> None:
        """Take the next committed batch.

        Errors:  InvalidBatch, ProtocolError for a batch that does not hold metadata records.
        """
        operation = self._divider.on_batch(batch)
        if operation is not None:
            self.committed.take(operation)
        for offset, kind in self._divider.markers:
            if offset >= self._begins_at:
                self.committed.mark(offset, kind)
        self._divider.markers.clear()
        if self.images is not None:
            self.images.take(batch, operation, is_open=self.has_open_records)

    def copy(self, node: int, batch: RecordBatch) -> None:
        """Take the next batch of a controller's log.

        Batches come by their offsets, those that are committed to ``commit`` first: their records
        tell which release may have written them.
        """
        self._judge.hear(self._logs.on_batch(node, batch))

    def end(self, logs: Iterable[NodeLog], read: Callable[[NodeLog, Path], Snapshot]) -> None:
        """The logs have ended; judge the snapshots beside them.

        Shapes:  read: a snapshot of a log.
        """
        judge, images = self._judge, self.images
        judge.hear(self._logs.at_end())
        if images is None:
            return
        files = [(log, *file) for log in logs for file in log.snapshots]
        for log, end, epoch, path in files if judge.asks(OF_SNAPSHOTS) else ():
            try:
                content = read(log, path)
            except (LogError, ProtocolError) as error:  # it accuses nobody
                judge.problems.append(Problem(evidence=Evidence.SNAPSHOTS, why=str(error)))
                continue
            if images.first is not None:
                release = self.committed.cluster.releases.at(end - 1)
                snapshot = SnapshotFile.of(log.node, end, epoch, content, release)
                judge.hear(on_snapshot(snapshot, content.records, images))
        if images.problem is not None:
            judge.problems.append(images.problem)
