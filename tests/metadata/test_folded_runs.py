"""Runs of records are folded as record by record, and nodes of one process share the results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.configs import TOPIC
from minicluster.metadata.image.metadata_image import MetadataImage, apply_all
from minicluster.metadata.shared_folds import RECORDS_MAX, RUNS_MAX, SharedFolds
from minicluster.protocol.records import (
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
    VersionedRecord,
)
from tests.metadata.records import uid
from tests.metadata.test_image_properties import FEW, logs, same


def versioned(*records: Any) -> tuple[VersionedRecord, ...]:
    return tuple(VersionedRecord(record, 0) for record in records)


def folded(
    folds: SharedFolds, image: MetadataImage, records: tuple[VersionedRecord, ...], base: int = 0
) -> MetadataImage:
    for run in folds.runs(image, records, base):
        image = run.after
    return image


def partitions(topic: int, count: int) -> list[PartitionRecord]:
    return [
        PartitionRecord(
            topic_id=uid(topic), partition_id=index, replicas=(1, 2), isr=(1, 2), leader=1
        )
        for index in range(count)
    ]


def topics(*numbers: int) -> list[TopicRecord]:
    return [TopicRecord(name=f"t{number}", topic_id=uid(number)) for number in numbers]


@FEW
@given(logs())
def test_runs_give_the_image_of_record_by_record(records: list[Any]) -> None:
    same(
        apply_all(MetadataImage.EMPTY, records),
        folded(SharedFolds(), MetadataImage.EMPTY, versioned(*records)),
    )


def test_topics_their_partitions_and_changes_of_one_partition_twice_are_one_run() -> None:
    records = [*topics(1, 2), *partitions(1, 3), *partitions(2, 2)]
    for leader in (2, 1):
        for topic in (1, 2):
            change = PartitionChangeRecord(topic_id=uid(topic), partition_id=1, leader=leader)
            records.append(change)  # type: ignore[arg-type]
    whole = apply_all(MetadataImage.EMPTY, records)
    folds = SharedFolds()
    runs = list(folds.runs(MetadataImage.EMPTY, versioned(*records), 0))
    assert [len(run.records) for run in runs] == [11]
    assert [created.name for created in runs[0].created] == ["t1", "t2"]
    same(runs[-1].after, whole)
    assert runs[-1].after.topics.partition(uid(1), 1).partition_epoch == 1  # type: ignore[union-attr]
    assert [step.partition_id for step in runs[-1].steps] == [0, 1, 2, 0, 1, 1, 1, 1, 1]


def test_a_record_that_does_not_fit_is_named_with_its_offset() -> None:
    records = versioned(*topics(1), *partitions(1, 2), *partitions(7, 1))
    with pytest.raises(ReplayError, match=r"offset 13: PartitionRecord: topic id .* does not"):
        folded(SharedFolds(), MetadataImage.EMPTY, records, 10)
    records = versioned(*topics(1), *partitions(1, 2), *topics(1))
    with pytest.raises(ReplayError, match=r"offset 13: TopicRecord: topic t1 .* a second time"):
        folded(SharedFolds(), MetadataImage.EMPTY, records, 10)


def test_the_second_node_takes_the_image_of_the_first() -> None:
    folds, records = SharedFolds(), versioned(*topics(1), *partitions(1, 9))
    first = folded(folds, MetadataImage.EMPTY, records)
    assert folded(folds, MetadataImage.EMPTY, records) is first
    assert folded(SharedFolds(), MetadataImage.EMPTY, records) is not first


def test_a_batch_that_creates_a_thousand_topics_is_folded_once_for_all_nodes() -> None:
    folds = SharedFolds()
    records = versioned(*(r for n in range(1_000) for r in (*topics(n), *partitions(n, 2))))
    first = folded(folds, MetadataImage.EMPTY, records)
    assert folded(folds, MetadataImage.EMPTY, records) is first


def test_a_record_that_changes_nothing_is_folded_once_for_all_nodes() -> None:
    folds, no_op = SharedFolds(), versioned(NoOpRecord())
    image = folded(folds, MetadataImage.EMPTY, versioned(*topics(1)))
    first = folds.run(image, no_op, 0, 1)
    assert first.after is image
    assert folds.run(image, (*no_op, *versioned(*topics(2))), 0, 1) is first
    assert folds.run(image, no_op, 0, 2) is not first
    assert folds.run(MetadataImage.EMPTY, no_op, 0, 1).after is MetadataImage.EMPTY


def test_a_node_whose_batch_is_two_of_the_leaders_takes_the_images_of_both() -> None:
    """The controller appends two decisions, and the quorum makes one batch of them."""
    folds, made = SharedFolds(), versioned(*topics(1))
    begin = folded(folds, MetadataImage.EMPTY, made)
    two, three = versioned(*partitions(1, 2)), versioned(*partitions(1, 5)[2:])
    leader = folded(folds, folded(folds, begin, two, 1), three, 3)
    assert folded(folds, begin, two + three, 1) is leader


def test_a_node_with_an_image_of_its_own_folds_for_itself() -> None:
    folds, records = SharedFolds(), versioned(*partitions(1, 3))
    right = folded(folds, MetadataImage.EMPTY, versioned(*topics(1)))
    other = folded(folds, right, versioned(*topics(2)))
    after, of_other = folded(folds, right, records, 5), folded(folds, other, records, 5)
    assert len(after.topics) == 1 and len(of_other.topics) == 2
    same(of_other, apply_all(other, [record.record for record in records]))


def test_another_record_at_the_same_offset_is_folded_for_itself() -> None:
    """A controller has folded what it decided, and lost its leadership before it was committed."""
    folds, first = SharedFolds(), versioned(*topics(1), *partitions(1, 2))
    lost = folded(folds, MetadataImage.EMPTY, first)
    kept = folded(folds, MetadataImage.EMPTY, (*first[:2], *versioned(*partitions(1, 9)[5:6])))
    assert sorted(lost.topics.get(uid(1)).partitions) == [0, 1]  # type: ignore[union-attr]
    assert sorted(kept.topics.get(uid(1)).partitions) == [0, 5]  # type: ignore[union-attr]


def test_what_is_kept_is_bounded_and_a_follower_some_records_behind_shares_it() -> None:
    folds, leader, follower = SharedFolds(), MetadataImage.EMPTY, MetadataImage.EMPTY
    records = versioned(
        *(
            ConfigRecord(resource_type=TOPIC, resource_name="t", name="a", value=str(number))
            for number in range(2 * RUNS_MAX)
        )
    )
    lag, images = RUNS_MAX // 2, []
    for offset, record in enumerate(records):
        leader = folded(folds, leader, (record,), offset)
        images.append(leader)
        if offset >= lag:
            follower = folded(
                folds, follower, records[offset - lag : offset - lag + 1], offset - lag
            )
            assert follower is images[offset - lag]
    assert len(folds._runs) == RUNS_MAX and folds._records <= RECORDS_MAX
