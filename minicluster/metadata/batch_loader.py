"""Committed batches to deltas, one for each delivery, or fewer while a transaction is open.

An image is shown whole or not at all. What a transaction has changed may still be aborted, so it is
applied to a builder of its own and shown with the end (KIP-868). A delivery may hold the end of one
transaction and the Begin of the next: then what came before the Begin is shown first. Where Kafka
does not start over from the image before an aborted transaction, its changes are shown with the
next record (``Rules.aborted_transaction_leaks``).

::

            Begin            a record             End                 a record
    NONE ----------> STARTED ---------> CONTINUED -------> ENDED ------------------> NONE
                        |                   |   Abort
                        +---- End, Abort ---+-------------> ABORTED ---------------> NONE

Source:  KIP-868; MetadataBatchLoader.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from minicluster.effects import Effect
from minicluster.faults import Faults
from minicluster.log.batch import RecordBatch
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.delta import DeltaBuilder, MetadataDelta
from minicluster.metadata.image.folded_run import run_length
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.metadata_version import FEATURE_NAME
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.planting import Planted, step
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    VersionedRecord,
)
from minicluster.rules import Rules
from minicluster.values import Value


class LeaderAndEpoch(Value):
    """The leader of the metadata quorum; no id while it is unknown."""

    leader_id: int | None = None
    epoch: int = 0


class Provenance(Value, kw_only=True):
    """The prefix of the log that an image holds.

    Units:   the offset is inclusive, -1 for the empty log; offset_batch_aligned is true if a
             batch ends there, so that a snapshot can.
    """

    last_contained_offset: int = -1
    last_contained_epoch: int = -1
    last_contained_log_time_ms: int = -1
    offset_batch_aligned: bool = False

    @property
    def snapshot_id(self) -> tuple[int, int]:
        """The end offset, exclusive, and the epoch: the name of a snapshot of this image."""
        return self.last_contained_offset + 1, self.last_contained_epoch


class LogDeltaManifest(Value, kw_only=True):
    """Where a delta from the log comes from. Leaves out elapsed time: here is no clock."""

    provenance: Provenance
    leader: LeaderAndEpoch
    batches: tuple[RecordBatch, ...]

    @property
    def num_bytes(self) -> int:
        """The number of bytes of those batches in the log."""
        return sum(batch.size for batch in self.batches)


class SnapshotManifest(Value, kw_only=True):
    """Where a whole image comes from."""

    provenance: Provenance


class LoaderFault(Effect):
    """A record, or the absence of one, that should not be; loading continues."""

    message: str


class Update(Value, kw_only=True):
    """A delta that is ready to be published."""

    delta: MetadataDelta
    manifest: LogDeltaManifest

    @property
    def image(self) -> MetadataImage:
        """The image after it."""
        return self.delta.after


class TransactionState(Enum):
    """The place of the next records in the log."""

    NONE = "none"
    STARTED = "started"
    CONTINUED = "continued"
    ENDED = "ended"
    ABORTED = "aborted"

    @property
    def is_open(self) -> bool:
        """A transaction is open, so that the applied records may be aborted."""
        return self in (TransactionState.STARTED, TransactionState.CONTINUED)


_AFTER_RECORD = {
    TransactionState.STARTED: TransactionState.CONTINUED,
    TransactionState.ENDED: TransactionState.NONE,
    TransactionState.ABORTED: TransactionState.NONE,
}


class BatchLoader(Planted):
    """Gathers what batches change until it may be shown."""

    def __init__(
        self,
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        folds: SharedFolds | None = None,
    ) -> None:
        super().__init__(faults)
        self.folds = SharedFolds() if folds is None else folds
        self.armed: set[str] = set()  # planted faults that wait for a record
        self._rules = rules
        self.builder = DeltaBuilder(MetadataImage.EMPTY)
        self._batches: list[RecordBatch] = []
        self.provenance = Provenance()
        self.state = TransactionState.NONE
        self.has_seen_record = False
        # Of the image that the builder began with, as long as it is that one.
        self._image_counts_as_record = rules.empty_snapshot_counts_as_record

    @property
    def image(self) -> MetadataImage:
        """The image as of the last update or reset."""
        return self.builder.before

    def reset_to(self, image: MetadataImage, provenance: Provenance) -> None:
        """Continue from an image; what was gathered and not shown is dropped."""
        if image is not self.builder.before:
            empty_counts = self._rules.empty_snapshot_counts_as_record
            self._image_counts_as_record = empty_counts or not image.is_empty
        self.builder = DeltaBuilder(image)
        self._batches = []
        self.provenance = provenance
        self.state = TransactionState.NONE
        self.has_seen_record = self._image_counts_as_record

    def load(self, batch: RecordBatch, leader: LeaderAndEpoch) -> Iterator[Update | LoaderFault]:
        """Take in one batch; give an update if a transaction begins after something else."""
        last_offset = self.provenance.last_contained_offset
        records, index = batch.metadata_records, 0
        while index < len(records):
            length = run_length(records, index)
            run, offset = records[index : index + length], batch.base_offset + index
            for fault in self._replay(run, offset):
                yield LoaderFault(fault)
            begins_later = index > 0 or bool(self._batches)
            if self.state is TransactionState.STARTED and begins_later:
                self._advance(batch, last_offset, aligned=index == 0)
                yield self._update(leader)
                self.state = TransactionState.STARTED
            index += length
            last_offset = batch.base_offset + index - 1
        self._advance(batch, batch.last_offset, aligned=True)
        self._batches.append(batch)

    @step
    def flush(self, leader: LeaderAndEpoch) -> Update | None:
        """The update that a delivery ends with; none while a transaction is open."""
        if self.state.is_open:
            return None
        if self.state is TransactionState.ABORTED:
            self.builder = DeltaBuilder(self.image)
        return self._update(leader)

    def _advance(self, batch: RecordBatch, last_offset: int, *, aligned: bool) -> None:
        self.provenance = Provenance(
            last_contained_offset=last_offset,
            last_contained_epoch=batch.leader_epoch,
            last_contained_log_time_ms=batch.max_timestamp,
            offset_batch_aligned=aligned,
        )

    def _update(self, leader: LeaderAndEpoch) -> Update:
        manifest = LogDeltaManifest(
            provenance=self.provenance, leader=leader, batches=tuple(self._batches)
        )
        builder = self.builder
        delta = self.folds.delta(builder.before, builder.image, builder.build)
        update = Update(delta=delta, manifest=manifest)
        self.reset_to(update.image, self.provenance)
        return update

    def _replay(self, run: tuple[VersionedRecord, ...], offset: int) -> list[str]:
        """Apply a run, or of a run that does not fit those records that do; -> what is wrong."""
        before = self.builder.image
        try:
            self._replay_run(run, offset)
        except ReplayError as error:
            if len(run) == 1:
                return [str(error)]
            self.builder.image = before
            alone = (self._replay((record,), offset + place) for place, record in enumerate(run))
            return [fault for faults in alone for fault in faults]
        return []

    def _replay_run(self, run: tuple[VersionedRecord, ...], offset: int) -> None:
        record = run[0].record
        if isinstance(record, BeginTransactionRecord):
            if self.state.is_open:
                raise ReplayError(f"offset {offset}: a transaction begins within a transaction")
            self.state = TransactionState.STARTED
        elif isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            if not self.state.is_open:
                raise ReplayError(f"offset {offset}: a transaction ends that never began")
            self._end(aborted=isinstance(record, AbortTransactionRecord))
        else:
            self.state = _AFTER_RECORD.get(self.state, self.state)
            self.has_seen_record = True
            reject_unreadable(record, self._rules)
            apply_records(self, run, offset)

    def _end(self, *, aborted: bool) -> None:
        self.state = TransactionState.ABORTED if aborted else TransactionState.ENDED
        if aborted and not self._rules.aborted_transaction_leaks:
            # The records before the Begin were published when it came.
            self.builder = DeltaBuilder(self.image)


@step
def apply_records(loader: BatchLoader, records: tuple[VersionedRecord, ...], offset: int) -> None:
    """Change the image that is built by records."""
    for run in loader.folds.runs(loader.builder.image, records, offset):
        loader.builder.take(run)


def reject_unreadable(record: object, rules: Rules) -> None:
    """Reject a metadata.version below those that the release reads.

    Errors:  ReplayError.
    """
    if not isinstance(record, FeatureLevelRecord) or record.name != FEATURE_NAME:
        return
    if record.feature_level < rules.metadata_version_lowest:
        raise ReplayError(
            f"metadata.version {record.feature_level} is below {rules.metadata_version_lowest}, "
            f"the lowest that {rules.name} reads"
        )
