"""The controller: it decides requests in order, and responds once their records are committed.

How to drive it::

    machine = ControllerMachine(settings=…, bootstrap=bootstrap_records(version), draw=…, …)
    for effect in machine.on_batch(batch, now_ms): …            # every committed batch, always
    for effect in machine.on_snapshot(image, end_offset, now_ms): …
    for effect in machine.on_claim(epoch, next_offset, now_ms): …   # this node leads the quorum
    for effect in machine.on_request(token, request, version, now_ms): …
    for effect in machine.on_timer(name, now_ms): …
    for effect in machine.on_committed(high_watermark, now_ms): …   # or on_batch with own batches
    for effect in machine.on_renounce(now_ms): …                # this node leads no longer

**Invariant:** while active, records are applied when they are decided and responses wait until they
are committed; on losing the leadership the state goes back to what is committed, and every response
that waits becomes NOT_CONTROLLER (tests/controller/test_machine.py).

What can go wrong, and what it ends:

| what | ends |
|---|---|
| a request that breaks a rule (``Rejected``) | the request, with its error |
| a state that contradicts itself (``ControllerFault``) | the leadership; UNKNOWN_SERVER_ERROR |
| the same while a periodic task decides | that run of the task (4.x), or the leadership (3.9) |
| a batch that the quorum rejects, though it was decided | the request and the leadership |

Every event is one step, whatever its size. How much a user's request may write is limited where it
is decided (``MAX_RECORDS_PER_USER_OP``).

Source:  QuorumController (ControllerWriteEvent, claim, renounce), KafkaEventQueue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from minicluster.controller.api import Call, ControllerApi, Screened, is_late
from minicluster.controller.controller_apis import CONTROLLER_APIS
from minicluster.controller.decision import Decision, KRaftVersion
from minicluster.controller.deferred_responses import (
    DeferredResponse,
    DeferredResponses,
    may_respond,
)
from minicluster.controller.effects import (
    Append,
    ControllerRespond,
    RaiseKRaftVersion,
    ReportRefusal,
    Resign,
    TaskFailed,
    report_rejected,
)
from minicluster.controller.errors import ControllerFault, Rejected, wrong_controller
from minicluster.controller.mutation_quotas import (
    ANONYMOUS,
    UNBOUNDED,
    MutationQuota,
    MutationQuotas,
    QuotaClient,
)
from minicluster.controller.periodic_tasks import TaskTimers
from minicluster.controller.placement import Draw
from minicluster.controller.settings import ControllerSettings
from minicluster.controller.state.broker_heartbeat_manager import (
    BrokerHeartbeatManager,
    SetShutdownOffset,
    apply_soft,
    replay_registration,
)
from minicluster.controller.state.cluster_state import ClusterState
from minicluster.controller.state.offline_replicas import OfflineReplicas, ReplicaStateChange
from minicluster.controller.state.offset_control import OffsetControl
from minicluster.controller.state.pending_alter_isr import PendingAlterIsr, PendingAlterIsrChange
from minicluster.effects import Effect, FaultHit
from minicluster.faults import Faults
from minicluster.log.batch import RecordBatch
from minicluster.log.format.limits import MAX_RECORDS_PER_BATCH
from minicluster.metadata.bootstrap import activation_records
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.shared_folds import SharedFolds
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses import error_response
from minicluster.protocol.messages import BrokerHeartbeatRequest
from minicluster.protocol.records import VersionedRecord
from minicluster.rules import Rules
from minicluster.security.screening import EVERYTHING, Access, needs
from minicluster.values import Value, replace

RECORDS_OF_RAISED_KRAFT_VERSION = 2  # of the quorum: KRaftVersion and KRaftVoters


class _Arrived(Value):
    """A request as it came, for its response."""

    token: Any
    request: Any
    version: int
    registered_epoch: int | None


class ControllerMachine:
    """One controller, active or standby; the module shows how to drive it.

    Shapes:  on_*(…, now_ms) -> list of effects (``effects.py``), to be carried out in order.
    """

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
        folds: SharedFolds | None = None,
    ) -> None:
        self._folds = SharedFolds() if folds is None else folds
        self.state = ClusterState(rules=rules, faults=faults, settings=settings)
        self.settings, self.rules = settings, rules
        self.kraft_version = 0  # of the quorum, and why it could not be raised, if so
        self.kraft_version_stays: str | None = None
        self.latest_controller: int | None = None  # the leader that the quorum has now
        self._bootstrap = tuple(bootstrap)
        self._draw, self._new_topic_id = draw, new_topic_id
        self._max_records = max_records_per_batch
        self._epoch: int | None = None
        self._timers = TaskTimers(rules, settings)
        self._offsets = OffsetControl(self.state.image)
        self._deferred = DeferredResponses()
        self._quotas = MutationQuotas(settings.static_config)

    @property
    def is_active(self) -> bool:
        """True on the controller that decides."""
        return self._epoch is not None

    @property
    def epoch(self) -> int | None:
        """The epoch that it claimed."""
        return self._epoch

    @property
    def image(self) -> MetadataImage:
        """The newest state: on the active controller with what is not committed yet."""
        return self.state.image

    @property
    def committed_image(self) -> MetadataImage:
        """The state of all that is committed, without an open transaction."""
        return self._offsets.committed.stable_image

    @property
    def stable_end(self) -> int:
        """The offset below which all is committed, and in no open transaction."""
        return self._offsets.committed.stable_end

    @property
    def in_transaction(self) -> bool:
        """True while what is committed ends inside a metadata transaction."""
        return self._offsets.committed.before_transaction is not None

    @property
    def next_offset(self) -> int:
        """The offset of the next record to append, or to be delivered."""
        return self._offsets.next_offset

    # The log.

    def on_batch(self, batch: RecordBatch, now_ms: int) -> list[Effect]:
        """Take a committed batch; batches come in the order of the log, control batches included.

        Errors:  ReplayError when a standby cannot apply it: the logs are of different clusters.
        """
        end_offset = batch.last_offset + 1
        if self.is_active:
            return self.on_committed(end_offset, now_ms)
        # Committed while this node was active: the state to which it went back has them already.
        if end_offset <= self._offsets.high_watermark:
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
        """Apply committed records on a standby; the active controller has applied them already.

        Units:   end_offset is exclusive, and may lie behind the last record.
        """
        if self.is_active:
            return self.on_committed(end_offset, now_ms)
        self._apply(records, base_offset, now_ms)
        self._offsets.replayed(end_offset, self.state.image)
        return []

    def on_snapshot(self, image: MetadataImage, end_offset: int, now_ms: int) -> list[Effect]:
        """Start over from a snapshot.

        Units:   end_offset is exclusive.
        """
        effects = self.on_renounce(now_ms)
        self.state.reset(image, end_offset - 1)
        # A snapshot holds no open transaction. With one left open here, the next would count as a
        # transaction in a transaction, which no controller survives.
        self._offsets.before_transaction = None
        self._offsets.replayed(end_offset, image)
        return effects

    def on_committed(self, high_watermark: int, now_ms: int) -> list[Effect]:
        """Advance what is committed: the responses that waited for it leave.

        Units:   high_watermark is exclusive.
        """
        self._offsets.commit(high_watermark)
        return [self._respond(entry) for entry in self._deferred.complete_up_to(self.stable_end)]

    def on_control_records(self, next_offset: int) -> None:
        """Follow the quorum, which has appended records of its own (voters) to the log.

        Units:   next_offset is the offset behind them.
        """
        self._offsets.next_offset = max(self._offsets.next_offset, next_offset)

    # Leadership.

    def on_claim(self, epoch: int, next_offset: int, now_ms: int) -> list[Effect]:
        """This node leads the quorum, and has replayed everything below next_offset.

        Source:  QuorumController.claim, CompleteActivationEvent.
        """
        open_transaction = self._offsets.before_transaction
        stable = self.state.image if open_transaction is None else open_transaction[1]
        self._epoch = epoch
        self._offsets.claim(next_offset, self.state.image)
        # A full session for each broker: the time without an active controller must not count, or
        # the new one would fence all brokers at once.
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
                stable,
                log_is_empty=stable.is_empty and nothing_replayed,
                transaction_is_open=open_transaction is not None,
                bootstrap=self._bootstrap,
                static_min_insync_replicas=self.settings.static_min_isr,
                rules=self.rules,
            )
        except ReplayError as fault:
            return self._fail(str(fault), now_ms)
        decision = Decision(records=first.records, atomic=first.atomic)
        effects, _ = self._carry_out(decision, now_ms)
        return effects + self._timers.start(self.state, now_ms)

    def on_renounce(self, now_ms: int) -> list[Effect]:
        """This node leads no longer: back to what is committed, NOT_CONTROLLER to all who wait.

        The records of those who wait may yet be committed by the next leader, so their responses
        claim none.

        Source:  QuorumController.renounce.
        """
        return self._renounce(None) if self.is_active else []

    def on_append_rejected(self, base_offset: int, reason: str, now_ms: int) -> list[Effect]:
        """The quorum rejects a batch that is decided: its request fails, and this node resigns.

        Were the request rejected with NOT_CONTROLLER, its sender would try it again, and would
        bring down the next controller.

        Units:   base_offset is that of the batch.
        Source:  QuorumController.appendRecords, handleEventException.
        """
        epoch = self._epoch
        return [] if epoch is None else [*self._renounce(base_offset), Resign(epoch, reason)]

    def _renounce(self, rejected_offset: int | None) -> list[Effect]:
        self._epoch = None
        self.state.heartbeats = None
        self.state.revert(self._offsets.renounce())
        effects = self._fault_hits()
        for entry in self._deferred.take_all():
            fails = rejected_offset is not None and rejected_offset in entry.records_written
            error = ErrorCode.UNKNOWN_SERVER_ERROR if fails else ErrorCode.NOT_CONTROLLER
            message = None if fails else wrong_controller(None)
            rejected = error_response(entry.request, error, message, version=entry.version)
            # Without records, although they were appended: the trace must not say that a client was
            # told of records that the next controller may cut off (E40).
            effects.append(self._response(entry.token, rejected, entry.registered_epoch))
        return effects + self._timers.stop()

    def _fail(self, reason: str, now_ms: int) -> list[Effect]:
        """Give up the leadership: the state is broken in a way that another controller's is not."""
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
        access: Access = EVERYTHING,
        forwarded: bool = True,
        client: QuotaClient = ANONYMOUS,
    ) -> list[Effect]:
        """Decide a request; the response is among the effects of this event or of a later one.

        Shapes:  access: what the sender may do. forwarded: by a broker, for a client.
        Errors:  UNSUPPORTED_VERSION for an API or a version that this controller does not serve.
        """
        api = CONTROLLER_APIS.get(type(request))
        registered = self._registered_epoch(request)
        arrived = _Arrived(token, request, version, registered)
        if api is None or version < api.lowest_version(self.rules):
            return [self._reject(arrived, ErrorCode.UNSUPPORTED_VERSION)]
        if api.right is not None and not access.may_on_cluster(api.right):
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return [self._reject(arrived, error, needs(api.right))]
        quota = self._quota(api, client, version, now_ms)
        call = self._call(request, version, forwarded, quota, access, now_ms)
        screened = None
        if api.screen is not None:
            try:
                screened = api.screen(call)
            except Rejected as rejected:
                return [self._reject(arrived, rejected.error, rejected.message)]
            call = replace(call, request=screened.request)
        if api.is_empty(call.request):
            nothing = api.nothing if screened is None else screened.complete(api.nothing)
            return [self._response(token, nothing, registered)]
        if api.has_deadline and is_late(call.request):
            return [self._reject(arrived, ErrorCode.REQUEST_TIMED_OUT)]
        # From what is committed, so at once and on any controller. What is not committed may be
        # lost, and the client would have seen a state that never was.
        if api.reads:
            return [self._response(token, api.decide(call).response, registered)]
        if not self.is_active:
            message = wrong_controller(self.latest_controller)
            return [self._reject(arrived, ErrorCode.NOT_CONTROLLER, message)]
        if isinstance(request, BrokerHeartbeatRequest):
            # The contact counts before the heartbeat is decided. A controller that rejects it would
            # else let the session of a live broker expire (QuorumController.processBrokerHeartbeat,
            # trackBrokerHeartbeat).
            self.state.active_heartbeats().contact(request.broker_id, request.broker_epoch, now_ms)
        return self._write(api, call, arrived, screened)

    def _write(
        self, api: ControllerApi, call: Call, arrived: _Arrived, screened: Screened | None
    ) -> list[Effect]:
        """Decide a request and carry it out."""
        token, request, now_ms = arrived.token, arrived.request, call.now_ms
        try:
            decision = api.decide(call)
            effects, offsets = self._carry_out(decision, now_ms)
        except Rejected as rejected:
            return [
                *report_rejected(token, request, rejected),
                self._reject(arrived, rejected.error, rejected.message),
            ]
        except (ControllerFault, ReplayError) as fault:
            failed = self._reject(arrived, ErrorCode.UNKNOWN_SERVER_ERROR, str(fault))
            return [failed, *self._fail(str(fault), now_ms)]
        effects += [ReportRefusal(token, request, refusal) for refusal in decision.refusals]
        response = decision.response if screened is None else screened.complete(decision.response)
        entry = DeferredResponse(
            # A response without records waits as well: it may tell of a topic that is not committed
            # yet, and that is lost with this controller (E40).
            end_offset=offsets[-1] + 1 if offsets else self._offsets.last_append_end,
            token=token,
            request=request,
            version=arrived.version,
            response=call.quota.shown_in(response),
            records_written=offsets,
            registered_epoch=arrived.registered_epoch,
        )
        return effects + self._defer(entry) + self._timers.after_write(self.state, now_ms)

    def _quota(
        self, api: ControllerApi, client: QuotaClient, version: int, now_ms: int
    ) -> MutationQuota:
        if api.quota_strict_since is None:
            return UNBOUNDED
        quotas = self.committed_image.client_quotas
        is_strict = version >= api.quota_strict_since
        return self._quotas.quota_of(quotas, client, is_strict=is_strict, now_ms=now_ms)

    def _call(
        self,
        request: Any,
        version: int,
        forwarded: bool,
        quota: MutationQuota,
        access: Access,
        now_ms: int,
    ) -> Call:
        return Call(
            state=self.state,
            request=request,
            version=version,
            next_offset=self.next_offset,
            kraft=KRaftVersion(self.kraft_version, self.kraft_version_stays),
            forwarded=forwarded,
            draw=self._draw,
            new_topic_id=self._new_topic_id,
            committed=self.committed_image,
            quota=quota,
            access=access,
            now_ms=now_ms,
        )

    def _registered_epoch(self, request: Any) -> int | None:
        broker_id = getattr(request, "broker_id", None)
        if broker_id is None:
            return None
        broker = self.state.image.cluster.broker(broker_id)
        return -1 if broker is None else broker.epoch

    # Timers.

    def on_timer(self, name: str, now_ms: int) -> list[Effect]:
        """Run a periodic task that is due; off the active controller nothing happens.

        Source:  PeriodicTaskControlManager.
        """
        if not self.is_active or name not in self._timers:
            return []
        try:
            decision = self._timers.run(name, self.state, now_ms)
        except (ControllerFault, ReplayError) as fault:
            if self.rules.failed_task_renounces:
                return self._fail(str(fault), now_ms)
            return [TaskFailed(name, str(fault)), *self._timers.failed(name, now_ms)]
        try:
            effects, _ = self._carry_out(decision, now_ms)
        except (ControllerFault, ReplayError) as fault:
            return self._fail(str(fault), now_ms)
        effects += [ReportRefusal(None, None, refusal) for refusal in decision.refusals]
        return effects + self._timers.done(name, self.state, bool(decision.response), now_ms)

    # Carrying out.

    def _carry_out(self, decision: Decision, now_ms: int) -> tuple[list[Effect], tuple[int, ...]]:
        """Apply a decision's records and soft changes; the effects append them at these offsets.

        Errors:  ControllerFault for an atomic decision of more records than a batch holds, and
                 for full batches alone where ``Rules.full_batches_are_fatal``.
        """
        records, size = decision.records, self._max_records
        if decision.atomic and len(records) > size:
            raise ControllerFault(
                f"Attempted to atomically commit {len(records)} records, but maxRecordsPerBatch "
                f"is {size}"
            )
        are_full = bool(records) and len(records) % size == 0 and not decision.atomic
        if are_full and self.rules.full_batches_are_fatal:
            raise ControllerFault("Append failed because there are no records")
        effects = self._fault_hits()
        assert self._epoch is not None
        if decision.kraft_version is not None:
            # The quorum writes two records of its own first. A decision that expected their offsets
            # would land elsewhere, which makes the machine resign.
            effects.append(RaiseKRaftVersion(self._epoch, decision.kraft_version))
            self._offsets.next_offset += RECORDS_OF_RAISED_KRAFT_VERSION
        self._apply_soft(decision, -1, now_ms, after_records=False)
        base_offset = self.next_offset
        for start in range(0, len(records), size):
            batch = records[start : start + size]
            self._apply(batch, base_offset + start, now_ms)
            # A point to go back to after each batch, not only at the end: the quorum commits
            # batches, so a deposed controller may have to return to the state between two of one
            # decision.
            end_offset = base_offset + start + len(batch)
            self._offsets.appended(self._offsets.point(end_offset, self.state.image))
            effects.append(Append(self._epoch, base_offset + start, batch))
        last_offset = base_offset + len(records) - 1
        self._apply_soft(decision, last_offset, now_ms, after_records=True)
        return effects, tuple(range(base_offset, base_offset + len(records)))

    def _apply_soft(
        self, decision: Decision, last_offset: int, now_ms: int, *, after_records: bool
    ) -> None:
        """Apply soft changes; the offset of a controlled shutdown is set once it is written."""
        heartbeats = self.state.heartbeats
        for change in decision.soft:
            if isinstance(change, SetShutdownOffset) is not after_records:
                continue
            if isinstance(change, ReplicaStateChange):
                self.state.offline_replicas.apply(change)
            elif isinstance(change, PendingAlterIsrChange):
                self.state.pending_alter_isr.apply(change)
            elif heartbeats is not None:
                apply_soft(heartbeats, change, last_offset, now_ms)

    def _apply(self, records: Sequence[VersionedRecord], base_offset: int, now_ms: int) -> None:
        start = 0
        while start < len(records):
            offset = base_offset + start
            before = self._offsets.replay(records[start].record, offset, self.state.image)
            # An aborted transaction: what it changed is undone at once, indexes included.
            if before is not None:
                self.state.reset(before, offset)
            run = self._folds.run(self.state.image, records, start, offset)
            self.state.apply(run)
            if self.state.heartbeats is not None:
                replay_registration(self.state.heartbeats, run.message, self.state.image, now_ms)
            start += len(run.records)

    def _fault_hits(self) -> list[Effect]:
        return [FaultHit(zoo_id) for zoo_id in self.state.take_hits()]

    # Responding.

    def _defer(self, entry: DeferredResponse) -> list[Effect]:
        """Respond now or later: after one's own records, or after all that is under way."""
        if may_respond(self.state, entry.end_offset, self.stable_end):
            return [*self._fault_hits(), self._respond(entry)]
        self._deferred.add(entry)
        return []

    def _respond(self, entry: DeferredResponse) -> ControllerRespond:
        return ControllerRespond(
            entry.token,
            entry.response,
            entry.records_written,
            self._offsets.high_watermark,
            entry.registered_epoch,
        )

    def _reject(
        self, arrived: _Arrived, error: ErrorCode, message: str | None = None
    ) -> ControllerRespond:
        rejected = error_response(arrived.request, error, message, version=arrived.version)
        return self._response(arrived.token, rejected, arrived.registered_epoch)

    def _response(self, token: Any, response: Any, registered: int | None) -> ControllerRespond:
        """A response without records."""
        return ControllerRespond(token, response, (), self._offsets.high_watermark, registered)
