"""The fold of a committed log into an image, beside which snapshots and published images stand.

It is ``metadata.image``, which the tests compare with a second one, record by record, and with what
Apache Kafka made of its own logs. Bounded by the state of the cluster, and one digest for each
batch at which something is compared.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from minicluster.log.batch import RecordBatch
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.snapshot import image_from_records
from minicluster.protocol.records import VersionedRecord
from minicluster.verify.evidence.operations import Operation
from minicluster.verify.evidence.run import Problem
from minicluster.verify.model import Evidence


class ImageFold:
    """The fold of a committed log as it comes, as far as its records fit the state before them.

    Shapes:  only: the last offsets of batches at which the digest is kept; None: at each. digests:
             by these, None inside a metadata transaction; where the log begins with a snapshot, the
             first one is of that. ends: leader epoch and time of these batches. first: the first
             offset at which the log was folded. begins_at: where the snapshot ends with which it
             begins. problem: why it could not be folded further.
    """

    def __init__(self, only: Collection[int] | None = None) -> None:
        self.digests: dict[int, str | None] = {}
        self.ends: dict[int, tuple[int, int]] = {}
        self.first: int | None = None
        self.begins_at: int | None = None
        self.problem: Problem | None = None
        self._only = only
        self._until = 2**63 if only is None else max(only, default=-1)
        self._image = MetadataImage.EMPTY

    def load(self, records: Sequence[VersionedRecord], end_offset: int) -> None:
        """Begin from a snapshot that ends (exclusive) at an offset."""
        self.begins_at = end_offset
        try:
            self._image = image_from_records(records)
        except ReplayError as error:
            self._fail(error)
        self._note(end_offset - 1, is_open=False)

    def take(self, batch: RecordBatch, operation: Operation | None, *, is_open: bool) -> None:
        """Apply the operation that a batch completes, without what the snapshot has of it.

        Shapes:  is_open: a metadata transaction is open behind the batch.
        """
        last = batch.last_offset
        if operation is not None and last <= self._until and self.problem is None:
            try:
                for entry in operation.entries:
                    if entry.offset >= (self.begins_at or 0):
                        self._image = apply(self._image, entry.record, offset=entry.offset)
            except ReplayError as error:
                self._fail(error)
        if self._only is None or last in self._only:
            self.ends[last] = batch.leader_epoch, batch.max_timestamp
            self._note(last, is_open=is_open)
        elif self.first is None and self.problem is None:
            self.first = last

    def _fail(self, error: ReplayError) -> None:
        why = f"the log cannot be folded: {error}"
        self.problem = Problem(evidence=Evidence.IMAGES, why=why)

    def _note(self, offset: int, *, is_open: bool) -> None:
        if self.problem is None and offset >= (self.begins_at or 0) - 1:
            self.digests[offset] = None if is_open else self._image.digest()
            self.first = offset if self.first is None else self.first
