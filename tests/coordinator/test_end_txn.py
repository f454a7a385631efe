"""EndTxn by both protocols: the cases of Kafka's TransactionCoordinatorTest.

The cases have the names of its tests beside them.
"""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.coordinator.transaction.transaction import (
    MAX_EPOCH,
    TransactionState,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from tests.coordinator.transaction_bench import T0, T1, Bench

S = TransactionState
E = ErrorCode

ITS, PF, CT = E.INVALID_TXN_STATE, E.PRODUCER_FENCED, E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize(
    ("state", "abort", "commit"),
    [
        (S.EMPTY, ITS, ITS),
        (S.ONGOING, E.NONE, E.NONE),
        (S.PREPARE_COMMIT, ITS, CT),
        (S.PREPARE_ABORT, CT, ITS),
        (S.COMPLETE_COMMIT, ITS, E.NONE),
        (S.COMPLETE_ABORT, E.NONE, ITS),
    ],
    ids=lambda value: value.name,
)
def test_an_end_with_the_old_protocol(
    state: TransactionState, abort: ErrorCode, commit: ErrorCode
) -> None:
    """Source: shouldReturnOkOnEndTxnWhenStatusIsCompleteCommitAndResultIsCommit, and the others."""
    for is_commit, error in ((False, abort), (True, commit)):
        bench = Bench()
        producer = bench.producer()
        bench.set_state(state, partitions=(T0,), start_ms=1)
        for given, wanted in ((producer, error), ((producer[0], 9), PF), ((9, 0), _MAPPING)):
            response = bench.end(given, commit=is_commit, version=4)
            assert (response.error_code, response.producer_id) == (wanted, -1)
            bench.set_state(state, partitions=(T0,), start_ms=1)
        assert bench.end((producer[0], 9), version=1).error_code == E.INVALID_PRODUCER_EPOCH


_MAPPING = E.INVALID_PRODUCER_ID_MAPPING
_BUMP = (E.NONE, 6)
_REPEATED = (E.NONE, 5)


@pytest.mark.parametrize(
    ("state", "repeated_abort", "abort", "repeated_commit", "commit"),
    [
        (S.EMPTY, PF, _BUMP, PF, ITS),
        (S.ONGOING, PF, _BUMP, PF, _BUMP),
        (S.PREPARE_COMMIT, ITS, PF, CT, PF),
        (S.PREPARE_ABORT, CT, PF, ITS, PF),
        (S.COMPLETE_ABORT, _REPEATED, _BUMP, ITS, ITS),
        (S.COMPLETE_COMMIT, ITS, _BUMP, _REPEATED, ITS),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_an_end_bumps_the_epoch(
    state: TransactionState, repeated_abort: Any, abort: Any, repeated_commit: Any, commit: Any
) -> None:
    """Source: the table of TransactionCoordinator.endTransaction; testEndTxn... with V2."""
    for is_commit, epoch, expected in (
        (False, 4, repeated_abort),
        (False, 5, abort),
        (True, 4, repeated_commit),
        (True, 5, commit),
    ):
        bench = Bench()
        producer_id, _ = bench.producer()
        bench.set_state(state, producer_epoch=5, start_ms=1)
        response = bench.end((producer_id, epoch), commit=is_commit)
        error, given = expected if isinstance(expected, tuple) else (expected, -1)
        assert (response.error_code, response.producer_epoch) == (error, given), (is_commit, epoch)


@pytest.mark.parametrize("version", [4, 5])
@pytest.mark.parametrize(("transactional_id", "error"), [("", E.INVALID_REQUEST), ("y", _MAPPING)])
def test_an_end_of_nothing(version: int, transactional_id: str, error: ErrorCode) -> None:
    bench = Bench()
    response = bench.end(bench.producer(), version=version, transactional_id=transactional_id)
    assert (response.error_code, response.producer_id) == (error, -1)


def test_the_epochs_run_out_at_an_end() -> None:
    """Source: shouldGenerateNewProducerIdIfEpochsExhaustedV2, and a repeated end after it."""
    bench = Bench()
    producer_id, _ = bench.producer()
    last = MAX_EPOCH - 1
    bench.set_state(S.ONGOING, producer_epoch=last, partitions=(T0,), start_ms=1)
    for _ in range(2):
        response = bench.end((producer_id, last))
        assert response.error_code == E.NONE
        assert (response.producer_id, response.producer_epoch) == (producer_id + 1, 0)
    assert bench.written[0].producer_epoch == MAX_EPOCH
    assert bench.add((producer_id, last), version=5) == _MAPPING
    assert bench.add((producer_id + 1, 0), version=5) == E.NONE


def test_an_end_is_given_before_the_markers_are_written() -> None:
    bench = Bench()
    producer = bench.producer()
    bench.add(producer)
    bench.holds = True
    assert bench.end(producer).producer_epoch == 1
    assert bench.state() == "PrepareCommit"
    assert bench.add((0, 1), version=5) == CT
    bench.write_markers()
    assert bench.state() == "CompleteCommit"
    assert bench.add((0, 1), version=5) == E.NONE


def test_one_transition_at_a_time() -> None:
    """Source: shouldRespondWithConcurrentTransactions... while a record is not committed."""
    bench = Bench()
    producer = bench.producer()
    bench.add(producer)
    bench.log.mark = bench.log.end
    assert bench.end(producer) is None
    assert bench.init().error_code == CT
    assert bench.add(producer, T1) == CT
    assert bench.end(producer).error_code == CT
    assert bench.end(producer, version=4).error_code == CT
    assert bench.add(producer, T0, version=5, verify_only=True) == E.NONE
    assert bench.state() == "Ongoing"  # as it is committed
    bench.commit()
    assert bench.state() == "CompleteCommit"


def test_a_record_that_is_not_committed_in_time_ends_the_transition() -> None:
    bench = Bench()
    producer = bench.producer(transaction_timeout_ms=5_000)
    bench.log.mark = bench.log.end
    token = bench.send(
        m.EndTxnRequest(transactional_id="x", producer_id=0, producer_epoch=0, committed=False), 5
    )
    bench.advance(4_999)
    assert token not in bench.given
    bench.advance(2)
    assert bench.given[token].error_code == E.COORDINATOR_NOT_AVAILABLE
    assert bench.transaction().pending_state is None
    assert bench.state() == "Empty"
    bench.log.mark = None
    assert bench.add(producer) == E.NONE


@pytest.mark.parametrize(
    ("rules", "error"),
    [(Rules.KAFKA_4_3, CT), (Rules.KAFKA_3_9, E.INVALID_PRODUCER_ID_MAPPING)],
    ids=["4.3", "3.9"],
)
def test_a_pending_transition_hides_another_producer(rules: Rules, error: ErrorCode) -> None:
    """Source: TransactionCoordinator.handleAddPartitionsToTransaction."""
    bench = Bench(rules=rules)
    producer_id, epoch = bench.producer()
    bench.transaction().pending_state = S.ONGOING
    assert bench.add((producer_id + 1, epoch)) == error
    assert bench.add((producer_id, epoch)) == CT
