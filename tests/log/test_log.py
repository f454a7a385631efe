"""The log in memory, against a list of records."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from minicluster.log.batch import Record, RecordBatch
from minicluster.log.epochs import LeaderEpochs
from minicluster.log.log import Log


def batch(offset: int, count: int, epoch: int) -> RecordBatch:
    records = [Record(offset + i, 0, None, b"%d" % (offset + i)) for i in range(count)]
    return RecordBatch.of(records, leader_epoch=epoch)


class LogMachine(RuleBasedStateMachine):
    """Appends, truncations, deletions and crashes leave what a list of batches would hold."""

    def __init__(self) -> None:
        super().__init__()
        self.log = Log()
        self.model: list[RecordBatch] = []
        self.start = self.end = self.flushed = 0
        self.epoch = 0

    @rule(count=st.integers(1, 4), newer=st.booleans())
    def append(self, count: int, newer: bool) -> None:
        self.epoch += newer
        one = batch(self.end, count, self.epoch)
        self.log.append(one)
        self.model.append(one)
        self.end += count

    @rule(back=st.integers(0, 6))
    def truncate(self, back: int) -> None:
        to = max(0, self.end - back)
        self.log.truncate(to)
        self._cut(to)

    def _cut(self, to: int) -> None:
        self.model = [b for b in self.model if b.last_offset < to]
        self.end = to
        self.start = min(self.start, to)
        self.flushed = min(self.flushed, to)

    @rule(on=st.integers(0, 6))
    def delete_before(self, on: int) -> None:
        to = min(self.start + on, self.end)
        self.log.delete_before(to)
        self.start = to
        self.model = [b for b in self.model if b.last_offset >= to]

    @rule()
    def flush(self) -> None:
        self.log.flush()
        self.flushed = self.end

    @rule()
    def crash(self) -> None:
        self.log.lose_unflushed()
        self._cut(self.flushed)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        offset = data.draw(st.integers(self.start, self.end))
        until = data.draw(st.none() | st.integers(self.start, self.end))
        wanted = [
            b
            for b in self.model
            if b.last_offset >= offset and (until is None or b.last_offset < until)
        ]
        assert list(self.log.read(offset, until=until)) == wanted
        small = self.log.read(offset, max_bytes=wanted[0].size + 1 if wanted else 0, until=until)
        assert list(small) == wanted[:1]

    @invariant()
    def holds_what_the_model_holds(self) -> None:
        log = self.log
        assert list(log.batches) == self.model
        assert (log.start_offset, log.end_offset) == (self.start, self.end)
        assert log.flushed_offset == self.flushed <= log.end_offset
        epochs = log.epochs.entries
        assert list(epochs) == sorted(set(epochs))
        for one in self.model:
            assert log.epochs.epoch_of(max(one.base_offset, self.start)) == one.leader_epoch


TestLog = LogMachine.TestCase


class CountedBatches(list[RecordBatch]):
    """The batches of a log, with the number of those that were looked at."""

    looked_at = 0

    def __getitem__(self, place: Any) -> Any:
        found = super().__getitem__(place)
        self.looked_at += len(found) if isinstance(place, slice) else 1
        return found

    def __iter__(self) -> Iterator[RecordBatch]:
        for one in super().__iter__():
            self.looked_at += 1
            yield one


def test_a_read_at_the_end_of_a_long_log_looks_at_its_last_batches_only() -> None:
    log = Log()
    log.extend(batch(offset, 1, 1) for offset in range(300))
    counted = log._batches = CountedBatches(log._batches)
    assert [one.base_offset for one in log.read(298)] == [298, 299]
    assert [one.base_offset for one in log.read(298, until=299)] == [298]
    assert log.read(300) == ()
    assert counted.looked_at <= 8


def test_an_append_below_the_end_is_the_callers_bug() -> None:
    log = Log()
    log.append(batch(0, 3, 1))
    with pytest.raises(ValueError, match="below the log end 3"):
        log.append(batch(2, 1, 1))


def test_the_end_of_an_epoch_is_where_the_next_begins() -> None:
    """The latest, above the latest, between two, below the first, none."""
    epochs = LeaderEpochs(((2, 10), (5, 20), (7, 35)))
    assert epochs.end_offset_for(7, 50) == (7, 50)
    assert epochs.end_offset_for(8, 50) == (-1, -1)
    assert epochs.end_offset_for(6, 50) == (5, 35)
    assert epochs.end_offset_for(5, 50) == (5, 35)
    assert epochs.end_offset_for(1, 50) == (1, 10)
    assert LeaderEpochs().end_offset_for(1, 50) == (-1, -1)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=12))
def test_epochs_and_starts_always_ascend(assignments: list[tuple[int, int]]) -> None:
    epochs = LeaderEpochs()
    for epoch, start in assignments:
        epochs.assign(epoch, start)
        entries = epochs.entries
        assert all(a < b and s < t for (a, s), (b, t) in pairwise(entries))


def test_a_negative_epoch_is_refused() -> None:
    with pytest.raises(ValueError, match="neither may be negative"):
        LeaderEpochs().assign(-1, 3)


def test_snapshots_are_ordered_by_their_epoch_before_their_end_offset() -> None:
    log = Log()
    log.snapshots = {(31, 11): b"", (24, 12): b"", (19, 11): b""}
    assert log.latest_snapshot == (24, 12)
    assert log.earliest_snapshot == (19, 11)
    assert log.last_epoch == 12
