"""The committed log and its image: the follower that tests and the recorder look at."""

from __future__ import annotations

from collections.abc import Callable

from minicluster.actors.recording.problems import Problems
from minicluster.log.batch import RecordBatch
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.values import Value

BATCHES_MAX = 10_000  # an hour and more of a cluster at rest
TRIM_EVERY = 500  # batches


class LogStart(Value, kw_only=True):
    """The state from which a committed log begins, and the offset and epoch at which it ends."""

    image: MetadataImage
    end_offset: int
    epoch: int
    time_ms: int


class CommittedImage:
    """The follower that keeps what is committed, from the start of the log, and the image of it.

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
            with self._problems.noted("the start of the committed log"):
                self._trim()
        with self._problems.noted("the fold of the committed log"):
            image = self._folded(self.image, batch)
            if image is not self.image:
                self.image = image
                self.changes += 1
        self.offset = batch.last_offset

    def _folded(self, image: MetadataImage, batch: RecordBatch) -> MetadataImage:
        for run in self._folds.runs(image, batch.metadata_records, batch.base_offset):
            image = run.after
        return image

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
            image = self._folded(image, batch)
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
