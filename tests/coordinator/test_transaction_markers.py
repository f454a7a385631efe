"""The markers of ended transactions, until every partition has its own: also across fail-over."""

from __future__ import annotations

import random
from typing import Any

import pytest

from minicluster.coordinator.runtime.timeline import Timeline
from minicluster.coordinator.runtime.timers import ShardTimers, Timers
from minicluster.coordinator.transaction.transaction import (
    PREPARED,
    TransactionMetadata,
    TransactionShard,
    TransactionState,
)
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import (
    TRANSACTION_RECORDS,
    decode_coordinator_record,
)
from minicluster.protocol.topics import GROUP_METADATA_TOPIC
from minicluster.values import replace
from tests.coordinator.memory_log import Log
from tests.coordinator.transaction_bench import (
    BLOCK,
    OTHER,
    OWN,
    T0,
    T1,
    Bench,
    image,
    marker_response,
)

S = TransactionState
E = ErrorCode
OFFSETS = (GROUP_METADATA_TOPIC, 0)


def _ended(bench: Bench, *partitions: tuple[str, int], commit: bool = True) -> None:
    """End a transaction with some partitions, and hold its markers."""
    producer = bench.producer()
    bench.add(producer, *partitions)
    bench.holds = True
    assert bench.end(producer, commit=commit).error_code == E.NONE


def test_each_leader_gets_its_partitions_in_one_request() -> None:
    """Source: TransactionMarkerChannelManagerTest.shouldGenerateRequestPerBroker."""
    bench = Bench(leaders={T0: OWN, T1: OTHER, ("u", 0): OTHER})
    _ended(bench, T0, T1, ("u", 0), commit=False)
    markers = {send.to: send.request.markers for send in bench.sends}
    assert {to: len(of) for to, of in markers.items()} == {OWN: 1, OTHER: 1}
    of_other = {t.name: t.partition_indexes for t in markers[OTHER][0].topics}
    assert of_other == {"t": (1,), "u": (0,)}
    bench.write_markers()
    assert bench.state() == "PrepareAbort"
    bench.write_markers()
    assert bench.state() == "CompleteAbort"


def test_markers_that_wait_leave_together() -> None:
    bench = Bench()
    _ended(bench, T0)
    for transactional_id in "yz":
        producer = bench.producer(transactional_id)
        bench.add(producer, T1, transactional_id=transactional_id)
        bench.end(producer, transactional_id=transactional_id)
    assert [len(send.request.markers) for send in bench.sends] == [1]  # one in flight per leader
    bench.write_markers()
    assert [len(send.request.markers) for send in bench.sends] == [2]


@pytest.mark.parametrize(
    "error",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
    ],
)
def test_a_marker_that_was_not_written_goes_to_the_leader_of_then(error: ErrorCode) -> None:
    """Source: TransactionMarkerRequestCompletionHandlerTest.shouldRetryPartitionWhen..."""
    bench = Bench()
    _ended(bench, T0, T1)
    bench.publish(image(leaders={T0: OWN, T1: OTHER, OFFSETS: OWN}))
    bench.write_markers(error)
    assert [send.to for send in bench.sends] == [OTHER]  # T0 waits a little for its leader
    bench.advance(50)
    assert [send.to for send in bench.sends] == [OTHER, OWN]
    bench.write_markers()
    bench.write_markers()
    assert bench.state() == "CompleteCommit"


@pytest.mark.parametrize("error", [E.INVALID_PRODUCER_EPOCH, E.TRANSACTION_COORDINATOR_FENCED])
def test_a_coordinator_that_was_replaced_gives_up(error: ErrorCode) -> None:
    """Source: shouldCompleteDelayedOperationWhenCoordinatorEpochFenced and ...InvalidProducer..."""
    bench = Bench()
    _ended(bench, T0)
    bench.write_markers(error)
    bench.advance(10_000)
    assert bench.sends == []
    assert bench.state() == "PrepareCommit"


@pytest.mark.parametrize("error", [E.UNSUPPORTED_FOR_MESSAGE_FORMAT, E.UNSUPPORTED_VERSION])
def test_a_partition_without_transactions_needs_no_marker(error: ErrorCode) -> None:
    bench = Bench()
    _ended(bench, T0)
    bench.write_markers(error)
    assert bench.state() == "CompleteCommit"


def test_a_lost_request_is_sent_again() -> None:
    """Source: shouldReEnqueuePartitionsWhenBrokerDisconnected."""
    bench = Bench()
    _ended(bench, T0)
    bench.fail()
    assert bench.sends == []
    bench.advance(50)
    bench.write_markers()
    assert bench.state() == "CompleteCommit"


def test_markers_of_a_deleted_topic_are_skipped() -> None:
    """Source: shouldSkipSendMarkersWhenLeaderNotFound."""
    bench = Bench(leaders={T0: OWN, ("u", 0): OTHER})
    _ended(bench, T0, ("u", 0))
    bench.write_markers()
    bench.publish(image(leaders={T0: OWN}))
    bench.fail()
    assert bench.state() == "CompleteCommit"


def test_markers_wait_for_a_leader() -> None:
    """Source: shouldSaveForLaterWhenLeaderUnknownButNotAvailable."""
    bench = Bench(leaders={T0: -1})
    _ended(bench, T0)
    assert bench.sends == []
    bench.publish(image(leaders={T0: OTHER}))
    assert [send.to for send in bench.sends] == [OTHER]
    bench.write_markers()
    assert bench.state() == "CompleteCommit"


def test_a_completion_is_appended_until_it_is_committed() -> None:
    """Source: shouldAppendToLogOnEndTxnWhenNotCoordinator..., shouldAppendAfterRetry."""
    bench = Bench()
    _ended(bench, T0)
    bench.log.refusal = E.NOT_ENOUGH_REPLICAS
    bench.write_markers()
    bench.advance(1_000)
    assert bench.state() == "PrepareCommit"
    assert bench.init().error_code == E.CONCURRENT_TRANSACTIONS
    bench.log.refusal = None
    bench.advance(50)
    assert bench.state() == "CompleteCommit"


def test_markers_of_a_partition_go_with_its_leadership() -> None:
    """Source: shouldRemoveMarkersForTxnPartitionWhenPartitionEmigrated."""
    bench = Bench()
    _ended(bench, T0)
    bench.publish(image(coordinator=OTHER, epoch=1))
    bench.write_markers(E.NOT_LEADER_OR_FOLLOWER)
    bench.advance(1_000)
    assert bench.sends == []
    written = bench.log.end
    bench.publish(image(epoch=2))  # back again: the state comes from the log
    (send,) = bench.sends
    assert send.request.markers[0].coordinator_epoch == 2
    bench.write_markers()
    assert bench.state() == "CompleteCommit"
    assert bench.log.end == written + 1


# --- fail-over ----------------------------------------------------------------------------------


def _fold(log: Log) -> dict[str, TransactionMetadata]:
    shard = TransactionShard(0, Timeline(), ShardTimers(Timers("t", [])))
    for batch in log.batches:
        for record in batch.records:
            read = decode_coordinator_record(TRANSACTION_RECORDS, record.key, record.value)
            assert read is not None
            shard.replay(read, record.offset, -1, -1)
    return {i: t.metadata for i, t in shard.transactions.items()}


@pytest.mark.parametrize(
    "state", [S.EMPTY, S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT, S.COMPLETE_COMMIT]
)
def test_another_broker_takes_over_in_each_state(state: TransactionState) -> None:
    before = Bench()
    producer = before.producer()
    if state is not S.EMPTY:
        before.add(producer, T0, T1)
    before.holds = state is not S.COMPLETE_COMMIT
    if state in (*PREPARED, S.COMPLETE_COMMIT):
        before.end(producer, commit=state is not S.PREPARE_ABORT)
    assert before.transaction().metadata.state is state

    after = Bench(before.log, epoch=1, holds=True)
    loaded = after.transaction().metadata
    assert loaded == replace(_fold(before.log)["x"], partitions=loaded.partitions)
    assert (loaded.state, loaded.producer_id) == (state, producer[0])
    if state in PREPARED:
        assert after.init().error_code == E.CONCURRENT_TRANSACTIONS
        (marker,) = after.sends[0].request.markers
        assert marker.coordinator_epoch == 1
        assert marker.transaction_result is (state is S.PREPARE_COMMIT)
        after.write_markers()
    after.holds = False
    if state is S.ONGOING:
        assert after.end(producer, commit=True).error_code == E.NONE
    expected = "CompleteAbort" if state is S.PREPARE_ABORT else "CompleteCommit"
    assert after.state() == ("Empty" if state is S.EMPTY else expected)


class _Story:
    """Random requests of two producers, while their coordinator is replaced again and again."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.epoch = 0
        self.log = Log(mark=0)
        self.level = self.chance.choice((0, 1, 2))
        self.bench = Bench(self.log, holds=True, transaction_version=self.level)
        self.known: dict[str, tuple[int, int]] = {}
        self.decided: dict[tuple[int, int], bool] = {}

    def play(self, steps: int) -> None:
        for _ in range(steps):
            self.chance.choice(
                (
                    self.init,
                    self.add,
                    self.end,
                    self.lead,
                    self.time,
                    *[self.commit, self.network] * 2,
                )
            )()
            self.check()

    def init(self) -> None:
        transactional_id = self.chance.choice("xy")
        self._note(transactional_id, self.bench.init(transactional_id))

    def add(self) -> None:
        transactional_id = self.chance.choice("xy")
        producer = self.known.get(transactional_id, (0, 0))
        partitions = self.chance.sample((T0, T1, OFFSETS), 2)
        version = 5 if self.level == 2 else 3
        if version == 3:
            self.bench.add(producer, *partitions, transactional_id=transactional_id)
        else:
            self.bench.add(producer, partitions[0], transactional_id=transactional_id, version=5)

    def end(self) -> None:
        transactional_id = self.chance.choice("xy")
        producer = self.known.get(transactional_id, (0, 0))
        commit = self.chance.random() < 0.6
        version = 5 if self.level == 2 else 4
        response = self.bench.end(
            producer, commit=commit, version=version, transactional_id=transactional_id
        )
        if version == 5:
            self._note(transactional_id, response)

    def _note(self, transactional_id: str, response: Any) -> None:
        if response is not None and response.error_code == E.NONE:
            self.known[transactional_id] = (response.producer_id, response.producer_epoch)

    def commit(self) -> None:
        self.bench.commit()

    def time(self) -> None:
        self.bench.advance(self.chance.choice((1, 60, 200)))

    def network(self) -> None:
        if not self.bench.sends:
            return
        send = self.bench.sends[0]
        if hasattr(send.request, "broker_epoch"):
            self.bench.allocate()
            return
        fate = self.chance.random()
        if fate < 0.2:
            self.bench.fail()
            return
        error = E.NONE if fate < 0.7 else E.NOT_LEADER_OR_FOLLOWER
        if error == E.NONE and self.level == 2:  # an epoch has one transaction
            for marker in send.request.markers:
                key = marker.producer_id, marker.producer_epoch
                commit = self.decided.setdefault(key, marker.transaction_result)
                assert commit == marker.transaction_result, key
        self.bench.respond(marker_response(send.request, error))

    def lead(self) -> None:
        """A new leader has what was committed, and perhaps more."""
        if self.chance.random() < 0.7:
            return
        committed = self.log.mark or 0
        end = self.chance.randint(committed, self.log.end)
        self.log.batches = [b for b in self.log.batches if b.next_offset <= end]
        self.epoch += 1
        shape = {"epoch": self.epoch, "transaction_version": self.level}
        now_ms = self.bench.now_ms
        self.bench = Bench(self.log, holds=True, now_ms=now_ms, **shape)  # type: ignore[arg-type]
        self.bench.next_id = self.epoch * BLOCK

    def check(self) -> None:
        """Shapes: what is complete, pending aside, is in the log."""
        folded = _fold(self.log)
        for shard in self.bench.machine.state.runtime.shards:
            for transactional_id, transaction in shard.transactions.items():
                own = transaction.metadata
                assert set(own.partitions) <= {T0, T1, OFFSETS}
                in_log = folded.get(transactional_id)
                if (
                    transaction.pending_state is None
                    and in_log is not None
                    and (self.log.mark == self.log.end)
                ):
                    assert (own.state, own.producer_id, own.producer_epoch) == (
                        in_log.state,
                        in_log.producer_id,
                        in_log.producer_epoch,
                    )

    def heal(self) -> None:
        """Let everything through: no transaction stays undecided."""
        self.bench.commit()
        self.log.mark = None
        self.bench.release()
        self.bench.advance(100_000)
        for shard in self.bench.machine.state.runtime.shards:
            for transaction in shard.transactions.values():
                assert transaction.metadata.state.name.startswith(("EMPTY", "COMPLETE"))
        for transactional_id in "xy":
            self.bench.producer(transactional_id)


@pytest.mark.parametrize("seed", range(25))
def test_a_coordinator_fails_over_in_any_state(seed: int) -> None:
    story = _Story(seed)
    story.play(120)
    story.heal()
