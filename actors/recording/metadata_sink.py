"""The metadata sink: follows the committed metadata log while the cluster runs.

Every controller reports its committed batches to the inlet. The inlet passes each batch on once, in
order, and the sink delivers it to its followers: the image that tests look at, the live checks
(``live_checks.py``), the streams onto disk (``streams.py``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

import pykka

from minicluster.actors.recording.problems import Problems
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.log.batch import RecordBatch
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.shared_folds import SharedFolds

BATCHES_MAX = 10_000  # an hour and more of a cluster at rest
TRIM_EVERY = 500  # batches


class CommitFollower(Protocol):
    """A receiver of every committed batch, once and in the order of the log.

    An exception of ``on_committed`` ends the run and reaches the test.
    """

    def on_committed(self, batch: RecordBatch) -> None:
        """The next committed batch, data or control."""

    def close(self) -> None:
        """End of the run; no batch follows."""


@dataclass(frozen=True, slots=True)
class CommittedBatches:
    """Batches that have become committed."""

    batches: tuple[RecordBatch, ...]


@dataclass(frozen=True, slots=True)
class Follow:
    """Add a follower, which receives the log from its start."""

    follower: CommitFollower


class Inlet:
    """Where the controllers report commits; safe to use from any actor."""

    def __init__(self) -> None:
        self.next_offset = 0
        self._lock = threading.Lock()
        self._sink: pykka.ActorRef[MetadataSink] | None = None

    def connect(self, sink: pykka.ActorRef[MetadataSink]) -> None:
        """Name the actor that takes the batches."""
        self._sink = sink

    def offer(self, batches: Iterable[RecordBatch]) -> None:
        """Report batches that a node has seen committed; the first report of each counts."""
        with self._lock:
            new = tuple(batch for batch in batches if batch.base_offset >= self.next_offset)
            if new and self._sink is not None:
                self.next_offset = new[-1].next_offset
                self._sink.tell(CommittedBatches(new))


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStart:
    """The state from which a committed log begins, and the offset and epoch at which it ends."""

    image: MetadataImage
    end_offset: int
    epoch: int
    time_ms: int


class CommittedImage:
    """The follower that keeps what is committed, from the begin of the log, and the image of it.

    It is a recorder, which ends no cluster: what it cannot fold is a problem of the run, and the
    image lacks it. Once the log is long, what all controllers have deleted behind their snapshots
    goes here as well.

    Shapes:  log_start: the offset at which the controllers' logs begin. start: None while the log
             begins with nothing.
    """

    def __init__(
        self, folds: SharedFolds, problems: Problems, log_start: Callable[[], int]
    ) -> None:
        self._folds = folds
        self._problems = problems
        self._log_start = log_start
        self.image = MetadataImage.EMPTY
        self.offset = -1
        self.changes = 0
        self.batches: list[RecordBatch] = []
        self.batches_max = BATCHES_MAX  # while the controllers have deleted some of them
        self.start: LogStart | None = None

    def on_committed(self, batch: RecordBatch) -> None:
        """Apply the batch, and keep it for what follows the log later."""
        self.batches.append(batch)
        if len(self.batches) >= self.batches_max and len(self.batches) % TRIM_EVERY == 0:
            with self._problems.noted("the begin of the committed log"):
                self._trim()
        with self._problems.noted("the fold of the committed log"):
            image = self.image
            for run in self._folds.runs(image, batch.metadata_records, batch.base_offset):
                image = run.after
            if image is not self.image:
                self.image = image
                self.changes += 1
        self.offset = batch.last_offset

    def _trim(self) -> None:
        """Let the log begin where the controllers' logs do."""
        begins_at = self._log_start()
        count = 0
        while count < len(self.batches) and self.batches[count].next_offset <= begins_at:
            count += 1
        if not count:
            return
        deleted, image = self.batches[:count], MetadataImage.EMPTY
        if self.start is not None:
            image = self.start.image
        for batch in deleted:
            for run in self._folds.runs(image, batch.metadata_records, batch.base_offset):
                image = run.after
        last = deleted[-1]
        self.start = LogStart(
            image=image,
            end_offset=last.next_offset,
            epoch=last.leader_epoch,
            time_ms=last.max_timestamp,
        )
        del self.batches[:count]

    def close(self) -> None:
        """Nothing to free."""


class MetadataSink(ClusterActor):
    """The actor that hands committed batches to the followers."""

    def __init__(self, followers: list[CommitFollower], committed: CommittedImage) -> None:
        super().__init__()
        self.followers = followers
        self.committed = committed

    def on_receive(self, message: Any) -> None:
        if isinstance(message, CommittedBatches):
            for batch in message.batches:
                for follower in self.followers:
                    follower.on_committed(batch)
        elif isinstance(message, Follow):
            for batch in self.committed.batches:
                message.follower.on_committed(batch)
            self.followers.append(message.follower)
        else:
            raise NotImplementedError(f"{self.name} does not understand {message!r}")

    def on_stop(self) -> None:
        for follower in self.followers:
            follower.close()
