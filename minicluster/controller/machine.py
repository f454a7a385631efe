"""The controller: decides requests in order, appends what they need, answers once it is committed.

How to drive it::

    machine = ControllerMachine(settings=…, bootstrap=bootstrap_records(version), draw=…, …)
    for effect in machine.on_batch(batch, now_ms): …            # every committed batch, always
    for effect in machine.on_snapshot(image, end_offset, now_ms): …
    for effect in machine.on_claim(epoch, next_offset, now_ms): …   # this node leads the quorum
    for effect in machine.on_request(token, request, version, now_ms): …
    for effect in machine.on_timer(name, now_ms): …
    for effect in machine.on_committed(high_watermark, now_ms): …   # or on_batch with own batches
    for effect in machine.on_renounce(now_ms): …                # this node leads no longer

Effects: ``Append`` (the quorum must append just there), ``ControllerRespond``, ``Resign``,
``SetTimer``, ``CancelTimer``, ``FaultHit``.

**Invariant:** while active, records are applied when they are decided and answers wait until they
are committed; whoever loses the leadership goes back to what is committed, and everyone who waits
hears NOT_CONTROLLER (tests/controller/test_machine.py).

Leaves out: deadlines of queued requests: an actor's mailbox is the queue, and it does not wait.
Source:  QuorumController (ControllerWriteEvent, claim, renounce), OffsetControlManager.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from minicluster.controller.controller_apis import APIS, Call
from minicluster.controller.deciding.decision import Decision, KRaftVersion
from minicluster.controller.deciding.placement import Draw
from minicluster.controller.effects import Append, ControllerRespond, RaiseKRaftVersion, Resign
from minicluster.controller.errors import MAX_RECORDS_PER_BATCH, ControllerFault, Refused
from minicluster.controller.settings import ControllerSettings
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerHeartbeatManager,
    SetShutdownOffset,
    apply_soft,
    replay_registration,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.offline_replicas import OfflineReplicas, ReplicaStateChange
from minicluster.controller.state.pending_alter_isr import PendingAlterIsr, PendingAlterIsrChange
from minicluster.controller.task_timers import TaskTimers
from minicluster.effects import Effect, FaultHit
from minicluster.faults import Faults
from minicluster.log.batch import RecordBatch
from minicluster.metadata.bootstrap import activation_records
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import BrokerHeartbeatRequest
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    VersionedRecord,
)
from minicluster.rules import Rules

RECORDS_OF_RAISED_KRAFT_VERSION = 2  # of the quorum: KRaftVersion and KRaftVoters


@dataclass(frozen=True, slots=True)
class _Point:
    """The state up to an offset: enough to go back to it.

    Shapes:  before_transaction is the state that an open transaction would be undone to.
    """

    end_offset: int
    image: MetadataImage
    before_transaction: tuple[int, MetadataImage] | None = None

    @property
    def stable_end(self) -> int:
        """Up to where nothing can be undone: an open transaction does not count."""
        return self.end_offset if self.before_transaction is None else self.before_transaction[0]


@dataclass(frozen=True, slots=True)
class _Waiting:
    """An answer that leaves when everything below the offset is stable."""

    end_offset: int
    token: Any
    request: Any
    version: int
    response: Any
    records_written: tuple[int, ...]
    registered_epoch: int | None


class ControllerMachine:
    """One controller, active or standing by; see the module for how to drive it."""

    def __init__(
        self,
        *,
        settings: ControllerSettings,
        bootstrap: Sequence[VersionedRecord],
        draw: Draw,
        new_topic_id: Callable[[], UUID],
        rules: Rules = Rules.KAFKA_4_3,
        faults: Faults = Faults.NONE,
        max_records_per_batch: int = MAX_RECORDS_PER_BATCH,
    ) -> None:
        self.state = ClusterState(rules=rules, faults=faults, settings=settings)
        self.settings, self.rules, self.faults = settings, rules, faults
        self.kraft_version = 0  # as the quorum says, and why it could not be raised, if so
        self.kraft_version_stays: str | None = None
        self._bootstrap = tuple(bootstrap)
        self._draw, self._new_topic_id = draw, new_topic_id
        self._max_records = max_records_per_batch
        self._epoch: int | None = None
        self._tasks = TaskTimers(rules, settings)
        self._next_offset = 0
        self._seen_end = 0
        self._last_append_end = 0
        self._before_transaction: tuple[int, MetadataImage] | None = None
        self._committed = _Point(0, self.state.image)
        self._points: deque[_Point] = deque()
        self._waiting: deque[_Waiting] = deque()

    # What others look at.

    @property
    def is_active(self) -> bool:
        """Whether this controller decides."""
        return self._epoch is not None

    @property
    def epoch(self) -> int | None:
        """The epoch that it claimed."""
        return self._epoch

    @property
    def image(self) -> MetadataImage:
        """The newest state: on the active controller that includes what is not committed yet."""
        return self.state.image

    @property
    def committed_image(self) -> MetadataImage:
        """The state of all that is committed, without an open transaction."""
        point = self._committed
        return point.image if point.before_transaction is None else point.before_transaction[1]

    @property
    def in_transaction(self) -> bool:
        """Whether what is committed ends inside a metadata transaction."""
        return self._committed.before_transaction is not None

    @property
    def next_offset(self) -> int:
        """Where the next record goes, or is expected from."""
        return self._next_offset

    # The log.

    def on_batch(self, batch: RecordBatch, now_ms: int) -> list[Effect]:
        """A batch is committed; the batches come one after the other, control batches, too.

        Errors:  ReplayError when a standby cannot apply it: the logs are of different clusters.
        """
        end_offset = batch.last_offset + 1
        if self.is_active:
            return self.on_committed(end_offset, now_ms)
        if end_offset <= self._seen_end:
            return []
        records = () if batch.is_control else batch.metadata_records
        return self.on_records(batch.base_offset, records, end_offset, now_ms)

    def on_records(
        self,
        base_offset: int,
        records: Sequence[VersionedRecord],
        end_offset: int,
        now_ms: int,
    ) -> list[Effect]:
        """Committed records on a standby; an active controller has applied them already."""
        if self.is_active:
            return self.on_committed(end_offset, now_ms)
        for offset, record in enumerate(records, base_offset):
            self._apply(record, offset, now_ms)
        self._next_offset = self._seen_end = end_offset
        self._committed = self._point()
        return []

    def on_snapshot(self, image: MetadataImage, end_offset: int, now_ms: int) -> list[Effect]:
        """A standby starts over from a snapshot that ends before this offset."""
        effects = self.on_renounce(now_ms)
        self.state.reset(image, end_offset - 1)
        self._before_transaction = None
        self._next_offset = self._seen_end = end_offset
        self._committed = self._point()
        return effects

    def on_committed(self, high_watermark: int, now_ms: int) -> list[Effect]:
        """Everything below this offset is committed: answers that waited for it leave."""
        while self._points and self._points[0].end_offset <= high_watermark:
            self._committed = self._points.popleft()
        self._seen_end = max(self._seen_end, high_watermark)
        stable_end = self._stable_end()
        effects: list[Effect] = []
        while self._waiting and self._waiting[0].end_offset <= stable_end:
            effects.append(self._reply(self._waiting.popleft()))
        return effects

    def on_control_records(self, next_offset: int) -> None:
        """The quorum has appended records of its own (voters) behind those of this controller."""
        self._next_offset = max(self._next_offset, next_offset)

    # Leadership.

    def on_claim(self, epoch: int, next_offset: int, now_ms: int) -> list[Effect]:
        """This node leads the quorum and has seen everything below next_offset.

        Source:  QuorumController.claim, CompleteActivationEvent.
        """
        open_transaction = self._before_transaction
        settled = self.state.image if open_transaction is None else open_transaction[1]
        self._epoch = epoch
        self._next_offset, self._last_append_end = next_offset, 0
        self._points.clear()
        self._points.append(self._point())
        heartbeats = BrokerHeartbeatManager(self.rules, self.settings.broker_session_timeout_ms)
        for broker in self.state.image.cluster.brokers.values():
            heartbeats.register(broker.id, broker.fenced, now_ms)
            if not broker.fenced:
                heartbeats.contact(broker.id, broker.epoch, now_ms)
        self.state.heartbeats = heartbeats
        self.state.offline_replicas = OfflineReplicas()
        self.state.pending_alter_isr = PendingAlterIsr()
        nothing_replayed = self.state.offset < 0 or open_transaction is not None
        try:
            first = activation_records(
                settled,
                log_is_empty=settled.is_empty and nothing_replayed,
                transaction_is_open=open_transaction is not None,
                bootstrap=self._bootstrap,
                static_min_insync_replicas=self.settings.static_min_isr,
                rules=self.rules,
            )
        except ReplayError as fault:
            return self._fail(str(fault), now_ms)
        decision = Decision(records=first.records, atomic=first.atomic)
        effects, _ = self._carry_out(decision, now_ms)
        return effects + self._tasks.start(self.state, now_ms)

    def on_renounce(self, now_ms: int) -> list[Effect]:
        """This node leads no longer: back to what is committed, everyone hears NOT_CONTROLLER.

        What becomes of the records of those who wait is for the next leader's log to tell; their
        answers claim none.

        Source:  QuorumController.renounce.
        """
        if not self.is_active:
            return []
        self._epoch = None
        self.state.heartbeats = None
        self._points.clear()
        point = self._committed
        effects: list[Effect] = []
        if self.state.image is not point.image:
            if self.faults.s25_deposed_does_not_revert:
                effects.append(FaultHit("S25"))
            else:
                self.state.reset(point.image, point.end_offset - 1)
        self._before_transaction = point.before_transaction
        self._next_offset = self._seen_end
        waiting, self._waiting = self._waiting, deque()
        for entry in waiting:
            refusal = error_response(entry.request, ErrorCode.NOT_CONTROLLER, version=entry.version)
            effects.append(
                ControllerRespond(
                    entry.token,
                    refusal,
                    (),
                    self._seen_end,
                    entry.registered_epoch,
                )
            )
        return effects + self._tasks.stop()

    def _fail(self, reason: str, now_ms: int) -> list[Effect]:
        """The state is broken in a way that only another controller can mend."""
        epoch = self._epoch
        assert epoch is not None
        return [*self.on_renounce(now_ms), Resign(epoch, reason)]

    # Requests.

    def on_request(
        self,
        token: Any,
        request: Any,
        version: int,
        now_ms: int,
        *,
        authorized: bool = True,
        forwarded: bool = True,
    ) -> list[Effect]:
        """Decide a request; the answer comes with the effects of this input or of a later one.

        Shapes:  authorized says that the sender may act for the cluster; forwarded, that a broker
                 passed a client's request on.
        Errors:  UNSUPPORTED_VERSION for an API or a version that this controller does not serve.
        """
        api = APIS.get(type(request))
        registered = self._registered_epoch(request)
        if api is None or version < api.lowest_version(self.rules):
            refused = error_response(request, ErrorCode.UNSUPPORTED_VERSION, version=version)
            return [self._answer(token, refused, registered)]
        if api.cluster_action and not authorized:
            refused = error_response(
                request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, version=version
            )
            return [self._answer(token, refused, registered)]
        if api.is_empty(request):
            return [self._answer(token, api.nothing, registered)]
        call = Call(
            state=self.state,
            request=request,
            version=version,
            now_ms=now_ms,
            next_offset=self._next_offset,
            kraft=KRaftVersion(self.kraft_version, self.kraft_version_stays),
            forwarded=forwarded,
            draw=self._draw,
            new_topic_id=self._new_topic_id,
            committed=self.committed_image,
        )
        if api.reads:
            decision = api.decide(call)
            return [self._answer(token, decision.response, registered)]
        if not self.is_active:
            refused = error_response(request, ErrorCode.NOT_CONTROLLER, version=version)
            return [self._answer(token, refused, registered)]
        if isinstance(request, BrokerHeartbeatRequest):
            # Before anything in it is checked, and whatever comes of it.
            self.state.active_heartbeats().contact(request.broker_id, request.broker_epoch, now_ms)
        try:
            decision = api.decide(call)
            effects, offsets = self._carry_out(decision, now_ms)
        except Refused as refusal:
            refused = error_response(request, refusal.error, refusal.message, version=version)
            return [self._answer(token, refused, registered)]
        except (ControllerFault, ReplayError) as fault:
            unknown = error_response(
                request, ErrorCode.UNKNOWN_SERVER_ERROR, str(fault), version=version
            )
            return [self._answer(token, unknown, registered), *self._fail(str(fault), now_ms)]
        effects += self._park(token, request, version, decision.response, offsets, registered)
        return effects + self._tasks.after_write(self.state, now_ms)

    def _registered_epoch(self, request: Any) -> int | None:
        broker_id = getattr(request, "broker_id", None)
        if broker_id is None:
            return None
        broker = self.state.broker(broker_id)
        return -1 if broker is None else broker.epoch

    # Timers.

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """A background task is due; off the active controller nothing happens.

        Source:  PeriodicTaskControlManager.
        """
        if not self.is_active or name not in self._tasks:
            return []
        try:
            decision = self._tasks.run(name, self.state, now_ms)
            effects, _ = self._carry_out(decision, now_ms)
        except (ControllerFault, ReplayError) as fault:
            if self.rules.failed_task_renounces:
                return self._fail(str(fault), now_ms)
            return self._tasks.failed(name, now_ms)
        effects += self._tasks.done(name, self.state, now_ms, again=bool(decision.response))
        return effects

    # Carrying out.

    def _carry_out(self, decision: Decision, now_ms: int) -> tuple[list[Effect], tuple[int, ...]]:
        """Apply a decision's records and soft changes, and ask for the append.

        Errors:  ControllerFault for an atomic decision of more records than a batch holds.
        """
        records, size = decision.records, self._max_records
        if decision.atomic and len(records) > size:
            raise ControllerFault(
                f"Attempted to atomically commit {len(records)} records, but maxRecordsPerBatch "
                f"is {size}"
            )
        hits = dict.fromkeys((*decision.fault_hits, *self.state.take_hits()))
        effects: list[Effect] = [FaultHit(name) for name in hits]
        heartbeats = self.state.heartbeats
        assert self._epoch is not None
        if decision.kraft_version is not None:
            effects.append(RaiseKRaftVersion(self._epoch, decision.kraft_version))
            self._next_offset += RECORDS_OF_RAISED_KRAFT_VERSION
        base_offset = self._next_offset
        last_offset = base_offset + len(records) - 1
        for change in decision.soft:
            if isinstance(change, ReplicaStateChange):
                self.state.offline_replicas.apply(change)
            elif isinstance(change, PendingAlterIsrChange):
                self.state.pending_alter_isr.apply(change)
            elif heartbeats is not None and not isinstance(change, SetShutdownOffset):
                apply_soft(heartbeats, change, last_offset, now_ms)
        for start in range(0, len(records), size):
            batch = records[start : start + size]
            for offset, record in enumerate(batch, base_offset + start):
                self._apply(record, offset, now_ms)
            self._next_offset = self._last_append_end = base_offset + start + len(batch)
            self._points.append(self._point())
            effects.append(Append(self._epoch, base_offset + start, batch))
        if heartbeats is not None:
            for change in decision.soft:
                if isinstance(change, SetShutdownOffset):
                    apply_soft(heartbeats, change, last_offset, now_ms)
        return effects, tuple(range(base_offset, base_offset + len(records)))

    def _apply(self, record: VersionedRecord, offset: int, now_ms: int) -> None:
        message = record.record
        if isinstance(message, BeginTransactionRecord):
            self._before_transaction = (offset, self.state.image)
        elif isinstance(message, EndTransactionRecord):
            self._before_transaction = None
        elif isinstance(message, AbortTransactionRecord) and self._before_transaction is not None:
            self.state.reset(self._before_transaction[1], offset)
            self._before_transaction = None
        self.state.apply(record, offset)
        if self.state.heartbeats is not None:
            replay_registration(self.state.heartbeats, message, self.state.image, now_ms)

    def _point(self) -> _Point:
        return _Point(self._next_offset, self.state.image, self._before_transaction)

    def _stable_end(self) -> int:
        return self._committed.stable_end

    def _park(
        self,
        token: Any,
        request: Any,
        version: int,
        response: Any,
        offsets: tuple[int, ...],
        registered: int | None,
    ) -> list[Effect]:
        """Answer now or later: after one's own records, or after all that is under way."""
        end_offset = offsets[-1] + 1 if offsets else self._last_append_end
        entry = _Waiting(end_offset, token, request, version, response, offsets, registered)
        if end_offset <= self._stable_end():
            return [self._reply(entry)]
        if self.faults.s26_reply_before_commit:
            return [FaultHit("S26"), self._reply(entry)]
        self._waiting.append(entry)
        return []

    def _reply(self, entry: _Waiting) -> ControllerRespond:
        return ControllerRespond(
            entry.token,
            entry.response,
            entry.records_written,
            self._seen_end,
            entry.registered_epoch,
        )

    def _answer(self, token: Any, response: Any, registered: int | None) -> ControllerRespond:
        return ControllerRespond(token, response, (), self._seen_end, registered)
