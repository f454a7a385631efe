"""The fold of a log with its transactions: what may be shown at each offset.

Source:  KIP-868; OffsetControlManager, MetadataBatchLoader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from minicluster.log.batch import RecordBatch
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    VersionedRecord,
)
from minicluster.values import replace


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedFold:
    """An image as of a prefix of the log, and as of the transaction that the prefix leaves open.

    Shapes:  image has only what is decided; latest has an open transaction's changes as well.
    """

    EMPTY: ClassVar[CommittedFold]

    image: MetadataImage = MetadataImage.EMPTY
    latest: MetadataImage = MetadataImage.EMPTY
    in_transaction: bool = False

    @classmethod
    def starting_from(cls, image: MetadataImage) -> CommittedFold:
        """Go on from an image, outside of any transaction."""
        return cls(image=image, latest=image)

    def apply(self, record: Any, *, offset: int = -1) -> CommittedFold:
        """This fold after one record.

        Errors:  ReplayError; this fold is unchanged.
        """
        if isinstance(record, VersionedRecord):
            record = record.record
        if isinstance(record, BeginTransactionRecord):
            if self.in_transaction:
                raise ReplayError(f"offset {offset}: a transaction begins within a transaction")
            return replace(self, in_transaction=True)
        if isinstance(record, EndTransactionRecord | AbortTransactionRecord):
            if not self.in_transaction:
                raise ReplayError(f"offset {offset}: a transaction ends that never began")
            aborted = isinstance(record, AbortTransactionRecord)
            return CommittedFold.starting_from(self.image if aborted else self.latest)
        latest = apply(self.latest, record, offset=offset)
        return replace(self, latest=latest, image=self.image if self.in_transaction else latest)

    def apply_batch(self, batch: RecordBatch) -> CommittedFold:
        """This fold after every record of a batch; control batches change nothing.

        Errors:  ReplayError; this fold is unchanged.
        """
        fold = self
        for index, record in enumerate(batch.metadata_records):
            fold = fold.apply(record, offset=batch.base_offset + index)
        return fold


CommittedFold.EMPTY = CommittedFold()


def images_by_end_offset(
    batches: Iterable[RecordBatch], start: CommittedFold = CommittedFold.EMPTY
) -> Iterator[tuple[int, MetadataImage]]:
    """After each batch, the offset that comes next and what may be shown there.

    Errors:  ReplayError.
    """
    fold = start
    for batch in batches:
        fold = fold.apply_batch(batch)
        yield batch.next_offset, fold.image
