"""Shards: loaded from a log, written to it, and responding once the records are committed."""

from __future__ import annotations

import pytest

from minicluster.coordinator.runtime import parts
from minicluster.coordinator.runtime.internal_log import EndTxnMarker
from minicluster.coordinator.runtime.parts import Parts, listed
from minicluster.coordinator.runtime.runtime import CoordinatorRuntime
from minicluster.coordinator.runtime.shard import OperationError, Result
from minicluster.coordinator.runtime.timeline import Timeline, TimelineDict
from minicluster.coordinator.runtime.timers import ShardTimers, Timers
from minicluster.effects import Continue, Effect, Work
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
        self.effects: list[Effect] = []
        self.timers = Timers("t", self.effects)
        self.parts = Parts(self.effects, self._taken)
        self.runtime: CoordinatorRuntime[Offsets] = CoordinatorRuntime(
            self.log,
            Offsets,
            self.timers,
            self.parts,
            write_timeout_ms=WRITE_TIMEOUT_MS,
            on_loaded=lambda *_: None,
            on_unloaded=lambda *_: None,
        )
        self.given: list[tuple[object, ErrorCode | None]] = []

    def _taken(self, now_ms: int) -> list[Effect]:
        taken, self.effects[:] = list(self.effects), []
        return taken

    def carry_on(self, now_ms: int = 0) -> None:
        """Carry the next part of the event in progress out."""
        part, *others = [e for e in self._taken(now_ms) if isinstance(e, Continue)]
        self.effects += [*others, *part.next_part(now_ms)]

    @property
    def has_parts(self) -> bool:
        return any(isinstance(effect, Continue) for effect in self.effects)

    def settle(self) -> None:
        """Load what is to be loaded, part after part."""
        for _ in range(len(self.log.batches) + 1):
            self.timers.run(0)
            while self.has_parts:
                self.carry_on()

    def load(self) -> None:
        self.runtime.on_elected(0, 1, 0)
        for _ in range(len(self.log.batches) + 1):
            self.timers.run(0)

    def commit(self, partition: int, offset: int, now_ms: int = 0) -> None:
        key = OffsetCommitKey(group="g", topic="t", partition=partition)
        record = CoordinatorRecord(key, OffsetCommitValue(offset=offset), 3)
        self.runtime.write(
            0, lambda _, __: Result(records=(record,), response=offset), self._done, now_ms
        )

    def read(self, partition: int) -> int | None:
        found: list[int | None] = []
        self.runtime.read(
            0,
            lambda shard, _: shard.offsets.committed_value(partition),
            lambda value, error, _: found.append(value),
            0,
        )
        return found[0]

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


# --- large events, in parts -----------------------------------------------------------------------


def large(bench: Bench, count: int, partition: int = 0) -> None:
    """Commit an offset for each of some partitions, as one event."""

    def operation(_: Offsets, __: int) -> Work[Result]:
        records = yield from listed(
            CoordinatorRecord(
                OffsetCommitKey(group="g", topic="t", partition=index),
                OffsetCommitValue(offset=7),
                3,
            )
            for index in range(count)
        )
        return Result(records=tuple(records), response="large")

    bench.runtime.write(partition, operation, bench._done, 0)


@pytest.fixture
def of_parts(monkeypatch: pytest.MonkeyPatch) -> Bench:
    """A runtime with parts of two elements, and two shards."""
    monkeypatch.setattr(parts, "ELEMENTS_PER_PART", 2)
    bench = Bench()
    bench.log.mark = None  # all is replicated at once
    bench.load()
    bench.runtime.on_elected(1, 1, 0)
    return bench


def test_an_event_of_another_shard_comes_between_the_parts(of_parts: Bench) -> None:
    large(of_parts, 4)
    assert of_parts.given == []
    of_parts.runtime.write(1, lambda _, __: Result(response="other"), of_parts._done, 0)
    of_parts.commit(0, 9)
    assert of_parts.given == [("other", None)]
    while len(of_parts.given) < 3:
        of_parts.carry_on()
    assert of_parts.given == [("other", None), ("large", None), (9, None)]
    assert [of_parts.read(index) for index in range(4)] == [9, 7, 7, 7]
    assert [batch.count for batch in of_parts.log.batches] == [4, 1]


def test_what_is_committed_in_the_midst_of_an_event_is_known_at_its_end(of_parts: Bench) -> None:
    of_parts.log.mark = 0
    of_parts.commit(5, 1)
    large(of_parts, 4)
    of_parts.log.mark = 1
    of_parts.runtime.on_high_watermark(0, 1, 0)
    assert of_parts.given == [], "it waits for the event"
    for _ in range(20):
        if of_parts.given:
            break
        of_parts.carry_on()
    assert of_parts.given == [(1, None)]
    of_parts.log.mark = 5
    of_parts.runtime.on_high_watermark(0, 5, 0)
    assert of_parts.given == [(1, None), ("large", None)]


@pytest.mark.parametrize("parts_before", range(5))
def test_a_shard_that_is_led_elsewhere_ends_its_event_and_those_behind_it(
    of_parts: Bench, parts_before: int
) -> None:
    """Before the append and after it; there is one response to each."""
    large(of_parts, 4)
    of_parts.commit(0, 9)
    for _ in range(parts_before):
        of_parts.carry_on()
    of_parts.runtime.on_resigned(0, 2, 0)
    rejected = None, ErrorCode.NOT_COORDINATOR
    assert of_parts.given == [rejected, rejected]
    of_parts.runtime.on_elected(0, 3, 0)
    of_parts.settle()
    assert of_parts.given == [rejected, rejected]
    held = {of_parts.read(index) for index in range(4)}
    assert held == ({7} if of_parts.log.batches else {None})


def test_a_read_waits_for_the_event_before_it(of_parts: Bench) -> None:
    large(of_parts, 3)
    found: list[object] = []
    of_parts.runtime.read(
        0, lambda shard, _: shard.offsets.committed(), lambda value, *_: found.append(value), 0
    )
    while not found:
        assert not of_parts.given
        of_parts.carry_on()
    assert found == [{0: 7, 1: 7, 2: 7}]


def test_a_long_log_is_loaded_in_parts_and_no_event_begins_before(of_parts: Bench) -> None:
    large(of_parts, 5)
    while not of_parts.given:
        of_parts.carry_on()
    after = Bench(of_parts.log)
    after.runtime.on_elected(0, 2, 0)
    after.timers.run(0)
    loads = 0
    while after.has_parts:
        after.commit(0, 9)
        assert after.given.pop() == (None, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        after.carry_on()
        loads += 1
    assert loads == 2
    after.timers.run(0)
    assert [after.read(index) for index in range(5)] == [7] * 5


def test_a_load_ends_with_the_leadership(of_parts: Bench) -> None:
    large(of_parts, 5)
    while not of_parts.given:
        of_parts.carry_on()
    after = Bench(of_parts.log)
    after.runtime.on_elected(0, 2, 0)
    after.timers.run(0)
    after.runtime.on_resigned(0, 3, 0)
    after.runtime.on_elected(0, 4, 0)
    while after.has_parts:
        after.carry_on()
    assert after.runtime.is_loading, "what the earlier leader has loaded is not of this one"
    after.settle()
    assert [after.read(index) for index in range(5)] == [7] * 5
