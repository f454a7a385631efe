"""The transitions of one transactional id: epochs, producer ids, states.

The cases are those of Kafka's TransactionMetadataTest, with the names of its tests beside them.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minicluster.coordinator.runtime.shard import OperationError
from minicluster.coordinator.transaction.transaction import (
    COMPLETED,
    MAX_EPOCH,
    VALID_PREVIOUS_STATES,
    IllegalTransition,
    Transaction,
    TransactionMetadata,
    TransactionState,
    transaction_of,
    transaction_record,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.transaction import (
    TransactionLogKey,
    TransactionLogValue,
)
from minicluster.values import replace

S = TransactionState
PRODUCER_ID, TIMEOUT_MS, NOW_MS = 23423, 30_000, 1_000
T0, T1 = ("t", 0), ("t", 1)


def _transaction(**fields: Any) -> Transaction:
    defaults = {
        "transactional_id": "x",
        "producer_id": PRODUCER_ID,
        "producer_epoch": 735,
        "timeout_ms": TIMEOUT_MS,
        "last_update_ms": 0,
    }
    return Transaction(TransactionMetadata(**{**defaults, **fields}))


def _increment(transaction: Transaction, expected: int | None = None) -> TransactionMetadata:
    new = transaction.prepare_increment_producer_epoch(TIMEOUT_MS, expected, NOW_MS)
    transaction.complete_transition_to(new)
    return transaction.metadata


def _rotate(transaction: Transaction, *, record_last_epoch: bool) -> TransactionMetadata:
    new = transaction.prepare_producer_id_rotation(
        PRODUCER_ID + 1, TIMEOUT_MS, NOW_MS, record_last_epoch=record_last_epoch
    )
    transaction.complete_transition_to(new)
    return transaction.metadata


@pytest.mark.parametrize(
    ("epoch", "last", "expected", "given"),
    [
        (-1, -1, None, (0, -1)),  # testInitializeEpoch
        (735, -1, None, (736, -1)),  # testNormalEpochBump
        (735, 734, None, (736, -1)),  # a new producer: the one before it cannot go on
        (-1, -1, 735, (0, -1)),  # testAttemptedEpochBumpWithNewlyCreatedMetadata
        (735, -1, 735, (736, 735)),  # testEpochBumpWithCurrentEpochProvided
        (735, 734, 734, (735, 734)),  # testAttemptedEpochBumpWithLastEpoch: a repeated request
    ],
)
def test_the_epoch_rises_once_for_each_initialization(
    epoch: int, last: int, expected: int | None, given: tuple[int, int]
) -> None:
    after = _increment(_transaction(producer_epoch=epoch, last_producer_epoch=last), expected)
    assert (after.producer_epoch, after.last_producer_epoch) == given
    assert (after.state, after.prev_producer_id, after.start_ms) == (S.EMPTY, PRODUCER_ID, -1)


@pytest.mark.parametrize("expected", [733, 736])  # testAttemptedEpochBumpWithFencedEpoch
def test_a_producer_of_another_epoch_is_fenced(expected: int) -> None:
    with pytest.raises(OperationError) as refused:
        _increment(_transaction(last_producer_epoch=734), expected)
    assert refused.value.error == ErrorCode.PRODUCER_FENCED


def test_no_epoch_is_given_once_they_are_exhausted() -> None:
    """Source: testBumpEpochNotAllowedIfEpochsExhausted."""
    with pytest.raises(OperationError) as refused:
        _increment(_transaction(producer_epoch=MAX_EPOCH - 1))
    assert refused.value.error == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize(("recorded", "last"), [(True, 735), (False, -1)])
def test_an_exhausted_producer_id_is_replaced(recorded: bool, last: int) -> None:
    """Source: testRotateProducerId, testRotateProducerIdInOngoingState and the others."""
    after = _rotate(_transaction(), record_last_epoch=recorded)
    assert (after.producer_id, after.producer_epoch) == (PRODUCER_ID + 1, 0)
    assert (after.prev_producer_id, after.last_producer_epoch) == (PRODUCER_ID, last)
    for state in set(S) - COMPLETED:
        with pytest.raises(IllegalTransition):
            _rotate(_transaction(state=state), record_last_epoch=recorded)


def test_a_fence_bumps_the_epoch_once_until_it_is_in_the_log() -> None:
    """Source: testFenceProducerAfterEpochsExhausted, ...NotAllowedIfItWouldOverflow."""
    transaction = _transaction(producer_epoch=MAX_EPOCH - 1, state=S.ONGOING)
    assert transaction.prepare_fence_producer_epoch().producer_epoch == MAX_EPOCH
    transaction.pending_state = None
    transaction.has_failed_epoch_fence = True
    assert transaction.prepare_fence_producer_epoch().producer_epoch == MAX_EPOCH - 1
    broken = _transaction(producer_epoch=MAX_EPOCH, state=S.ONGOING)
    assert broken.prepare_fence_producer_epoch().producer_epoch == MAX_EPOCH


@pytest.mark.parametrize("state", [state for state in S if state is not S.ONGOING])
def test_only_the_producer_of_an_open_transaction_is_fenced(state: TransactionState) -> None:
    """Source: testInvalidTransitionFromCompleteCommitToFence, ...CompleteAbortToFence."""
    with pytest.raises(IllegalTransition):
        _transaction(state=state).prepare_fence_producer_epoch()


def test_partitions_come_in_while_the_transaction_began_with_the_first() -> None:
    """Source: testTransitFromEmptyToOngoing, testTolerateTimeShiftDuringAddPartitions."""
    transaction = _transaction()
    for partitions, now_ms in (((T0,), 100), ((T1, T0), 90)):  # the clock may go back
        new = transaction.prepare_add_partitions(partitions, now_ms, 0)
        transaction.complete_transition_to(new)
    after = transaction.metadata
    assert (after.state, after.partitions) == (S.ONGOING, (T0, T1))
    assert (after.start_ms, after.last_update_ms) == (100, 90)


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize("level", [0, 2])
def test_an_end_is_prepared_and_completed(commit: bool, level: int) -> None:
    """Source: testEpochBumpOnEndTxn, testTransitFromOngoingToPrepareCommit and ...Abort."""
    transaction = _transaction(state=S.ONGOING, partitions=(T0,), start_ms=5)
    state = S.PREPARE_COMMIT if commit else S.PREPARE_ABORT
    new = transaction.prepare_abort_or_commit(state, level, -1, NOW_MS)
    transaction.complete_transition_to(new)
    epochs = (736, 735) if level == 2 else (735, -1)
    assert (new.producer_epoch, new.last_producer_epoch) == epochs
    transaction.remove_partitions([T0])
    transaction.complete_transition_to(transaction.prepare_complete(NOW_MS))
    after = transaction.metadata
    assert after.state is (S.COMPLETE_COMMIT if commit else S.COMPLETE_ABORT)
    assert (after.producer_epoch, after.last_producer_epoch) == epochs
    assert (after.partitions, after.start_ms) == ((), 5)


def test_an_end_at_the_last_epoch_gives_the_next_producer_id() -> None:
    """Source: testEpochOverflowOnEndTxn."""
    transaction = _transaction(producer_epoch=MAX_EPOCH - 1, state=S.ONGOING, start_ms=5)
    new = transaction.prepare_abort_or_commit(S.PREPARE_COMMIT, 2, PRODUCER_ID + 1, NOW_MS)
    assert (new.producer_id, new.producer_epoch) == (PRODUCER_ID, MAX_EPOCH)
    transaction.complete_transition_to(new)
    transaction.complete_transition_to(transaction.prepare_complete(NOW_MS))
    after = transaction.metadata
    assert (after.producer_id, after.producer_epoch) == (PRODUCER_ID + 1, 0)
    assert (after.prev_producer_id, after.next_producer_id) == (PRODUCER_ID, -1)
    assert after.last_producer_epoch == MAX_EPOCH - 1  # the last one that a client has seen


def test_an_abort_without_partitions_begins_when_it_is_decided() -> None:
    for state in COMPLETED:
        transaction = _transaction(state=state)
        new = transaction.prepare_abort_or_commit(
            S.PREPARE_ABORT, 2, -1, NOW_MS, no_partition_added=True
        )
        transaction.complete_transition_to(new)
        assert transaction.metadata.start_ms == NOW_MS


def test_a_transition_waits_for_the_one_before_it() -> None:
    transaction = _transaction()
    transaction.prepare_add_partitions([T0], NOW_MS, 0)
    with pytest.raises(IllegalTransition):
        transaction.prepare_add_partitions([T1], NOW_MS, 0)


@pytest.mark.parametrize(
    ("state", "following"), list(itertools.product(S, S)), ids=lambda state: state.state_name
)
def test_every_pair_of_states(state: TransactionState, following: TransactionState) -> None:
    """Source: testStateTransitions; TransactionState.VALID_PREVIOUS_STATES."""
    transaction = _transaction(state=state)
    prepare = {
        S.EMPTY: lambda: transaction.prepare_increment_producer_epoch(1, None, 0),
        S.ONGOING: lambda: transaction.prepare_add_partitions([T0], 0, 0),
        S.PREPARE_COMMIT: lambda: transaction.prepare_abort_or_commit(S.PREPARE_COMMIT, 0, -1, 0),
        S.PREPARE_ABORT: lambda: transaction.prepare_abort_or_commit(S.PREPARE_ABORT, 0, -1, 0),
        S.DEAD: transaction.prepare_dead,
        S.PREPARE_EPOCH_FENCE: transaction.prepare_fence_producer_epoch,
    }.get(following, lambda: transaction.prepare_complete(0))
    if following in (S.COMPLETE_COMMIT, S.COMPLETE_ABORT):  # the state before has the decision
        following = S.COMPLETE_COMMIT if state is S.PREPARE_COMMIT else S.COMPLETE_ABORT
    if state in VALID_PREVIOUS_STATES[following]:
        assert prepare().state is following
        assert transaction.pending_state is following
    else:
        with pytest.raises(IllegalTransition):
            prepare()


@pytest.mark.parametrize(
    "wrong",
    [
        {"state": S.COMPLETE_ABORT},
        {"producer_id": PRODUCER_ID + 9},
        {"producer_epoch": 900},
        {"partitions": (T1,)},
        {"timeout_ms": 1},
        {"start_ms": 99},
    ],
    ids=str,
)
def test_a_transition_that_does_not_follow_is_no_state(wrong: dict[str, Any]) -> None:
    """Source: testInvalidTransitionWithProducerId and the others."""
    transaction = _transaction(state=S.ONGOING, partitions=(T0,), start_ms=5)
    new = transaction.prepare_abort_or_commit(S.PREPARE_COMMIT, 0, -1, NOW_MS)
    with pytest.raises(IllegalTransition):
        transaction.complete_transition_to(replace(new, **wrong))


_EPOCHS = st.integers(0, MAX_EPOCH)
_METADATA = st.builds(
    TransactionMetadata,
    transactional_id=st.text(max_size=5),
    producer_id=st.integers(0, 1 << 40),
    prev_producer_id=st.integers(-1, 1 << 40),
    next_producer_id=st.integers(-1, 1 << 40),
    producer_epoch=_EPOCHS,
    timeout_ms=st.integers(1, 1 << 30),
    state=st.sampled_from([S.ONGOING, S.PREPARE_COMMIT, S.COMPLETE_COMMIT, S.COMPLETE_ABORT]),
    partitions=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 40)), unique=True, max_size=30
    ).map(tuple),
    start_ms=st.integers(-1, 1 << 50),
    last_update_ms=st.integers(0, 1 << 50),
    client_transaction_version=st.integers(0, 2),
)


@given(_METADATA, st.integers(0, 2))
def test_what_is_written_is_read(metadata: TransactionMetadata, level: int) -> None:
    record = transaction_record(metadata, level)
    assert isinstance(record.key, TransactionLogKey)
    assert isinstance(record.value, TransactionLogValue)
    assert record.version == min(level, 1)
    read = transaction_of(record.key, record.value)
    kept = {} if level else {"prev_producer_id": -1, "next_producer_id": -1}
    if not level:
        kept["client_transaction_version"] = 0
    expected = replace(metadata, **kept, partitions=())
    assert replace(read, partitions=()) == expected
    assert set(read.partitions) == set(metadata.partitions)
