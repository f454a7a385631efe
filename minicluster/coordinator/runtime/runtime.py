"""Shards of one internal topic: loaded from the log, written to it, and read as committed.

    become leader -> LOADING --all replayed--> ACTIVE --another leader--> gone
                        `--damaged record--> FAILED

An operation decides on the newest state. Its records are appended to the partition of the shard,
then replayed into the state. The response waits until they are committed: what a coordinator loses
by a fail-over has never left it.

**Invariant:** the append comes before the replay, so no state has to be taken back.

A load replays the whole log of the leader, what lies above the high watermark as well: the leader
keeps those records and they will be committed, so decisions have to count them. Until the load is
done, every operation gets COORDINATOR_LOAD_IN_PROGRESS: on half a state a group would be unknown
that exists.

An earlier coordinator that does not know of its successor is harmless, since the coordinator epoch
of a shard is the leader epoch of its partition:

* its records are not committed any more, so its responses never leave it: they fail with
  NOT_COORDINATOR when it learns of the new epoch, or time out;
* news of a lower epoch, elected or resigned, changes nothing;
* what is scheduled for a shard checks that the shard is still the present one, and its timers are
  cancelled with it;
* the markers of a transaction carry the epoch, and the leader of the partition rejects a marker
  below the last one's (TRANSACTION_COORDINATOR_FENCED).

Source:  CoordinatorRuntime, CoordinatorLoaderImpl, CoordinatorOperationExceptionHelper.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from minicluster.configs.without_effect import LOAD_BUFFER_BYTES
from minicluster.coordinator.runtime.internal_log import (
    AppendFailed,
    EndTxnMarker,
    InternalLog,
    Producer,
)
from minicluster.coordinator.runtime.shard import NOTHING, OperationError, Result, Shard
from minicluster.coordinator.runtime.timeline import Timeline
from minicluster.coordinator.runtime.timers import RETRY_BACKOFF_MS, ShardTimers, Timers
from minicluster.log import InvalidBatch, RecordBatch
from minicluster.log.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import (
    CoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from minicluster.protocol.errors import ProtocolError
from minicluster.replica.producers.verification import VerificationGuard
from minicluster.values import replace

S = TypeVar("S", bound=Shard)
T = TypeVar("T")
Operation = Callable[[S, int], Result]
"""Decides with a shard, at a time."""
Reading = Callable[[S, int], T]
"""Reads a shard as of an offset."""
Done = Callable[[Any, ErrorCode | None, str | None], None]
"""Takes the response, or the error and its message."""
Complete = Callable[[ErrorCode | None, str | None, int], None]
"""Takes the end of a write: the error of the log with its message, and the time."""


class ShardState(enum.Enum):
    """Source: CoordinatorRuntime.CoordinatorState."""

    LOADING = enum.auto()
    ACTIVE = enum.auto()
    FAILED = enum.auto()


class _Context(Generic[S]):
    """One partition that this broker leads."""

    def __init__(self, shard: S, epoch: int, timeline: Timeline, timers: ShardTimers) -> None:
        self.shard = shard
        self.epoch = epoch
        self.timeline = timeline
        self.timers = timers
        self.state = ShardState.LOADING
        self.next_offset = 0
        self.last_written = 0
        self.last_committed = 0
        self.deferred: deque[tuple[int, Callable[[ErrorCode | None, int], None]]] = deque()


class CoordinatorRuntime(Generic[S]):
    """All shards of a coordinator on one broker.

    Inputs:  ``on_elected``, ``on_resigned``, ``on_high_watermark``, ``on_metadata``, and the
             operations: ``write``, ``read``.
    Source:  CoordinatorRuntime.
    """

    def __init__(
        self,
        log: InternalLog,
        make_shard: Callable[[int, Timeline, ShardTimers], S],
        timers: Timers,
        *,
        write_timeout_ms: int,
        on_loaded: Callable[[S, int], None],
        on_unloaded: Callable[[S, int], None],
        on_written: Callable[[Sequence[CoordinatorRecord]], None] = lambda _: None,
    ) -> None:
        self._log = log
        self._on_loaded = on_loaded
        self._on_unloaded = on_unloaded
        self._on_written = on_written
        self._make_shard = make_shard
        self._timers = timers
        self._write_timeout_ms = write_timeout_ms
        self._contexts: dict[int, _Context[S]] = {}
        self._image = MetadataImage.EMPTY

    # --- leadership ---------------------------------------------------------------------------

    def on_elected(self, partition: int, epoch: int, now_ms: int) -> None:
        """This broker leads a partition from an epoch on: load it with the next input.

        Of an empty log there is nothing to load: the coordinator is there with the leader. Else the
        first request of a client, right after the internal topic has appeared, was turned away.

        Source:  CoordinatorRuntime.scheduleLoadOperation.
        """
        before = self._contexts.get(partition)
        if before is not None:
            if before.epoch >= epoch:
                return
            self._unload(partition, now_ms)
        timeline, timers = Timeline(), ShardTimers(self._timers)
        shard = self._make_shard(partition, timeline, timers)
        context = _Context(shard, epoch, timeline, timers)
        context.next_offset = self._log.start_offset(partition)
        self._contexts[partition] = context
        if not self._log.read(partition, context.next_offset, LOAD_BUFFER_BYTES):
            self._load(partition, context, now_ms)
            return
        self._timers.add(now_ms, lambda at_ms: self._load(partition, context, at_ms))

    def on_resigned(self, partition: int, epoch: int | None, now_ms: int) -> None:
        """Another broker leads a partition, or it is deleted (None): what waits is rejected.

        Source:  CoordinatorRuntime.scheduleUnloadOperation.
        """
        context = self._contexts.get(partition)
        if context is not None and (epoch is None or context.epoch < epoch):
            self._unload(partition, now_ms)

    def _unload(self, partition: int, now_ms: int) -> None:
        context = self._contexts.pop(partition)
        context.timers.cancel_all()
        deferred, context.deferred = context.deferred, deque()
        for _, complete in deferred:
            complete(ErrorCode.NOT_COORDINATOR, now_ms)
        self._on_unloaded(context.shard, now_ms)

    def _load(self, partition: int, context: _Context[S], now_ms: int) -> None:
        """Replay the log to its end, a buffer at a time; then the shard is there."""
        if self._contexts.get(partition) is not context:
            return
        try:
            while batches := self._log.read(partition, context.next_offset, LOAD_BUFFER_BYTES):
                for batch in batches:
                    self._replay(context, batch)
                context.next_offset = batches[-1].next_offset
                self._commit_loaded(partition, context, now_ms)
        except (ProtocolError, InvalidBatch):
            # Kafka's stays unusable as well, until another broker leads the partition.
            context.state = ShardState.FAILED
            return
        self._commit_loaded(partition, context, now_ms)
        context.state = ShardState.ACTIVE
        context.shard.on_metadata(self._image, now_ms)
        self._on_loaded(context.shard, now_ms)

    def _commit_loaded(self, partition: int, context: _Context[S], now_ms: int) -> None:
        context.last_written = context.next_offset
        self._commit(context, self._log.high_watermark(partition), now_ms)

    def _replay(self, context: _Context[S], batch: RecordBatch) -> None:
        shard = context.shard
        context.timeline.written = batch.next_offset
        producer_id = batch.producer_id if batch.is_transactional else NO_PRODUCER_ID
        for offset, record in enumerate(batch.records, batch.base_offset):
            if batch.is_control:
                assert record.key is not None
                committed = int.from_bytes(record.key[2:4], "big") == 1
                shard.replay_end_transaction(
                    batch.producer_id, batch.producer_epoch, committed=committed
                )
                continue
            read = decode_coordinator_record(shard.record_types, record.key, record.value)
            if read is not None:
                shard.replay(read, offset, producer_id, batch.producer_epoch)

    # --- the log --------------------------------------------------------------------------

    def on_high_watermark(self, partition: int, offset: int, now_ms: int) -> None:
        """All below an offset is committed: responses that waited for it are given."""
        context = self._contexts.get(partition)
        if context is not None and context.state is ShardState.ACTIVE:
            self._commit(context, offset, now_ms)

    def _commit(self, context: _Context[S], offset: int, now_ms: int) -> None:
        offset = min(offset, context.last_written)
        if offset <= context.last_committed:
            return
        context.last_committed = offset
        context.timeline.commit(offset)
        while context.deferred and context.deferred[0][0] <= offset:
            context.deferred.popleft()[1](None, now_ms)

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """A newer image was published."""
        self._image = image
        for context in list(self._contexts.values()):
            if context.state is ShardState.ACTIVE:
                context.shard.on_metadata(image, now_ms)

    # --- operations -------------------------------------------------------------------------

    @property
    def partitions(self) -> list[int]:
        """The partitions that this broker leads, loaded or not."""
        return sorted(self._contexts)

    @property
    def is_loading(self) -> bool:
        """A partition is not loaded yet."""
        return any(c.state is ShardState.LOADING for c in self._contexts.values())

    @property
    def shards(self) -> list[S]:
        """The shards of loaded partitions."""
        active = ShardState.ACTIVE
        return [c.shard for _, c in sorted(self._contexts.items()) if c.state is active]

    def shard(self, partition: int) -> S:
        """The shard of a partition, in its newest state.

        Errors:  OperationError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS.
        """
        return self._require(partition).shard

    def epoch_of(self, partition: int) -> int:
        """The coordinator epoch of a partition: the leader epoch that it was loaded for."""
        return self._contexts[partition].epoch

    def write(
        self,
        partition: int,
        operation: Operation[S],
        done: Done,
        now_ms: int,
        *,
        producer: Producer | None = None,
    ) -> None:
        """Decide, append, apply; the response follows once the records are committed.

        An operation without records waits for those that were written before it, since it may
        have read them.
        Errors:  by ``done``: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS,
                 COORDINATOR_NOT_AVAILABLE, and what the operation rejects with.
        Source:  CoordinatorRuntime.CoordinatorWriteEvent.
        """
        result = NOTHING

        def complete(error: ErrorCode | None, message: str | None, at_ms: int) -> None:
            if error is not None:
                error, message = coordinator_error(error, message)
            if result.on_append is not None:
                result.on_append(error, at_ms)
            done(result.response if error is None else None, error, message)

        try:
            context = self._require(partition)
            context.timeline.written = context.last_written + 1
            result = operation(context.shard, now_ms)
            if result.records:
                self._append(partition, context, result, producer, now_ms)
        except (OperationError, AppendFailed) as failure:
            if result.on_rejected is not None:
                result.on_rejected()
            complete(failure.error, _message(failure), now_ms)
            return
        self._defer(context, result.timeout_ms, complete, now_ms)
        self._commit(context, self._log.high_watermark(partition), now_ms)

    def write_transactional(
        self,
        partition: int,
        producer: Producer,
        operation: Operation[S],
        done: Done,
        now_ms: int,
    ) -> None:
        """Write on behalf of a transactional producer, once its transaction is verified.

        The records count once the transaction is committed.

        Errors:  by ``done``: those of the verification and of ``write``.
        Source:  CoordinatorRuntime.scheduleTransactionalWriteOperation.
        """

        def verified(error: ErrorCode, guard: VerificationGuard | None, at_ms: int) -> None:
            if error == ErrorCode.NONE:
                guarded = replace(producer, guard=guard)
                self.write(partition, operation, done, at_ms, producer=guarded)
            else:
                done(None, *coordinator_error(error, None))

        self._log.verify(partition, producer, verified, now_ms)

    def complete_transaction(
        self, partition: int, marker: EndTxnMarker, done: Done, now_ms: int
    ) -> None:
        """Append the end of a transaction and apply it; the response follows once it is committed.

        Errors:  by ``done``: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, and those of the log as
                 they are: it is another coordinator that gets them.
        Source:  CoordinatorRuntime.CoordinatorCompleteTransactionEvent.
        """
        try:
            context = self._require(partition)
            end = self._log.append_end_txn_marker(partition, marker, now_ms)
        except (OperationError, AppendFailed) as failure:
            done(None, failure.error, _message(failure))
            return
        context.last_written = context.timeline.written = end
        context.shard.replay_end_transaction(
            marker.producer_id, marker.producer_epoch, committed=marker.committed
        )

        def complete(error: ErrorCode | None, message: str | None, _: int) -> None:
            done(None, error, message)

        self._defer(context, None, complete, now_ms)
        self._commit(context, self._log.high_watermark(partition), now_ms)

    def read(self, partition: int, operation: Reading[S, T]) -> T:
        """Read a shard as of its committed offset, which the operation takes.

        Errors:  OperationError: NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS, and what the
                 operation rejects with.
        Source:  CoordinatorRuntime.CoordinatorReadEvent.
        """
        context = self._require(partition)
        return operation(context.shard, context.last_committed)

    def run_task(
        self,
        partition: int,
        key: str,
        operation: Operation[S],
        now_ms: int,
        *,
        retry: bool = False,
    ) -> None:
        """Run the operation of a timer of a shard; a failed one again later, where it retries."""

        def done(_: Any, error: ErrorCode | None, __: str | None) -> None:
            inactive = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            context = self._contexts.get(partition)
            if error is None or error in inactive or not retry or context is None:
                return
            at_ms = now_ms + RETRY_BACKOFF_MS
            context.timers.schedule(
                key,
                at_ms,
                lambda later_ms: self.run_task(partition, key, operation, later_ms, retry=True),
            )

        self.write(partition, operation, done, now_ms)

    def _require(self, partition: int) -> _Context[S]:
        context = self._contexts.get(partition)
        if context is None or context.state is ShardState.FAILED:
            raise OperationError(ErrorCode.NOT_COORDINATOR)
        if context.state is ShardState.LOADING:
            raise OperationError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return context

    def _append(
        self,
        partition: int,
        context: _Context[S],
        result: Result,
        producer: Producer | None,
        now_ms: int,
    ) -> None:
        records = result.records
        encoded = [encode_coordinator_record(record) for record in records]
        end = self._log.append(partition, encoded, producer, now_ms)
        context.last_written = end
        self._on_written(records)
        if result.is_applied:
            return
        producer_id = NO_PRODUCER_ID if producer is None else producer.producer_id
        epoch = NO_PRODUCER_EPOCH if producer is None else producer.producer_epoch
        for offset, record in enumerate(records, end - len(records)):
            context.shard.replay(record, offset, producer_id, epoch)

    def _defer(
        self, context: _Context[S], timeout_ms: int | None, complete: Complete, now_ms: int
    ) -> None:
        """Call ``complete`` once, when all that is written is committed, or has failed."""
        is_open = True

        def complete_once(error: ErrorCode | None, at_ms: int) -> None:
            nonlocal is_open
            if is_open:
                is_open = False
                deadline.cancel()
                complete(error, None, at_ms)

        deadline = self._timers.add(
            now_ms + (self._write_timeout_ms if timeout_ms is None else timeout_ms),
            lambda at_ms: complete_once(ErrorCode.REQUEST_TIMED_OUT, at_ms),
        )
        if context.last_written <= context.last_committed:
            complete_once(None, now_ms)
        else:
            context.deferred.append((context.last_written, complete_once))


def _message(failure: OperationError | AppendFailed) -> str | None:
    return failure.message if isinstance(failure, OperationError) else str(failure)


_NOT_AVAILABLE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)
_LED_ELSEWHERE = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR})
_TOO_LARGE = frozenset(
    {
        ErrorCode.UNKNOWN_SERVER_ERROR,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.INVALID_FETCH_SIZE,
    }
)


def coordinator_error(error: ErrorCode, message: str | None) -> tuple[ErrorCode, str | None]:
    """The error of the log as one that members and producers of a coordinator understand.

    Source:  CoordinatorOperationExceptionHelper.handleOperationException.
    """
    if error == ErrorCode.NETWORK_EXCEPTION:  # of a verification: the client tries again here
        return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, None
    if error in _NOT_AVAILABLE:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
    if error in _LED_ELSEWHERE:
        return ErrorCode.NOT_COORDINATOR, None
    if error in _TOO_LARGE:
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return error, message


def follow_leadership(
    runtime: CoordinatorRuntime[S],
    topic: str,
    delta: MetadataDelta,
    broker_id: int,
    now_ms: int,
    *,
    loads: bool = True,
) -> None:
    """Load the shards of partitions that this broker leads now, drop those that it does not."""
    before, after = delta.before.topics.named(topic), delta.after.topics.named(topic)
    if before is after:
        return
    if before is not None and (after is None or after.id != before.id):
        for index in before.partitions:
            runtime.on_resigned(index, None, now_ms)
    for index, partition in () if after is None else after.items():
        if partition.leader != broker_id:
            runtime.on_resigned(index, partition.leader_epoch, now_ms)
        elif loads:
            runtime.on_elected(index, partition.leader_epoch, now_ms)
