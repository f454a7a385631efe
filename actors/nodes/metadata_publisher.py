"""The metadata publisher: turns committed records into images, for one node.

    quorum's commits ──▶ (delay) ──▶ MetadataLoader ──▶ delta and image ──▶ the node's actors

A broker acts on published metadata, not on committed records. A delay here (``publish_delay``)
therefore leaves one broker with old metadata: its heartbeats, leaders and replicas lag behind.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from minicluster.actors.nodes.shell import NodeContext, Shell
from minicluster.actors.runtime.runtime import ClusterActor
from minicluster.log.batch import RecordBatch
from minicluster.metadata.batch_loader import (
    LeaderAndEpoch,
    LoaderFault,
    LogDeltaManifest,
)
from minicluster.metadata.image.delta import MetadataDelta
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.loader import (
    ClosePublisher,
    ControllerChanged,
    MetadataLoader,
    Publish,
)
from minicluster.metadata.snapshot_generator import SnapshotGenerator, WriteSnapshot
from minicluster.values import Value

DELAYED = "publish-delay"


class CommitSeen(Value):
    """Batches that the node's quorum machine reported as committed."""

    batches: tuple[RecordBatch, ...]
    high_watermark: int | None


class SnapshotSeen(Value):
    """A snapshot that the node's quorum machine loaded."""

    snapshot_id: tuple[int, int]
    content: bytes
    high_watermark: int | None


class LeaderSeen(Value):
    """The quorum has another leader or another epoch; -1: no leader."""

    leader_id: int
    epoch: int


class Install(Value):
    """Install a publisher for an actor, which gets the whole image first."""

    name: str
    actor: ClusterActor


class SetDelay(Value):
    """Set the delay of publication; 0 also publishes what is delayed."""

    delay_ms: int


class Published(Value, kw_only=True):
    """A published image with its delta: the newest metadata that the node's actors act on.

    Units:   offset is the last one that the image contains.
    """

    image: MetadataImage
    delta: MetadataDelta
    offset: int
    epoch: int


class Applied(Value):
    """The offset up to which the node has applied the metadata log; its heartbeats report it.

    Records that change no image have no other message.
    """

    offset: int


class MetadataPublisher(Shell):
    """The actor around ``MetadataLoader``."""

    def __init__(self, context: NodeContext, listener: ClusterActor | None) -> None:
        super().__init__(context)
        self.loader = MetadataLoader(context.rules, context.faults, context.folds)
        self.listener = listener
        self.delay_ms = 0
        self.image = MetadataImage.EMPTY  # the image last published here
        self.offset = -1
        self._digest = self.image.digest()
        self._targets: dict[str, ClusterActor] = {}
        self._waiting: deque[tuple[int, Any]] = deque()
        self._high_watermark: int | None = None
        self._snapshots = SnapshotGenerator(
            self.now(),
            max_bytes=context.config.snapshot_bytes,
            max_interval_ms=context.config.snapshot_interval_ms,
        )

    def interpreters(self) -> Mapping[type, Callable[[Any], None]]:
        return {
            Publish: self._publish,
            ControllerChanged: lambda _: None,  # the broker's quorum machine reports it
            ClosePublisher: lambda _: None,
            LoaderFault: self._fault,
            WriteSnapshot: self._write_snapshot,
        }

    def on_message(self, message: Any) -> None:
        if isinstance(message, Install):
            self._targets[message.name] = message.actor
            self._loaded(
                self.loader.install(
                    [message.name], high_watermark=self._high_watermark, now_ms=self.now()
                )
            )
        elif isinstance(message, SetDelay):
            self._set_delay(message.delay_ms)
        elif self.delay_ms or self._waiting:
            self._waiting.append((self.now() + self.delay_ms, message))
            self._arm()
        else:
            self._load(message)

    def on_wakeup(self, name: str) -> None:
        now_ms = self.now()
        if name == DELAYED:
            while self._waiting and self._waiting[0][0] <= now_ms:
                self._load(self._waiting.popleft()[1])
            self._arm()
        else:
            self._loaded(
                self.loader.on_timer(name, high_watermark=self._high_watermark, now_ms=now_ms)
            )

    def _set_delay(self, delay_ms: int) -> None:
        self.delay_ms = delay_ms
        if delay_ms == 0:
            while self._waiting:
                self._load(self._waiting.popleft()[1])

    def _arm(self) -> None:
        if self._waiting:
            self.set_timer(DELAYED, self._waiting[0][0])

    def _load(self, message: Any) -> None:
        now_ms = self.now()
        match message:
            case CommitSeen(batches, high_watermark):
                self._high_watermark = high_watermark
                effects = self.loader.on_commit(
                    batches, high_watermark=high_watermark, now_ms=now_ms
                )
                size = sum(batch.size for batch in batches)
                effects += self._snapshots.on_image(
                    self.loader.image, self.loader.provenance, size, now_ms
                )
            case SnapshotSeen(snapshot_id, content, high_watermark):
                self._high_watermark = high_watermark
                self._snapshots.on_snapshot(now_ms)
                snapshot = self.context.folds.snapshot(content, f"snapshot {snapshot_id}")
                effects = self.loader.on_load_snapshot(
                    snapshot_id,
                    snapshot.records,
                    last_contained_log_timestamp=snapshot.last_contained_log_timestamp,
                    high_watermark=high_watermark,
                    now_ms=now_ms,
                )
            case LeaderSeen(leader_id, epoch):
                leader = LeaderAndEpoch(None if leader_id < 0 else leader_id, epoch)
                effects = self.loader.on_leader_change(leader)
            case _:
                raise NotImplementedError(f"{self.name} does not understand {message!r}")
        self._loaded(effects)

    def _loaded(self, effects: list[Any]) -> None:
        """Perform the loader's effects, trace the published image, report the applied offset."""
        loader = self.loader
        self.perform(effects)
        offset = loader.last_applied_offset
        if offset != self.offset:
            if loader.image is not self.image:
                if self.context.authorizer is not None:
                    self.context.authorizer.publish(loader.image.acls)
                self.image, self._digest = loader.image, loader.image.digest()
            self.offset = offset
            provenance = loader.last_applied
            from_log = all(
                isinstance(effect.manifest, LogDeltaManifest)
                for effect in effects
                if isinstance(effect, Publish)
            )
            self.recorder.trace(
                "publish",
                {
                    "node": self.node_id,
                    "incarnation": self._incarnation,
                    "offset": offset,
                    "epoch": provenance.last_contained_epoch,
                    "image_hash": self._digest,
                    "manifest": "log" if from_log else "snapshot",
                    "in_tx": False,
                },
            )
            if self.listener is not None:
                self.listener.deliver(Applied(offset))

    def _publish(self, publish: Publish) -> None:
        target = self._targets.get(publish.publisher)
        if target is not None and not publish.delta.is_empty:
            provenance = publish.manifest.provenance
            target.deliver(
                Published(
                    image=publish.image,
                    delta=publish.delta,
                    offset=provenance.last_contained_offset,
                    epoch=provenance.last_contained_epoch,
                )
            )

    def _write_snapshot(self, wanted: WriteSnapshot) -> None:
        if self.listener is not None:
            self.listener.deliver(wanted)  # the quorum machine has the log
        self._snapshots.on_written()

    def _fault(self, fault: LoaderFault) -> None:
        self.log.error("metadata.fault", message=fault.message)
