"""Requests to a transaction coordinator: the cases of Kafka's TransactionCoordinatorTest.

The cases have the names of its tests beside them. Leaders write markers at once, unless a test
holds their responses.
"""

from __future__ import annotations

from typing import Any

import pytest

from minicluster.coordinator.transaction.transaction import (
    MAX_EPOCH,
    TransactionState,
)
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.protocol import ErrorCode
from minicluster.protocol import messages as m
from minicluster.rules import Rules
from tests.coordinator.memory_log import Log
from tests.coordinator.transaction_bench import OTHER, OWN, T0, T1, Bench, image

S = TransactionState
E = ErrorCode


# --- InitProducerId ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "version", "error"),
    [
        # shouldReturnInvalidRequestWhenTransactionalIdIsEmpty
        ({"transactional_id": ""}, 5, E.INVALID_REQUEST),
        ({"producer_id": 4}, 5, E.INVALID_REQUEST),
        ({"producer_epoch": 4}, 5, E.INVALID_REQUEST),
        ({"transaction_timeout_ms": 0}, 5, E.INVALID_TRANSACTION_TIMEOUT),
        ({"transaction_timeout_ms": 900_001}, 5, E.INVALID_TRANSACTION_TIMEOUT),
        # shouldReturnTransactionalIdAuthorizationFailed: two-phase commit is off
        ({"enable2_pc": True}, 6, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"keep_prepared_txn": True}, 6, E.UNSUPPORTED_VERSION),
    ],
)
def test_an_initialization_is_refused(fields: Any, version: int, error: ErrorCode) -> None:
    bench = Bench()
    response = bench.init(version=version, **{"transactional_id": "x", **fields})
    assert (response.error_code, response.producer_id, response.producer_epoch) == (error, -1, -1)


def test_each_initialization_bumps_the_epoch() -> None:
    """Source: shouldInitPidWithEpochZeroForNewTransactionalId, shouldIncrementEpoch...Empty."""
    bench = Bench()
    assert [bench.producer() for _ in range(3)] == [(0, 0), (0, 1), (0, 2)]
    assert bench.producer("y") == (1, 0)
    assert bench.producer(None) == (2, 0)  # idempotent only: nothing is kept of it


def test_a_producer_goes_on_after_an_error() -> None:
    """Source: testInitProducerIdWithCurrentEpochProvided, ...StaleCurrentEpochProvided."""
    bench = Bench()
    producer_id, epoch = bench.producer()
    given = {"producer_id": producer_id, "producer_epoch": epoch}
    assert bench.producer(**given) == (producer_id, 1)
    assert bench.producer(**given) == (producer_id, 1)  # the response was lost
    bench.producer()
    for version, error in ((3, E.INVALID_PRODUCER_EPOCH), (4, E.PRODUCER_FENCED)):
        assert bench.init(version=version, **given).error_code == error
    # testFenceProducerWhenMappingExistsWithDifferentProducerId
    assert bench.init(producer_id=99, producer_epoch=0).error_code == E.PRODUCER_FENCED


def test_exhausted_epochs_lead_to_another_producer_id() -> None:
    """Source: shouldGenerateNewProducerIdIfEpochsExhausted, testRetryInitProducerIdAfter..."""
    bench = Bench()
    producer_id, _ = bench.producer()
    last = MAX_EPOCH - 1
    bench.set_state(S.EMPTY, producer_epoch=last)
    given = {"producer_id": producer_id, "producer_epoch": last}
    rotated = bench.producer(**given)
    assert rotated == (producer_id + 1, 0)
    assert bench.producer(**given) == rotated
    assert bench.init(producer_id=producer_id, producer_epoch=last - 1).error_code == (
        E.PRODUCER_FENCED
    )


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
def test_an_initialization_waits_for_markers(state: TransactionState) -> None:
    """Source: shouldWaitForCommitToCompleteOnHandleInitPid... and ...Abort..."""
    bench = Bench()
    bench.producer()
    bench.set_state(state)
    assert bench.init().error_code == E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("level", [0, 2])
def test_an_open_transaction_is_aborted_and_its_producer_fenced(level: int) -> None:
    """Source: shouldAbortTransactionOnHandleInitPidWhenExistingTransactionInOngoingState."""
    bench = Bench(transaction_version=level)
    producer = bench.producer()
    bench.add(producer)
    assert bench.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert bench.state() == "CompleteAbort"
    assert bench.producer() == (producer[0], 2)  # the epoch of the fence is nobody's
    assert bench.add(producer) == E.PRODUCER_FENCED
    assert bench.add(producer, version=1) == E.INVALID_PRODUCER_EPOCH
    (marker,) = bench.written
    assert (marker.producer_epoch, marker.transaction_result) == (1, False)
    assert marker.transaction_version == level


@pytest.mark.parametrize(("level", "epochs"), [(0, [1, 1, 1]), (2, [0, 0, 0])])
def test_a_fence_that_is_not_written_bumps_the_epoch_once(level: int, epochs: list[int]) -> None:
    """Source: shouldNotRepeatedlyBumpEpochDueToInitPidDuringOngoingTxnIfAppendToLogFails."""
    bench = Bench(transaction_version=level)
    bench.add(bench.producer())
    bench.log.refusal = E.NOT_ENOUGH_REPLICAS
    seen = []
    for _ in epochs:
        assert bench.init().error_code == E.COORDINATOR_NOT_AVAILABLE
        seen.append(bench.describe().producer_epoch)
    assert seen == epochs
    bench.log.refusal = None
    assert bench.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert bench.producer() == (0, 2)


def test_a_transition_committed_by_too_few_replicas_is_none() -> None:
    """The log has it, the coordinator responds as if it had not, and the client tries again.

    Source:  TransactionStateManagerTest.shouldReturnNotAvailableErrorOnAppendWhenNotEnoughReplicas;
             TransactionStateManager.appendTransactionToLog.
    """
    bench = Bench()
    producer = bench.producer()
    bench.log.after_commit = E.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    assert bench.add(producer) == E.COORDINATOR_NOT_AVAILABLE
    assert bench.state() == "Empty"
    bench.log.after_commit = E.NONE
    assert bench.add(producer) == E.NONE
    assert bench.state() == "Ongoing"


@pytest.mark.parametrize("level", [0, 2])
def test_the_last_epoch_is_for_the_fence(level: int) -> None:
    """Source: shouldUseLastEpochToFenceWhenEpochsAreExhausted, and its test with V2."""
    bench = Bench(transaction_version=level)
    bench.producer()
    bench.set_state(S.ONGOING, producer_epoch=MAX_EPOCH - 1, partitions=(T0,), start_ms=1)
    assert bench.init().error_code == E.CONCURRENT_TRANSACTIONS
    assert bench.written[0].producer_epoch == MAX_EPOCH
    producer_id, epoch = bench.producer()
    assert (producer_id, epoch) == ((1, 0) if level == 0 else (1, 1))


def test_producer_ids_that_are_not_at_hand_leave_no_transition_behind() -> None:
    bench = Bench(holds=True)
    assert bench.init().error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    bench.respond(m.AllocateProducerIdsResponse(producer_id_start=0, producer_id_len=1))
    assert bench.producer() == (0, 0)
    transaction = bench.set_state(S.ONGOING, producer_epoch=MAX_EPOCH - 1, start_ms=1)
    assert bench.init().error_code == E.COORDINATOR_LOAD_IN_PROGRESS
    assert transaction.pending_state is None


def test_two_phase_commit_has_no_timeout() -> None:
    """Source: KIP-939."""
    bench = Bench(config={"transaction.two.phase.commit.enable": "true"})
    assert bench.init(version=6, enable2_pc=True, transaction_timeout_ms=0).error_code in (
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.NONE,
    )
    producer = bench.producer(version=6, enable2_pc=True, transaction_timeout_ms=0)
    bench.add(producer)
    bench.advance(3_600_000)
    assert bench.state() == "Ongoing"


# --- AddPartitionsToTxn, AddOffsetsToTxn -------------------------------------------------------


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        # shouldRespondWithInvalidPidMappingOnAddPartitions..., ...WhenTransactionalIdIsEmpty
        ({"transactional_id": "y"}, E.INVALID_PRODUCER_ID_MAPPING),
        ({"transactional_id": ""}, E.INVALID_REQUEST),
        ({"producer": (9, 0)}, E.INVALID_PRODUCER_ID_MAPPING),
        # shouldRespondWithProducerFencedOnAddPartitionsWhenEpochsAreDifferent
        ({"producer": (0, 1)}, E.PRODUCER_FENCED),
        ({"producer": (0, 1), "version": 1}, E.INVALID_PRODUCER_EPOCH),
    ],
)
@pytest.mark.parametrize("verify_only", [False, True])
def test_partitions_are_refused(wrong: Any, error: ErrorCode, verify_only: bool) -> None:
    bench = Bench()
    own = bench.producer()
    if verify_only:
        error = E.PRODUCER_FENCED if error == E.INVALID_PRODUCER_EPOCH else error
        wrong = {**wrong, "version": 5}
    wanted = {"producer": own, **wrong}
    producer = wanted.pop("producer")
    assert bench.add(producer, verify_only=verify_only, **wanted) == error


@pytest.mark.parametrize("state", [S.PREPARE_COMMIT, S.PREPARE_ABORT])
@pytest.mark.parametrize("verify_only", [False, True])
def test_partitions_wait_for_markers(state: TransactionState, verify_only: bool) -> None:
    """Source: shouldRespondWithConcurrentTransactionsOnAddPartitionsWhenStateIsPrepare..."""
    bench = Bench()
    producer = bench.producer()
    bench.set_state(state)
    error = bench.add(producer, version=5, verify_only=verify_only)
    assert error == E.CONCURRENT_TRANSACTIONS


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT, S.ONGOING])
def test_partitions_begin_or_continue_a_transaction(state: TransactionState) -> None:
    """Source: shouldRespondWithSuccessOnAddPartitionsWhenStateIsOngoing and the others."""
    bench = Bench()
    producer = bench.producer()
    bench.set_state(state)
    assert bench.add(producer, T0) == E.NONE
    assert bench.add(producer, T1) == E.NONE
    written = bench.log.end
    assert bench.add(producer, T1, T0) == E.NONE
    assert bench.log.end == written  # shouldRespondWithErrorsNoneOnAddPartitionWhen...TheSame
    described = bench.describe()
    assert [(t.topic, t.partitions) for t in described.topics] == [("t", (1, 0))]


def test_an_unknown_partition_leaves_the_transaction_as_it_was() -> None:
    bench = Bench()
    producer = bench.producer()
    errors = bench.add(producer, T0, ("missing", 0))
    assert sorted(errors) == [E.UNKNOWN_TOPIC_OR_PARTITION, E.OPERATION_NOT_ATTEMPTED]
    assert bench.state() == "Empty"


def test_a_partition_that_is_listed_twice_has_two_results() -> None:
    bench = Bench()
    producer_id, epoch = bench.producer()
    request = m.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id="x",
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=epoch,
        v3_and_below_topics=(
            m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="t", partitions=(1, 0, 1)),
        ),
    )
    [topic] = bench.exchange(request, 3).results_by_topic_v3_and_below
    assert [one.partition_index for one in topic.results_by_partition] == [1, 0, 1]
    assert [t.partitions for t in bench.describe().topics] == [(1, 0)]


def test_a_verification_finds_what_was_added() -> None:
    """Source: shouldRespondWithNoErrorOnVerify..., TRANSACTION_ABORTABLE for the others."""
    bench = Bench()
    producer = bench.producer()
    bench.add(producer, T0)
    assert bench.add(producer, T0, version=5, verify_only=True) == E.NONE
    assert bench.add(producer, T1, version=5, verify_only=True) == E.TRANSACTION_ABORTABLE
    assert [t.partitions for t in bench.describe().topics] == [(0,)]


def test_a_batch_of_brokers_is_complete_when_all_of_it_is() -> None:
    bench = Bench(Log(mark=0), holds=True)
    bench.init(None)
    bench.respond(m.AllocateProducerIdsResponse(producer_id_start=0, producer_id_len=10))
    for transactional_id in "xy":
        bench.send(
            m.InitProducerIdRequest(transactional_id=transactional_id, transaction_timeout_ms=9), 5
        )
    bench.commit()
    add = m.AddPartitionsToTxnRequest
    topics = (add.AddPartitionsToTxnTopic(name="t", partitions=(0,)),)
    transactions = tuple(
        add.AddPartitionsToTxnTransaction(
            transactional_id=i, producer_id=n, producer_epoch=0, topics=topics, verify_only=i == "z"
        )
        for n, i in enumerate("xyz")
    )
    token = bench.send(add(transactions=transactions), 5)
    assert token not in bench.given
    bench.commit()
    results = bench.given[token].results_by_transaction
    assert sorted(result.transactional_id for result in results) == ["x", "y", "z"]


def test_of_a_transactional_id_that_comes_twice_the_last_topics_are_added() -> None:
    """Source: AddPartitionsToTxnRequest.partitionsByTransaction, errorResponseForTransaction."""
    bench = Bench()
    producer_id, epoch = bench.producer()
    add = m.AddPartitionsToTxnRequest
    transactions = tuple(
        add.AddPartitionsToTxnTransaction(
            transactional_id="x",
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=(add.AddPartitionsToTxnTopic(name=name, partitions=(index,)),),
        )
        for name, index in (T0, T1)
    )
    token = bench.send(add(transactions=transactions), 5)
    shown = [result.topic_results for result in bench.given[token].results_by_transaction]
    indexes = [p.partition_index for (topic,) in shown for p in topic.results_by_partition]
    assert indexes == [0, 0]  # the topics that come first
    assert [t.partitions for t in bench.describe().topics] == [(1,)]


def test_a_batch_without_transactions_gets_no_response() -> None:
    """Kafka sends the response with the last result, and here there is none."""
    bench = Bench()
    token = bench.send(m.AddPartitionsToTxnRequest(), 5)
    bench.advance(60_000)
    assert token not in bench.given


def test_offsets_are_a_partition_of_the_offsets_topic() -> None:
    bench = Bench()
    producer_id, epoch = bench.producer()
    for version, given, error in (
        (4, epoch, E.NONE),
        (4, epoch + 1, E.PRODUCER_FENCED),
        (1, epoch + 1, E.INVALID_PRODUCER_EPOCH),
    ):
        request = m.AddOffsetsToTxnRequest(
            transactional_id="x", producer_id=producer_id, producer_epoch=given, group_id="g"
        )
        assert bench.exchange(request, version).error_code == error
    assert [t.topic for t in bench.describe().topics] == ["__consumer_offsets"]


# --- time-outs and expiry ----------------------------------------------------------------------


@pytest.mark.parametrize("level", [0, 2])
def test_a_transaction_that_times_out_is_aborted(level: int) -> None:
    """Source: shouldAbortExpiredTransactionsInOngoingStateAndBumpEpoch."""
    bench = Bench(transaction_version=level)
    producer = bench.producer(transaction_timeout_ms=15_000)
    bench.add(producer)
    bench.advance(15_000)
    assert bench.state() == "Ongoing"
    bench.advance(10_000)  # transaction.abort.timed.out.transaction.cleanup.interval.ms
    assert (bench.state(), bench.describe().producer_epoch) == ("CompleteAbort", 1)
    assert bench.end(producer, commit=True, version=4).error_code == E.PRODUCER_FENCED


def test_a_pending_transition_is_not_timed_out() -> None:
    """Source: shouldNotAbortExpiredTransactionsThatHaveAPendingStateTransition."""
    bench = Bench()
    bench.add(bench.producer(transaction_timeout_ms=1))
    transaction = bench.transaction()
    transaction.pending_state = S.PREPARE_COMMIT
    bench.advance(60_000)
    assert bench.describe().producer_epoch == 0
    transaction.pending_state = None
    bench.advance(20_000)
    assert bench.state() == "CompleteAbort"


_EXPIRY = {
    "transactional.id.expiration.ms": "5000000",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "600000",
}


def test_a_transactional_id_expires_when_it_was_not_used_for_long() -> None:
    """Source: TransactionStateManagerTest.shouldRemoveCompleteCommitExpiredTransactionalIds."""
    bench = Bench(config=_EXPIRY)
    for transactional_id in "yz":
        bench.producer(transactional_id)
    bench.add(bench.producer(), T0)
    bench.advance(3_000_000)
    bench.producer("z")
    bench.advance(4_300_000)
    gone = E.TRANSACTIONAL_ID_NOT_FOUND
    states = {i: bench.describe(i).error_code for i in "xyz"}
    assert states == {"x": gone, "y": gone, "z": E.NONE}  # x was aborted by its time-out before
    assert bench.log.batches[-1].records[0].value is None
    again = Bench(bench.log, epoch=1)
    assert again.describe("y").error_code == E.TRANSACTIONAL_ID_NOT_FOUND


def test_an_expiry_that_is_not_written_is_tried_again() -> None:
    bench = Bench(config={"transactional.id.expiration.ms": "1000"})
    bench.producer()
    bench.log.refusal = E.NOT_ENOUGH_REPLICAS
    bench.advance(3_600_000)
    assert bench.state() == "Empty"
    bench.log.refusal = None
    bench.advance(3_600_000)
    assert bench.describe().error_code == E.TRANSACTIONAL_ID_NOT_FOUND


# --- DescribeTransactions, ListTransactions ----------------------------------------------------


def test_transactions_are_described() -> None:
    """Source: testDescribeTransactionsWithEmptyTransactionalId, ...WithExpiringTransactionalId."""
    bench = Bench()
    assert bench.describe("").error_code == E.INVALID_REQUEST
    assert bench.describe("x").error_code == E.TRANSACTIONAL_ID_NOT_FOUND
    bench.add(bench.producer(transaction_timeout_ms=7_000), T0)
    described = bench.describe()
    assert (described.error_code, described.transaction_state) == (E.NONE, "Ongoing")
    assert (described.transaction_timeout_ms, described.producer_id) == (7_000, 0)
    assert described.transaction_start_time_ms == bench.now_ms


def _listed(bench: Bench, version: int = 2, **filters: Any) -> str:
    response = bench.exchange(m.ListTransactionsRequest(**filters), version)
    assert response.error_code == E.NONE
    return "".join(sorted(t.transactional_id for t in response.transaction_states))


def test_every_filter_of_a_listing() -> None:
    """Source: TransactionStateManagerTest.testListTransactionsFiltering."""
    bench = Bench()
    for transactional_id in "abc":
        bench.producer(transactional_id)
    bench.add(bench.producer("a"), transactional_id="a")
    bench.advance(1_000)
    bench.add(bench.producer("b"), transactional_id="b")
    assert _listed(bench) == "abc"
    assert _listed(bench, state_filters=("Ongoing",)) == "ab"
    assert _listed(bench, state_filters=("Ongoing", "Empty", "Nothing")) == "abc"
    assert _listed(bench, producer_id_filters=(0, 2)) == "ac"
    assert _listed(bench, producer_id_filters=(0,), state_filters=("Empty",)) == ""
    assert _listed(bench, state_filters=("Ongoing",), duration_filter=0) == "a"
    assert _listed(bench, duration_filter=999, transactional_id_pattern="a|b") == "a"
    assert _listed(bench, transactional_id_pattern="[bc]") == "bc"
    assert _listed(bench, transactional_id_pattern="") == "abc"
    unknown = bench.exchange(m.ListTransactionsRequest(state_filters=("Nothing",)), 2)
    assert unknown.unknown_state_filters == ("Nothing",)
    assert unknown.transaction_states == ()
    for pattern in ("(a", "(?=a)", "(a)\\1"):  # RE2/J has no look-ahead and no back-references
        damaged = bench.exchange(m.ListTransactionsRequest(transactional_id_pattern=pattern), 2)
        assert damaged.error_code == E.INVALID_REGULAR_EXPRESSION


# --- who coordinates ---------------------------------------------------------------------------


def _every_request(bench: Bench) -> dict[str, int]:
    listing = bench.exchange(m.ListTransactionsRequest(), 2)
    return {
        "init": bench.init().error_code,
        "add": bench.add((0, 0)),
        "verify": bench.add((0, 0), version=5, verify_only=True),
        "end": bench.end((0, 0)).error_code,
        "end with the old protocol": bench.end((0, 0), version=3).error_code,
        "describe": bench.describe().error_code,
        "list": listing.error_code,
    }


def test_another_broker_coordinates() -> None:
    """Source: shouldRespondWithNotCoordinatorOnInitPidWhenNotCoordinator, and the others."""
    errors = _every_request(Bench(coordinator=OTHER))
    assert errors.pop("list") == E.NONE
    assert set(errors.values()) == {E.NOT_COORDINATOR}


def test_the_partition_is_loaded() -> None:
    """Source: shouldRespondWithCoordinatorLoadInProgress..., testListTransactionsWhileLoading."""
    bench = Bench()
    bench.producer()
    bench.publish(image(coordinator=OTHER, epoch=1))
    bench.machine.on_metadata(MetadataDelta.between(bench.image, image(epoch=2)), bench.now_ms)
    assert set(_every_request(bench).values()) == {E.COORDINATOR_LOAD_IN_PROGRESS}


def test_a_partition_without_records_needs_no_loading() -> None:
    """The first client, right after the topic has appeared, finds its coordinator."""
    bench = Bench(coordinator=OTHER)
    bench.machine.on_metadata(MetadataDelta.between(bench.image, image(epoch=1)), bench.now_ms)
    assert bench.describe().error_code == E.TRANSACTIONAL_ID_NOT_FOUND


def test_what_waits_is_refused_when_another_broker_is_elected() -> None:
    """Source: shouldRemoveTransactionsForPartitionOnEmigration."""
    bench = Bench()
    producer = bench.producer()
    bench.log.mark = bench.log.end
    token = bench.send(
        m.EndTxnRequest(
            transactional_id="x", producer_id=producer[0], producer_epoch=0, committed=False
        ),
        5,
    )
    bench.publish(image(coordinator=OTHER, epoch=1))
    assert bench.given[token].error_code == E.NOT_COORDINATOR
    assert bench.describe().error_code == E.NOT_COORDINATOR


def test_records_and_markers_of_an_older_release() -> None:
    """Kafka 3.9 has no transaction.version, and WriteTxnMarkers up to 1."""
    bench = Bench(rules=Rules.KAFKA_3_9, transaction_version=0)
    producer = bench.producer()
    bench.add(producer)
    bench.holds = True
    assert bench.end(producer, version=4).error_code == E.NONE
    assert bench.sends[0].version == 1
    assert bench.sends[0].to == OWN
    assert {batch.records[0].value[:2] for batch in bench.log.batches} == {b"\0\0"}
