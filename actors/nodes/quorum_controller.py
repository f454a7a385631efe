"""The quorum controller: a voter of the metadata quorum and the controller machine on top of it.

brokers, clients ──requests──▶ ControllerMachine ──Append──▶ QuorumMachine ──Fetch──▶ voters
                 ◀─responses, once committed─┘ ◀──commits, changes of leader──┘
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from minicluster.actors.network import Completion, Packet
from minicluster.actors.nodes.quorum_shell import (
    CLEAN,
    QUORUM_APIS,
    WAKE,
    QuorumPlan,
    QuorumShell,
)
from minicluster.actors.nodes.shell import NodeContext
from minicluster.actors.recording.metadata_sink import Inlet
from minicluster.actors.runtime import chance
from minicluster.controller.effects import (
    Append,
    ControllerRespond,
    RaiseKRaftVersion,
    ReportRefusal,
    Resign,
)
from minicluster.controller.machine import ControllerMachine
from minicluster.controller.settings import ControllerSettings
from minicluster.log.checkpoint import decode_snapshot
from minicluster.metadata.batch_loader import Provenance
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.metadata_version import KRAFT_VERSION
from minicluster.metadata.snapshot import image_from_records
from minicluster.metadata.snapshot_generator import SnapshotGenerator, WriteSnapshot
from minicluster.protocol.messages import ApiVersionsResponse
from minicluster.protocol.records import VersionedRecord
from minicluster.quorum import effects as qx
from minicluster.quorum.errors import IllegalArgument, NotLeader

_SUPPORTS = ApiVersionsResponse(
    supported_features=(
        ApiVersionsResponse.SupportedFeatureKey(name=KRAFT_VERSION, min_version=0, max_version=1),
    )
)


class GiveUp:
    """Resign, if this controller is the leader."""


class TakeSnapshot:
    """Write a snapshot of the committed state."""


class Compact:
    """Drop the log before the newest snapshot."""


class QuorumController(QuorumShell):
    """Two machines in one mailbox; the commits of one are the inputs of the other."""

    def __init__(
        self,
        context: NodeContext,
        plan: QuorumPlan,
        inlet: Inlet,
        bootstrap: tuple[VersionedRecord, ...],
    ) -> None:
        super().__init__(context, plan)
        self.inlet = inlet
        self.active_epoch: int | None = None  # the test's thread reads it
        config = context.config
        self._chance = chance.key(self.rt.seed, f"controller/{self.node_id}/{self._incarnation}")
        self._chances = 0
        self.controller = ControllerMachine(
            settings=ControllerSettings(
                node_id=self.node_id,
                cluster_id=plan.cluster_id,
                default_replication_factor=config.default_replication_factor,
                default_num_partitions=config.num_partitions,
                static_config=config.static,
                broker_session_timeout_ms=config.session_timeout_ms,
                auto_leader_rebalance=config.auto_leader_rebalance,
                leader_imbalance_check_interval_ms=config.imbalance_check_interval_ms,
                unclean_election_check_interval_ms=config.unclean_election_interval_ms,
                max_idle_interval_ms=config.metadata_max_idle_interval_ms,
            ),
            bootstrap=bootstrap,
            draw=self._draw_below,
            new_topic_id=self._new_topic_id,
            rules=context.rules,
            faults=context.faults,
        )
        self._snapshots = SnapshotGenerator(
            self.now(),
            max_bytes=config.snapshot_bytes,
            max_interval_ms=config.snapshot_interval_ms,
        )
        self._committed = Provenance()
        self._shown = MetadataImage.EMPTY

    def _draw_below(self, bound: int) -> int:
        self._chances += 1
        return chance.draw(self._chance, self._chances) % bound

    def _new_topic_id(self) -> uuid.UUID:
        self._chances += 2
        high = chance.draw(self._chance, self._chances - 1)
        low = chance.draw(self._chance, self._chances)
        return uuid.UUID(int=(high << 64) | low, version=4)

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            **super().interpreters(),
            Append: self._append,
            RaiseKRaftVersion: self._raise_kraft_version,
            Resign: self._resign,
            ControllerRespond: self._controller_respond,
            ReportRefusal: self._report_refusal,
            WriteSnapshot: self._write_snapshot,
        }

    def on_start(self) -> None:
        self.start_quorum()

    # Messages.

    def on_packet(self, packet: Packet) -> None:
        exchange = packet.exchange
        if exchange.api in QUORUM_APIS:
            self.on_quorum_packet(packet)
            return
        if exchange.api == "ApiVersions":  # the leader checks a voter to be added (AddRaftVoter)
            self.network.respond(packet, _SUPPORTS)
            return
        exchange.broker_epoch = getattr(packet.body, "broker_epoch", None)
        if exchange.api == "UpdateFeatures":
            self.controller.kraft_version_stays = self._why_kraft_version_stays()
        self._control(self.controller.on_request(packet, packet.body, exchange.version, self.now()))

    def on_response(self, completion: Completion) -> None:
        self.on_quorum_response(completion)

    def on_wakeup(self, name: str) -> None:
        if name == WAKE:
            self.on_quorum_wake()
        elif name == CLEAN:
            self.on_clean()
        else:
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
                if not self.compact():
                    self.log.info("log.not_compacted")
            case _:
                super().on_message(message)

    def _control(self, effects: list[Any]) -> None:
        """Perform the controller's effects; the quorum machine then writes the appended records."""
        self.perform(effects)
        self.active_epoch = self.controller.epoch
        self._rearm()

    def drive(self, effects: list[Any]) -> None:
        super().drive(effects)
        next_offset = self.quorum.next_append_offset
        if next_offset is not None and self.controller.is_active:
            self.controller.on_control_records(next_offset)  # the quorum has appended its own
        self.controller.kraft_version = self.quorum.kraft_version_to_be

    # From the controller to the quorum.

    def _append(self, append: Append) -> None:
        try:
            last_offset = self.quorum.append(append.epoch, append.records, self.now())
        except (NotLeader, IllegalArgument) as refusal:
            self.log.info("append.refused", reason=str(refusal))
            self._control(self.controller.on_renounce(self.now()))
            return
        if last_offset != append.base_offset + len(append.records) - 1:
            self.log.warning("append.elsewhere", expected=append.base_offset, last=last_offset)
            self._control(self.controller.on_renounce(self.now()))
            self.quorum.resign(append.epoch)

    def _why_kraft_version_stays(self) -> str | None:
        try:
            self.quorum.upgrade_kraft_version(self.quorum.epoch, 1, self.now(), validate_only=True)
        except (NotLeader, IllegalArgument) as refusal:
            return str(refusal)
        return None

    def _raise_kraft_version(self, wanted: RaiseKRaftVersion) -> None:
        """Raise kraft.version in the quorum, which refuses nothing that the controller accepted."""
        try:
            self.quorum.upgrade_kraft_version(wanted.epoch, wanted.version, self.now())
        except (NotLeader, IllegalArgument) as refusal:
            self.log.info("kraft_version.refused", reason=str(refusal))
        self.controller.kraft_version = self.quorum.kraft_version_to_be

    def _resign(self, resign: Resign) -> None:
        self.log.warning("controller.resigns", epoch=resign.epoch, reason=resign.reason)
        if self.quorum.is_leader and self.quorum.epoch == resign.epoch:
            self.quorum.resign(resign.epoch)

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
        packet: Packet = respond.token
        exchange = packet.exchange
        if exchange.resp_seq is None:
            exchange.records_written = respond.records_written
            exchange.high_watermark = respond.high_watermark
            exchange.registered_epoch = respond.registered_epoch
        self.network.respond(packet, respond.response)

    # From the quorum to the controller.

    def on_commit(self, commit: qx.Commit) -> None:
        self.inlet.offer(commit.batches)
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
        content = decode_snapshot(snapshot.content, f"snapshot {snapshot.snapshot_id}")
        end_offset = snapshot.snapshot_id[0]
        image = image_from_records(content.records, offset=end_offset - 1)
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

    def on_leader_change(self, change: qx.LeaderChange) -> None:
        now_ms = self.now()
        if change.leader_id == self.node_id:
            if self.controller.is_active:
                self._control(self.controller.on_renounce(now_ms))
            next_offset = self.quorum.log.end_offset
            self._control(self.controller.on_claim(change.epoch, next_offset, now_ms))
        else:
            self._control(self.controller.on_renounce(now_ms))
