"""The quorum controller: a voter of the metadata quorum and the controller machine on top of it.

brokers, clients ──requests──▶ ControllerMachine ──Append──▶ QuorumMachine ──Fetch──▶ voters
                 ◀─responses, once committed─┘ ◀──commits, changes of leader──┘

In Kafka the two have a thread each. Here one actor carries both, and an event of either is one
step, for which the other waits: 2,000 partitions created by one request take 45 ms of the
processor, 5,000 take 130 ms, a reassignment of 9,000 half a second. On two cores with fifteen other
jobs the first disturbs nobody. The second takes longer than a voter's fetch may (2 s) there, with
all that the brokers of the process do by it: the leader is deposed, and the request tried again
(``python -m tests.load --topics 200``, ``--topics 2000``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from minicluster import effects as fx
from minicluster.actors.exchange import Exchange
from minicluster.actors.links import Packet
from minicluster.actors.network import Completion
from minicluster.actors.nodes.authorization import access_of, screened
from minicluster.actors.nodes.quorum_shell import (
    QUORUM_REQUESTS,
    QuorumPlan,
    QuorumShell,
    static_configs,
)
from minicluster.actors.nodes.shell import NodeContext
from minicluster.actors.recording.metadata_sink import Inlet
from minicluster.actors.runtime import chance
from minicluster.broker.api_state import KafkaApisConfig
from minicluster.controller.effects import (
    Append,
    ControllerRespond,
    RaiseKRaftVersion,
    ReportRefusal,
    Resign,
    TaskFailed,
)
from minicluster.controller.machine import ControllerMachine
from minicluster.controller.mutation_quotas import QuotaClient
from minicluster.controller.settings import ControllerSettings
from minicluster.metadata.batch_loader import Provenance
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.snapshot_generator import SnapshotGenerator, WriteSnapshot
from minicluster.protocol import ErrorCode
from minicluster.protocol.messages import (
    ControllerRegistrationRequest,
    EnvelopeRequest,
    EnvelopeResponse,
    UpdateFeaturesRequest,
)
from minicluster.protocol.records import VersionedRecord
from minicluster.quorum import effects as qx
from minicluster.quorum.errors import IllegalArgument, NotLeader
from minicluster.security.acls import Operation
from minicluster.security.authorizer import NeverDecided
from minicluster.security.principals import Requester
from minicluster.security.protocols import CONTROLLER_LISTENER
from minicluster.security.screening import EVERYTHING, Access, Asked, Rejected
from minicluster.server.authorization import SCREENS
from minicluster.server.controller_listener import RESPONDERS, ControllerListenerState
from minicluster.server.controller_listener import respond as controller_response
from minicluster.server.controller_registration import (
    ControllerRegistrationConfig,
    ControllerRegistrationManager,
)
from minicluster.server.envelope import ForwardedRequest, close_envelope, open_envelope
from minicluster.values import Value


class GiveUp:
    """Resign, if this controller is the leader."""


class TakeSnapshot:
    """Write a snapshot of the committed state."""


class Compact:
    """Drop the log before the newest snapshot."""


class Forwarded(Value):
    """The token of a request that came in an envelope."""

    packet: Packet
    inside: ForwardedRequest

    @property
    def exchange(self) -> Exchange:
        """The exchange of the envelope."""
        return self.packet.exchange


class QuorumController(QuorumShell):
    """Two machines in one mailbox; the commits of one are the inputs of the other."""

    def __init__(
        self,
        context: NodeContext,
        plan: QuorumPlan,
        inlet: Inlet,
        bootstrap: tuple[VersionedRecord, ...],
        broker: Any,  # of the same process, which follows this quorum machine; else None
    ) -> None:
        super().__init__(context, plan)
        self.inlet = inlet
        self._broker = broker
        if broker is not None:
            broker.controller = self  # before this actor runs, which passes on what it loads
        self.active_epoch: int | None = None  # the test's thread reads it
        config = context.config
        self._chance = chance.key(self.rt.seed, f"controller/{self.node_id}/{self._incarnation}")
        self._chances = 0
        self.controller = ControllerMachine(
            settings=ControllerSettings(
                node_id=self.node_id,
                cluster_id=plan.cluster_id,
                static_voters=() if plan.kraft_version else plan.voter_ids,
                default_replication_factor=config.default_replication_factor,
                default_num_partitions=config.num_partitions,
                static_config=config.static,
                broker_heartbeat_interval_ms=config.heartbeat_interval_ms,
                broker_session_timeout_ms=config.session_timeout_ms,
                auto_leader_rebalance=config.auto_leader_rebalance,
                leader_imbalance_check_interval_ms=config.imbalance_check_interval_ms,
                unclean_election_check_interval_ms=config.unclean_election_interval_ms,
                token_lifetime_max_ms=int(config.text("delegation.token.max.lifetime.ms")),
                token_expiry_ms=int(config.text("delegation.token.expiry.time.ms")),
                token_check_interval_ms=int(
                    config.text("delegation.token.expiry.check.interval.ms")
                ),
                epoch_ms=self.rt.epoch_ms,
                max_idle_interval_ms=config.metadata_max_idle_interval_ms,
                unstable_feature_versions=config.unstable_feature_versions,
            ),
            bootstrap=bootstrap,
            draw=self._draw_below,
            new_topic_id=self._new_topic_id,
            rules=context.rules,
            faults=context.faults,
            folds=context.folds,
        )
        self._snapshots = SnapshotGenerator(
            self.now(),
            max_bytes=config.snapshot_bytes,
            max_interval_ms=config.snapshot_interval_ms,
        )
        addresses = plan.controller_address(self.node_id)
        self._listener = ControllerListenerState(
            KafkaApisConfig(
                broker_id=self.node_id,
                cluster_id=plan.cluster_id,
                listener=CONTROLLER_LISTENER,
                features=context.features_of_controller_listener(),
                static=static_configs(context, plan, "controller", addresses),
                rules=context.rules,
            )
        )
        self._listener.authorizer = context.authorizer
        self._registration = self._registration_manager()
        self._committed = Provenance()
        self._shown = MetadataImage.EMPTY

    def _registration_manager(self) -> ControllerRegistrationManager:
        endpoint = self.plan.endpoint(self.node_id)
        listener = ControllerRegistrationRequest.Listener(
            name=endpoint.name,
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=self.plan.controller_protocol.id,
        )
        return ControllerRegistrationManager(
            ControllerRegistrationConfig(
                node_id=self.node_id,
                incarnation_id=self.context.incarnation,
                listeners=(listener,),
                features=self.context.features(),
            )
        )

    def _draw_below(self, bound: int) -> int:
        self._chances += 1
        return chance.draw(self._chance, self._chances) % bound

    def _new_topic_id(self) -> uuid.UUID:
        self._chances += 2
        return chance.random_uuid(self._chance, self._chances - 1)

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            **super().interpreters(),
            fx.Respond: self._respond_of_quorum,
            Append: self._append,
            RaiseKRaftVersion: self._raise_kraft_version,
            Resign: self._resign,
            TaskFailed: self._task_failed,
            ControllerRespond: self._controller_respond,
            ReportRefusal: self._report_refusal,
            WriteSnapshot: self._write_snapshot,
        }

    # Messages.

    def on_packet(self, packet: Packet) -> None:
        exchange, body = packet.exchange, packet.body
        if not isinstance(body, EnvelopeRequest):
            if (epoch := getattr(body, "broker_epoch", None)) is not None:
                self.recorder.found(exchange, broker_epoch=epoch)
            # A request that a broker of this cluster forwards has the client's own as its context.
            forwarding = isinstance(exchange.context, Packet)
            origin = (exchange.context.exchange if forwarding else exchange).sender
            client, forwarded = QuotaClient(client_id=origin.client_id), exchange.src >= -1
            self._authorize(
                packet, body, exchange.version, client, origin.requester, forwarded=forwarded
            )
            return
        sender = access_of(exchange.sender.requester, self.context.authorizer)
        if sender is not None and not sender.may_on_cluster(Operation.CLUSTER_ACTION):
            error = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            self.network.respond(packet, EnvelopeResponse(error_code=error))
            return
        inside = open_envelope(body, (exchange.sender.requester or Requester()).security_protocol)
        if isinstance(inside, ErrorCode):
            self.network.respond(packet, EnvelopeResponse(error_code=inside))
        else:
            client = QuotaClient(inside.user, inside.client_id)
            token = Forwarded(packet, inside)
            self._authorize(token, inside.request, inside.version, client, inside.requester)

    def _authorize(
        self,
        token: Packet | Forwarded,
        request: Any,
        version: int,
        client: QuotaClient,
        requester: Requester | None,
        *,
        forwarded: bool = True,
    ) -> None:
        """Handle what a client may ask; the machine asks for rights on what it decides itself."""
        access = access_of(requester, self.context.authorizer)
        if access is not None:
            image = self.controller.committed_image
            try:
                result = screened(SCREENS, Asked(access, request, version, image))
            except NeverDecided:
                return
            if isinstance(result, Rejected):
                self.respond(token, result.response)
                return
            request = result.request
            (token.packet if isinstance(token, Forwarded) else token).complete = result.complete
        else:
            access = EVERYTHING if requester is None else Access(None, requester)
        self._on_request(token, request, version, client, access, forwarded=forwarded)

    def _on_request(
        self,
        token: Packet | Forwarded,
        request: Any,
        version: int,
        client: QuotaClient,
        access: Access,
        *,
        forwarded: bool = True,
    ) -> None:
        """Handle a request of a node or a client."""
        if type(request) in QUORUM_REQUESTS:
            self.on_quorum_request(token, request, version)
        elif type(request) in RESPONDERS:
            self.respond(token, self._responded(request, version))
        else:
            if isinstance(request, UpdateFeaturesRequest):
                self.controller.kraft_version_stays = self._why_kraft_version_stays()
            effects = self.controller.on_request(
                token,
                request,
                version,
                self.now(),
                access=access,
                forwarded=forwarded,
                client=client,
            )
            self._control(effects)

    @property
    def listener_state(self) -> ControllerListenerState:
        """What the listener answers by, at the newest committed image."""
        state, image = self._listener, self.controller.committed_image
        state.image, state.metadata_offset = image, self._committed.last_contained_offset
        state.kraft_version, state.leader_id = self.quorum.kraft_version, self.quorum.leader_id
        return state

    def _responded(self, request: Any, version: int) -> Any:
        """The response to a request that needs no log."""
        return controller_response(self.listener_state, request, version, self.now())

    def respond(self, token: Packet | Forwarded, response: Any) -> None:
        """Send a response, in an envelope where the request came in one."""
        packet = token.packet if isinstance(token, Forwarded) else token
        if packet.complete is not None:
            response = packet.complete(response)
        if isinstance(token, Forwarded):
            response = close_envelope(token.inside, response)
        self.network.respond(packet, response)

    def on_machine_response(self, completion: Completion) -> None:
        self.perform(self.complete(self._registration, completion))

    def on_machine_timer(self, name: str) -> None:
        self.perform(self._registration.on_timer(name, self.now()))
        self._control(self.controller.on_timer(name, self.now()))

    def on_message(self, message: Any) -> None:
        match message:
            case GiveUp():
                if self.quorum.is_leader:
                    self.quorum.resign(self.quorum.epoch)
                    self._rearm()
            case TakeSnapshot():
                self._take_snapshot()
            case Compact():
                if not self.quorum.compact():
                    self.log.info("log.not_compacted")
            case _:
                super().on_message(message)

    def _control(self, effects: list[Any]) -> None:
        """Perform the controller's effects; the quorum machine then writes the appended records."""
        self.perform(effects)
        self.active_epoch = self.controller.epoch
        self._rearm()

    def drive(self, effects: list[Any]) -> None:
        QuorumShell.drive(self, effects)
        if self.active_epoch is not None:
            next_offset = self.quorum.next_append_offset
            if next_offset is not None:
                self.controller.on_control_records(next_offset)  # the quorum has appended its own

    def _voters_changed(self, changed: qx.VotersChanged) -> None:
        super()._voters_changed(changed)
        self._follow_kraft_version()

    def _deposed(self, deposed: qx.Deposed) -> None:
        super()._deposed(deposed)
        self._follow_kraft_version()  # without the level that this leader was raising

    def _follow_kraft_version(self) -> None:
        self.controller.kraft_version = self.quorum.kraft_version_to_be

    # From the controller to the quorum.

    def _append(self, append: Append) -> None:
        try:
            last_offset = self.quorum.append(append.epoch, append.records, self.now())
        except NotLeader as refusal:
            self.log.info("append.refused", reason=str(refusal))
            self._control(self.controller.on_renounce(self.now()))
            return
        except IllegalArgument as refusal:
            base_offset, reason = append.base_offset, str(refusal)
            self._control(self.controller.on_append_rejected(base_offset, reason, self.now()))
            return
        if last_offset != append.base_offset + len(append.records) - 1:
            self.log.warning("append.elsewhere", expected=append.base_offset, last=last_offset)
            self._fault(f"appended up to {last_offset}, where {append.base_offset} is decided")
            self._control(self.controller.on_renounce(self.now()))
            self.quorum.resign(append.epoch)

    def _why_kraft_version_stays(self) -> str | None:
        try:
            self.quorum.upgrade_kraft_version(self.quorum.epoch, 1, self.now(), validate_only=True)
        except (NotLeader, IllegalArgument) as refusal:
            return str(refusal)
        return None

    def _raise_kraft_version(self, wanted: RaiseKRaftVersion) -> None:
        """Raise kraft.version in the quorum, which rejects nothing that the controller accepted."""
        try:
            self.quorum.upgrade_kraft_version(wanted.epoch, wanted.version, self.now())
        except (NotLeader, IllegalArgument) as refusal:
            self.log.info("kraft_version.refused", reason=str(refusal))
        self._follow_kraft_version()

    def _resign(self, resign: Resign) -> None:
        self.log.warning("controller.resigns", epoch=resign.epoch, reason=resign.reason)
        self._fault(f"it resigns from epoch {resign.epoch}: {resign.reason}")
        if self.quorum.is_leader and self.quorum.epoch == resign.epoch:
            self.quorum.resign(resign.epoch)

    def _task_failed(self, failed: TaskFailed) -> None:
        self.log.warning("controller.task_failed", task=failed.task, reason=failed.reason)
        self._fault(f"the task {failed.task}: {failed.reason}")

    def _fault(self, what: str) -> None:
        self.recorder.controller_faults.append(f"controller {self.node_id}: {what}")

    def _report_refusal(self, report: ReportRefusal) -> None:
        refusal, request = report.refusal, report.request
        exchange = None if report.token is None else report.token.exchange
        self.recorder.trace(
            "refusal",
            {
                "node": self.node_id,
                "incarnation": self._incarnation,
                "rpc": None if exchange is None else exchange.id,
                "api": None if exchange is None else exchange.api,
                "broker": getattr(request, "broker_id", None),
                "topic": refusal.topic or None,
                "part": refusal.partition if refusal.topic else None,
                "error": refusal.error.name,
                "reason": refusal.reason.value,
                "message": refusal.message,
            },
        )
        self.log.info("request.refused", reason=refusal.reason.value, message=refusal.message)

    def _controller_respond(self, respond: ControllerRespond) -> None:
        self.recorder.found(
            respond.token.exchange,
            records_written=respond.records_written,
            high_watermark=respond.high_watermark,
            registered_epoch=respond.registered_epoch,
        )
        self.respond(respond.token, respond.response)

    def _respond_of_quorum(self, respond: fx.Respond) -> None:
        self.respond(respond.token, respond.response)

    # From the quorum to the controller.

    def on_commit(self, commit: qx.Commit) -> None:
        self.inlet.offer(commit.batches)
        self._pass_on(commit)
        for batch in commit.batches:
            self._control(self.controller.on_batch(batch, self.now()))
        last = commit.batches[-1]
        self._committed = Provenance(
            last_contained_offset=last.last_offset,
            last_contained_epoch=last.leader_epoch,
            last_contained_log_time_ms=last.max_timestamp,
            offset_batch_aligned=not self.controller.in_transaction,
        )
        self._published(self._committed, "log")
        size = sum(batch.size for batch in commit.batches)
        self.perform(
            self._snapshots.on_image(
                self.controller.committed_image, self._committed, size, self.now()
            )
        )

    def _write_snapshot(self, wanted: WriteSnapshot) -> None:
        self.write_snapshot(wanted)
        self._snapshots.on_written()

    def _take_snapshot(self) -> None:
        """Write a snapshot on request of a test; inside a transaction there is none."""
        committed = self._committed
        if committed.offset_batch_aligned:
            self._write_snapshot(
                WriteSnapshot(
                    snapshot_id=committed.snapshot_id,
                    image=self.controller.committed_image,
                    last_contained_log_timestamp=committed.last_contained_log_time_ms,
                    reason="a test asked for it",
                )
            )

    def on_load_snapshot(self, snapshot: qx.LoadSnapshot) -> None:
        self._pass_on(snapshot)
        folds = self.context.folds
        content = folds.snapshot(snapshot.content, f"snapshot {snapshot.snapshot_id}")
        end_offset = snapshot.snapshot_id[0]
        image = folds.image_of(content.records, end_offset - 1)
        self._control(self.controller.on_snapshot(image, end_offset, self.now()))
        self._committed = Provenance(
            last_contained_offset=end_offset - 1,
            last_contained_epoch=snapshot.snapshot_id[1],
            last_contained_log_time_ms=content.last_contained_log_timestamp,
        )
        self._published(self._committed, "snapshot")
        self.perform(self._snapshots.on_snapshot(self.now()))

    def _published(self, provenance: Provenance, manifest: str) -> None:
        """Trace the committed image as published; inside a transaction nothing is."""
        image = self.controller.committed_image
        if image is self._shown or self.controller.in_transaction:
            return
        self._shown = image
        if self.context.authorizer is not None:
            self.context.authorizer.publish(image.acls)
        self.perform(self._registration.on_metadata(image, self.now()))
        if self._broker is not None:
            return  # one publisher for each process
        self.recorder.trace(
            "publish",
            {
                "node": self.node_id,
                "incarnation": self._incarnation,
                "offset": provenance.last_contained_offset,
                "epoch": provenance.last_contained_epoch,
                "image_hash": image.digest(),
                "manifest": manifest,
                "in_tx": False,
            },
        )

    def _pass_on(self, effect: qx.Commit | qx.LoadSnapshot | qx.LeaderChange) -> None:
        if self._broker is not None:
            self._broker.deliver(effect)

    def on_leader_change(self, change: qx.LeaderChange) -> None:
        now_ms = self.now()
        self._pass_on(change)
        leader = change.leader_id if change.leader_id >= 0 else None
        self.controller.latest_controller = leader
        self.perform(self._registration.channel.on_controller(leader, now_ms))
        if change.leader_id == self.node_id:
            if self.controller.is_active:
                self._control(self.controller.on_renounce(now_ms))
            next_offset = self.quorum.log.end_offset
            self._control(self.controller.on_claim(change.epoch, next_offset, now_ms))
        else:
            self._control(self.controller.on_renounce(now_ms))
