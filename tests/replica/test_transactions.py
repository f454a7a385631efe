"""Transactions in a log: open, decided, aborted, and what consumers may read of them (KIP-98)."""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.log import Log
from minicluster.log.batch import TRANSACTIONAL_BIT
from minicluster.log.control import control_records
from minicluster.protocol import ErrorCode
from minicluster.replica.partition.follower_log import append_records_to_follower, truncate
from minicluster.replica.partition.leader_log import (
    ACKS_ALL,
    LogAppendInfo,
    append_records_to_leader,
    delete_records_on_leader,
)
from minicluster.replica.partition.reads import (
    LATEST_TIMESTAMP,
    consumer_fetch_records,
    list_offsets,
)
from minicluster.replica.producers.markers import EndTransactionMarker, marker_batch
from minicluster.replica.producers.states import AppendCheck, AppendOrigin
from tests.replica.partition_kit import Bench, batch, refused

FIRST, SECOND = 7, 8


def leading(*isr: int, **fields: Any) -> Bench:
    bench = Bench(**fields)
    members = isr or (101,)
    bench.lead(replicas=members, isr=members)
    return bench


def write(bench: Bench, producer: int, sequence: int, count: int = 1, epoch: int = 0) -> Any:
    """A transactional batch."""
    return bench.append(
        count,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL_BIT,
    )


def end(
    bench: Bench,
    producer: int,
    *,
    committed: bool,
    epoch: int = 0,
    coordinator_epoch: int = 0,
    version: int = 0,
) -> LogAppendInfo:
    """The marker of a coordinator."""
    marker = EndTransactionMarker(committed, coordinator_epoch)
    return append_records_to_leader(
        bench.partition,
        marker_batch(marker, producer, epoch, bench.now_ms),
        ACKS_ALL,
        bench.now_ms,
        how=AppendCheck(origin=AppendOrigin.COORDINATOR, transaction_version=version),
    )


def stable(bench: Bench) -> tuple[int, int]:
    """Last stable offset and high watermark."""
    return bench.partition.last_stable_offset, bench.partition.high_watermark


def aborted(bench: Bench, offset: int, max_bytes: int = 1 << 20) -> list[tuple[int, int]]:
    """The aborted transactions of a fetch with read_committed: producer, first offset."""
    info = consumer_fetch_records(
        bench.partition, fetch_offset=offset, max_bytes=max_bytes, read_committed=True
    )
    assert info.aborted_transactions is not None
    return [(a.producer_id, a.first_offset) for a in info.aborted_transactions]


# --- last stable offset -----------------------------------------------------------------------


def test_an_open_transaction_holds_back_what_a_reader_of_decided_records_sees() -> None:
    bench = leading()
    bench.append(2)
    write(bench, FIRST, 0)
    write(bench, SECOND, 0)
    assert stable(bench) == (2, 4)
    end(bench, FIRST, committed=True)
    assert stable(bench) == (3, 5)
    end(bench, SECOND, committed=False)
    assert stable(bench) == (6, 6)
    assert aborted(bench, 0) == [(SECOND, 3)]
    latest = list_offsets(bench.partition, timestamp=LATEST_TIMESTAMP, read_committed=True)
    assert latest is not None and latest.offset == 6


def test_a_decision_counts_once_its_marker_is_replicated() -> None:
    bench = leading(101, 102)
    write(bench, FIRST, 0)
    end(bench, FIRST, committed=True)
    bench.fetch(102, 1)
    assert stable(bench) == (0, 1)
    bench.fetch(102, 2)
    assert stable(bench) == (2, 2)


def test_a_follower_and_a_restarted_leader_have_the_transactions_of_their_log() -> None:
    bench = Bench()
    bench.follow(102, replicas=[101, 102], isr=[102])
    transactional = {"producer_epoch": 0, "base_sequence": 0, "attributes": TRANSACTIONAL_BIT}
    marker = marker_batch(EndTransactionMarker(False, 3), FIRST, 0, 0)
    append_records_to_follower(
        bench.partition,
        [
            batch(1, base=0, epoch=5, producer_id=FIRST, **transactional),
            batch(1, base=1, epoch=5, producer_id=SECOND, **transactional),
            marker.with_base(2, 5),
        ],
        partition_leader_epoch=5,
        leader_high_watermark=3,
        leader_log_start_offset=0,
        now_ms=bench.now_ms,
    )
    assert stable(bench) == (1, 3)
    restarted = Bench(log=bench.partition.log, high_watermark=3)
    restarted.lead(replicas=[101], isr=[101], leader_epoch=6, partition_epoch=2)
    assert stable(restarted) == (1, 3)
    assert aborted(restarted, 0) == [(FIRST, 0)]
    truncate(restarted.partition, 2)
    assert [p.producer_id for p in restarted.partition.replica_log.producers.open_transactions] == [
        FIRST,
        SECOND,
    ]
    assert list(restarted.partition.log.transactions) == []


def test_a_deletion_of_records_moves_the_stable_offset_with_the_log_start() -> None:
    bench = leading()
    write(bench, FIRST, 0, 3)
    delete_records_on_leader(bench.partition, 2)
    assert stable(bench) == (2, 3)


def test_the_index_ends_where_all_was_decided() -> None:
    bench = leading()
    for sequence in range(4):
        write(bench, FIRST, sequence)
        end(bench, FIRST, committed=sequence % 2 == 0)
    index = bench.partition.log.transactions
    found = [(a.first_offset, a.last_offset, a.last_stable_offset) for a in index]
    assert found == [(2, 3, 4), (6, 7, 8)]
    assert [a.first_offset for a in index.collect(0, 4)] == [2]
    assert [a.first_offset for a in index.collect(4, 8)] == [6]


# --- refusals ---------------------------------------------------------------------------------


def test_a_record_outside_of_its_open_transaction_is_refused() -> None:
    bench = leading()
    write(bench, FIRST, 0)
    with refused(ErrorCode.INVALID_TXN_STATE):
        bench.append(1, producer_id=FIRST, producer_epoch=0, base_sequence=1)


def test_a_marker_of_a_replaced_coordinator_and_of_an_old_epoch_is_refused() -> None:
    bench = leading()
    write(bench, FIRST, 0, epoch=3)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(bench, FIRST, committed=True, epoch=2)
    end(bench, FIRST, committed=True, epoch=3, coordinator_epoch=5)
    with refused(ErrorCode.TRANSACTION_COORDINATOR_FENCED):
        end(bench, FIRST, committed=True, epoch=3, coordinator_epoch=4)


def test_by_version_2_a_marker_has_the_next_epoch_and_may_come_twice() -> None:
    bench = leading()
    write(bench, FIRST, 0)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        end(bench, FIRST, committed=True, epoch=0, version=2)
    end(bench, FIRST, committed=True, epoch=1, version=2)
    end(bench, FIRST, committed=True, epoch=1, version=2)
    with refused(ErrorCode.INVALID_PRODUCER_EPOCH):
        write(bench, FIRST, 1, epoch=0)
    write(bench, FIRST, 0, epoch=1)


def test_the_marker_is_written_as_kafka_writes_it() -> None:
    bench = leading()
    write(bench, FIRST, 0)
    end(bench, FIRST, committed=True, coordinator_epoch=9)
    marker = bench.partition.log.batches[-1]
    assert marker.is_control and marker.is_transactional and marker.base_sequence == -1
    (record,) = marker.records
    assert (record.key, record.value) == (bytes([0, 0, 0, 1]), bytes([0, 0, 0, 0, 0, 9]))
    (decoded,) = control_records(marker)
    assert (decoded.name, decoded.message.coordinator_epoch) == ("Commit", 9)


# --- verification -----------------------------------------------------------------------------


def guarded(bench: Bench, sequence: int, *, bumps: bool, epoch: int = 0, verified: bool) -> None:
    """A transactional batch as a client sends it, verified by the coordinator in between or not."""
    given = batch(
        1,
        producer_id=FIRST,
        producer_epoch=epoch,
        base_sequence=sequence,
        attributes=TRANSACTIONAL_BIT,
    )
    producers = bench.partition.replica_log.producers
    guard = producers.begin_verification(
        FIRST, epoch, sequence, supports_epoch_bump=bumps, now_ms=0
    )
    how = AppendCheck(guard=guard if verified else None)
    append_records_to_leader(bench.partition, given, 1, bench.now_ms, how=how)


def test_the_first_batch_of_a_transaction_needs_a_verification_and_later_ones_do_not() -> None:
    bench = leading()
    with refused(ErrorCode.INVALID_TXN_STATE):
        guarded(bench, 0, bumps=False, verified=False)
    guarded(bench, 0, bumps=False, verified=True)
    guarded(bench, 1, bumps=False, verified=False)


def test_a_marker_ends_the_verification_that_is_under_way() -> None:
    bench = leading()
    given = batch(
        1, producer_id=FIRST, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL_BIT
    )
    producers = bench.partition.replica_log.producers
    guard = producers.begin_verification(FIRST, 0, 0, supports_epoch_bump=False, now_ms=0)
    end(bench, FIRST, committed=False)
    with refused(ErrorCode.INVALID_TXN_STATE):
        append_records_to_leader(
            bench.partition, given, 1, bench.now_ms, how=AppendCheck(guard=guard)
        )


def test_by_version_2_the_marker_of_the_last_transaction_leaves_the_next_ones_verification() -> (
    None
):
    bench = leading()
    guarded(bench, 0, bumps=True, verified=True)
    with refused(ErrorCode.INVALID_TXN_STATE):
        guarded(bench, 0, bumps=True, epoch=1, verified=False)
    producers = bench.partition.replica_log.producers
    given = batch(
        1, producer_id=FIRST, producer_epoch=1, base_sequence=0, attributes=TRANSACTIONAL_BIT
    )
    guard = producers.begin_verification(FIRST, 1, 0, supports_epoch_bump=True, now_ms=0)
    end(bench, FIRST, committed=True, epoch=1, version=2)
    append_records_to_leader(bench.partition, given, 1, bench.now_ms, how=AppendCheck(guard=guard))


@pytest.mark.parametrize("bumps", [False, True])
def test_by_version_2_a_producer_that_is_not_known_begins_at_zero(bumps: bool) -> None:
    bench = leading()
    if not bumps:
        guarded(bench, 4, bumps=bumps, verified=True)
        return
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        guarded(bench, 4, bumps=bumps, verified=True)


def test_a_later_sequence_waits_for_the_earlier_one_that_is_being_verified() -> None:
    bench = leading()
    producers = bench.partition.replica_log.producers
    producers.begin_verification(FIRST, 0, 2, supports_epoch_bump=False, now_ms=0)
    with refused(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER):
        guarded(bench, 3, bumps=False, verified=True)
    guarded(bench, 2, bumps=False, verified=True)


def test_a_producer_with_an_open_transaction_does_not_expire() -> None:
    bench = leading(log=Log())
    write(bench, FIRST, 0)
    bench.append(1, producer_id=SECOND, producer_epoch=0, base_sequence=0)
    producers = bench.partition.replica_log.producers
    producers.remove_expired(1 << 60)
    assert [entry.producer_id for entry in producers] == [FIRST]
