"""Shards: loaded from a log, written to it, and responding once the records are committed."""

from __future__ import annotations

import pytest

from minicluster.coordinator.runtime.internal_log import EndTxnMarker
from minicluster.coordinator.runtime.runtime import CoordinatorRuntime
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.coordinator.runtime.timers import ShardTimers, Timers
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import GROUP_RECORDS, CoordinatorRecord
from minicluster.protocol.coordinator_records.groups import OffsetCommitKey, OffsetCommitValue
from tests.coordinator.memory_log import Log

WRITE_TIMEOUT_MS = 5_000


class Offsets:
    """A shard of offsets by partition."""

    record_types = GROUP_RECORDS

    def __init__(self, partition: int, timeline: Timeline, timers: ShardTimers) -> None:
        self.timers = timers
        self.offsets: TimelineDict[int, int] = timeline.new_dict()

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int, epoch: int) -> None:
        assert isinstance(record.key, OffsetCommitKey)
        assert isinstance(record.value, OffsetCommitValue)
        self.offsets[record.key.partition] = record.value.offset

    def replay_end_transaction(self, producer_id: int, epoch: int, *, committed: bool) -> None:
        raise AssertionError("no transactions here")

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None: ...


class Bench:
    """A runtime over one log, and the responses that it has given."""

    def __init__(self, log: Log | None = None) -> None:
        self.log = log or Log()
        self.timers = Timers("t", [])
        self.runtime: CoordinatorRuntime[Offsets] = CoordinatorRuntime(
            self.log,
            Offsets,
            self.timers,
            write_timeout_ms=WRITE_TIMEOUT_MS,
            on_loaded=lambda *_: None,
            on_unloaded=lambda *_: None,
        )
        self.given: list[tuple[object, ErrorCode | None]] = []

    def load(self) -> None:
        self.runtime.on_elected(0, 1, 0)
        self.timers.run(0)

    def commit(self, partition: int, offset: int, now_ms: int = 0) -> None:
        key = OffsetCommitKey(group="g", topic="t", partition=partition)
        record = CoordinatorRecord(key, OffsetCommitValue(offset=offset), 3)
        self.runtime.write(
            0, lambda _, __: Result(records=(record,), response=offset), self._done, now_ms
        )

    def read(self, partition: int) -> int | None:
        return self.runtime.read(0, lambda shard, _: shard.offsets.committed_value(partition))

    def _done(self, response: object, error: ErrorCode | None, message: str | None) -> None:
        self.given.append((response, error))


def test_a_response_waits_until_its_records_are_committed() -> None:
    bench = Bench()
    bench.load()
    bench.commit(0, 7)
    assert (bench.given, bench.read(0)) == ([], None)  # decided, and not yet replicated
    bench.log.mark = 1
    bench.runtime.on_high_watermark(0, 1, 0)
    assert (bench.given, bench.read(0)) == ([(7, None)], 7)


def test_an_operation_without_records_waits_for_those_before_it() -> None:
    bench = Bench()
    bench.load()
    bench.commit(0, 7)
    bench.runtime.write(0, lambda _, __: Result(response="read"), bench._done, 0)
    assert bench.given == []
    bench.runtime.on_high_watermark(0, 1, 0)
    assert bench.given == [(7, None), ("read", None)]


def test_a_shard_is_loaded_from_its_log_and_refuses_until_then() -> None:
    before = Bench()
    before.load()
    for offset in range(3):
        before.commit(offset, offset)
    after = Bench(before.log)
    after.commit(0, 9)
    after.runtime.on_elected(0, 2, 0)
    after.commit(0, 9)
    refusals = ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert [error for _, error in after.given] == [*refusals]
    after.log.mark = 2
    after.load()
    assert [after.read(partition) for partition in range(3)] == [0, 1, None]  # 2 is not committed
    after.runtime.on_high_watermark(0, 3, 0)
    assert after.read(2) == 2


def test_a_load_ends_with_the_leadership_that_it_was_for() -> None:
    before = Bench()
    before.log.mark = None
    before.load()
    before.commit(0, 7)
    after = Bench(before.log)
    after.runtime.on_elected(0, 2, 0)
    after.runtime.on_resigned(0, 3, 0)
    after.runtime.on_elected(0, 4, 0)
    assert after.runtime.is_loading
    after.timers.run(0)
    assert (after.read(0), after.runtime.epoch_of(0)) == (7, 4)


def test_what_waits_is_refused_when_another_broker_leads() -> None:
    bench = Bench()
    bench.load()
    bench.commit(0, 7)
    bench.runtime.on_resigned(0, 2, 0)
    bench.commit(0, 8)
    assert bench.given == [(None, ErrorCode.NOT_COORDINATOR)] * 2


def test_a_response_that_waits_too_long_is_not_available_and_never_given_again() -> None:
    bench = Bench()
    bench.load()
    bench.commit(0, 7)
    bench.timers.run(WRITE_TIMEOUT_MS)
    bench.runtime.on_high_watermark(0, 1, WRITE_TIMEOUT_MS)
    assert bench.given == [(None, ErrorCode.COORDINATOR_NOT_AVAILABLE)]
    assert bench.read(0) == 7  # it was written nevertheless


@pytest.mark.parametrize(
    ("of_log", "given"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_an_append_that_fails_changes_nothing(of_log: ErrorCode, given: ErrorCode) -> None:
    bench = Bench()
    bench.load()
    bench.log.refusal = of_log
    bench.commit(0, 7)
    assert bench.given == [(None, given)]
    assert bench.read(0) is None


@pytest.mark.parametrize("of_log", [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR])
def test_the_sender_of_a_marker_gets_the_error_of_the_log(of_log: ErrorCode) -> None:
    """Source: GroupCoordinatorService.completeTransaction, which maps none."""
    bench = Bench()
    bench.load()
    bench.log.refusal = of_log
    marker = EndTxnMarker(7, 0, committed=True, coordinator_epoch=0, transaction_version=2)
    given: list[ErrorCode | None] = []
    bench.runtime.complete_transaction(0, marker, lambda _, error, __: given.append(error), 0)
    assert given == [of_log]


def test_a_task_that_retries_runs_again_after_a_refusal() -> None:
    bench = Bench()
    bench.load()
    tries: list[int] = []

    def operation(_: Offsets, now_ms: int) -> Result:
        tries.append(now_ms)
        if len(tries) == 1:
            raise OperationError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return Result()

    bench.runtime.run_task(0, "expire", operation, 100, retry=True)
    bench.timers.run(599)
    bench.timers.run(600)
    assert tries == [100, 600]


def test_a_dictionary_is_read_as_of_any_committed_offset() -> None:
    timeline = Timeline()
    states: TimelineDict[str, int] = timeline.new_dict()
    for offset, value in enumerate((1, 2, 3), 1):
        timeline.written = offset
        states["a"] = value
    timeline.written = 4
    states.pop("a")
    assert [states.committed_value("a"), "a" in states] == [None, False]
    seen = []
    for offset in range(1, 5):
        timeline.commit(offset)
        assert states.committed().get("a") == states.committed_value("a")
        seen.append(states.committed_value("a"))
    assert seen == [1, 2, 3, None]
