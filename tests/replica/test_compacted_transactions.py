"""Compaction and transactions: aborted records go at once, a marker after its last record."""

from __future__ import annotations

from minicluster.log import Record, RecordBatch
from minicluster.log.batch import TRANSACTIONAL_BIT
from minicluster.replica.log_cleaning import compact
from minicluster.replica.partition.leader_log import ACKS_ALL, append_records_to_leader
from minicluster.replica.producers.markers import EndTransactionMarker, marker_batch
from minicluster.replica.producers.states import AppendCheck, AppendOrigin
from tests.replica.partition_kit import Bench
from tests.replica.test_compaction import DAY_MS, leading, roll


def write(bench: Bench, key: bytes, value: bytes, sequence: int) -> None:
    """A transactional record."""
    batch = RecordBatch.of(
        [Record(0, bench.now_ms, key, value)],
        leader_epoch=-1,
        producer_id=7,
        producer_epoch=0,
        base_sequence=sequence,
        attributes=TRANSACTIONAL_BIT,
    )
    how = AppendCheck(verifies=False)
    append_records_to_leader(bench.partition, batch, 1, bench.now_ms, how=how)


def end(bench: Bench, *, committed: bool) -> None:
    """The marker of the coordinator."""
    marker = marker_batch(EndTransactionMarker(committed, 0), 7, 0, bench.now_ms)
    how = AppendCheck(origin=AppendOrigin.COORDINATOR)
    append_records_to_leader(bench.partition, marker, ACKS_ALL, bench.now_ms, how=how)


def kept(bench: Bench) -> list[tuple[int, int, bool]]:
    """Base offset, number of records, and marker or not, of each batch."""
    return [(b.base_offset, b.count, b.is_control) for b in bench.partition.log.batches]


def test_an_aborted_record_hides_no_committed_one_and_goes() -> None:
    bench = leading(min_cleanable_dirty_ratio=0.0)
    write(bench, b"a", b"1", 0)
    end(bench, committed=True)
    write(bench, b"a", b"2", 1)
    end(bench, committed=False)
    roll(bench)
    write(bench, b"b", b"1", 2)
    end(bench, committed=True)
    compact(bench.partition, bench.now_ms)
    assert kept(bench) == [(0, 1, False), (1, 1, True), (3, 1, True), (4, 1, False), (5, 1, True)]
    index = [(a.first_offset, a.last_offset) for a in bench.partition.log.transactions]
    assert index == [(2, 3)]


def test_a_marker_without_records_goes_after_its_time() -> None:
    bench = leading(min_cleanable_dirty_ratio=0.0)
    write(bench, b"a", b"1", 0)
    end(bench, committed=False)
    roll(bench)
    for sequence in (1, 2):
        write(bench, b"c", b"%d" % sequence, sequence)
        end(bench, committed=True)
        roll(bench)
        compact(bench.partition, bench.now_ms)
    (marker,) = [b for b in bench.partition.log.batches if b.base_offset == 1]
    assert marker.delete_horizon_ms == bench.now_ms + DAY_MS
    assert list(bench.partition.log.transactions) == []
    bench.now_ms += DAY_MS
    write(bench, b"c", b"3", 3)
    end(bench, committed=True)
    roll(bench)
    compact(bench.partition, bench.now_ms)
    assert all(b.base_offset != 1 for b in bench.partition.log.batches)


def test_nothing_at_or_above_an_open_transaction_is_cleaned() -> None:
    bench = leading(min_cleanable_dirty_ratio=0.0)
    write(bench, b"a", b"1", 0)
    roll(bench)
    write(bench, b"b", b"1", 1)
    roll(bench)
    before = kept(bench)
    compact(bench.partition, bench.now_ms)
    assert kept(bench) == before


def test_a_transaction_that_was_aborted_in_the_clean_part_takes_no_later_record_with_it() -> None:
    """The index still has it, for its marker (LocalLog.collectAbortedTransactions)."""
    bench = leading(min_cleanable_dirty_ratio=0.0)
    write(bench, b"a", b"1", 0)
    end(bench, committed=False)
    roll(bench)
    compact(bench.partition, bench.now_ms)
    assert [a.last_offset for a in bench.partition.log.transactions] == [1]
    for sequence in (1, 2):
        write(bench, b"c", b"%d" % sequence, sequence)
    end(bench, committed=True)
    roll(bench)
    compact(bench.partition, bench.now_ms)
    records = [(r.key, r.value) for b in bench.partition.log.batches for r in b.records]
    assert [value for key, value in records if key == b"c"] == [b"2"]
