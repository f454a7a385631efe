"""The fold with transactions: what is decided, and what an open transaction would make of it."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.metadata.errors import ReplayError
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
)
from tests.metadata.committed_fold import CommittedFold, images_by_end_offset
from tests.metadata.records import batch, partition, topic, version

BEGIN, END, ABORT = BeginTransactionRecord(), EndTransactionRecord(), AbortTransactionRecord()


def fold(*records: Any) -> CommittedFold:
    state = CommittedFold.EMPTY
    for offset, record in enumerate(records):
        state = state.apply(record, offset=offset)
    return state


def names(image: Any) -> list[str]:
    return [shown.name for shown in image.topics]


def test_an_open_transaction_is_in_the_latest_image_only() -> None:
    state = fold(topic("a", 1), BEGIN, topic("b", 2))
    assert state.in_transaction
    assert (names(state.image), names(state.latest)) == (["a"], ["a", "b"])


def test_its_end_decides_it() -> None:
    ended = fold(topic("a", 1), BEGIN, topic("b", 2), END)
    assert names(ended.image) == names(ended.latest) == ["a", "b"]
    aborted = fold(topic("a", 1), BEGIN, topic("b", 2), ABORT, topic("c", 3))
    assert names(aborted.image) == names(aborted.latest) == ["a", "c"]


@pytest.mark.parametrize("records", [[BEGIN, BEGIN], [END], [ABORT], [BEGIN, END, END]])
def test_marks_out_of_place_are_refused(records: list[Any]) -> None:
    with pytest.raises(ReplayError, match=f"offset {len(records) - 1}"):
        fold(*records)


def test_records_inside_a_transaction_build_on_each_other() -> None:
    with pytest.raises(ReplayError):
        fold(BEGIN, topic("a", 1), ABORT, partition(1))
    assert fold(BEGIN, topic("a", 1), partition(1), END).image.topics.named("a") is not None


def test_images_are_found_by_the_offset_that_comes_next() -> None:
    batches = [batch(0, version(30), BEGIN), batch(2, topic("a", 1)), batch(3, END)]
    assert [(end, names(image)) for end, image in images_by_end_offset(batches)] == [
        (2, []),
        (3, []),
        (4, ["a"]),
    ]
