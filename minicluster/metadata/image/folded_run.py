"""Runs of records, folded at once: the image after them, and what each has changed.

A fencing changes a third of all partitions by ten thousand records, a request creates thousands of
topics, and each node of a cluster applies them. An image for each record would cost more than the
changes themselves.

**Invariant:** the image after a run is that of ``apply``, record by record
(tests/metadata/test_folded_runs.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage, apply
from minicluster.metadata.image.topics import PartitionStep, TopicsBuilder
from minicluster.protocol.records import (
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    VersionedRecord,
)
from minicluster.values import Value, replace

Records = Sequence[VersionedRecord]

RECORDS_MAX = 500  # of a run, which is what the nodes of a process share (``shared_folds.py``)


class FoldedRun(Value):
    """Consecutive records and the images around them.

    Shapes:  either records of new topics and of partitions alone, with a step for each of the
             latter, or one record of another kind, where touched is None.
    Units:   base_offset is that of the first record.
    """

    records: tuple[VersionedRecord, ...]
    base_offset: int
    before: MetadataImage
    after: MetadataImage
    steps: tuple[PartitionStep, ...] = ()
    touched: dict[UUID, dict[int, None]] | None = None
    created: tuple[TopicRecord, ...] = ()

    @property
    def last_offset(self) -> int:
        """The offset of the last record."""
        return self.base_offset + len(self.records) - 1

    @property
    def message(self) -> Any:
        """The first record, the only one where it is of no new topic and of no partition."""
        return self.records[0].record


def run_length(records: Records, start: int) -> int:
    """The number of records of the run that begins at a position."""
    end, limit = start, min(len(records), start + RECORDS_MAX)
    while end < limit and type(records[end].record) in _OF_TOPICS:
        end += 1
    return max(1, end - start)


def fold_run(
    image: MetadataImage, records: tuple[VersionedRecord, ...], base_offset: int
) -> FoldedRun:
    """Fold one run.

    Errors:  ReplayError where a record does not fit.
    """
    first = records[0].record
    if type(first) not in _OF_TOPICS:
        after = apply(image, first, offset=base_offset)
        return FoldedRun(records, base_offset, image, after)
    builder = TopicsBuilder(image.topics)
    steps: list[PartitionStep] = []
    created: list[TopicRecord] = []
    touched: dict[UUID, dict[int, None]] = {}
    for versioned in records:
        record: Any = versioned.record
        try:
            if type(record) is TopicRecord:
                builder.add_topic(record)
                created.append(record)
                continue
            if type(record) is PartitionChangeRecord:
                step = builder.change_partition(record)
            else:
                step = builder.add_partition(record)
        except ReplayError as error:
            offset = base_offset + len(created) + len(steps)
            raise ReplayError(f"offset {offset}: {type(record).__name__}: {error}") from error
        steps.append(step)
        indexes = touched.get(step.topic_id)
        if indexes is None:
            indexes = touched[step.topic_id] = {}
        indexes[step.partition_id] = None
    after = replace(image, topics=builder.build())
    return FoldedRun(
        records, base_offset, image, after, tuple(steps), touched, created=tuple(created)
    )


_OF_TOPICS = frozenset({TopicRecord, PartitionRecord, PartitionChangeRecord})
