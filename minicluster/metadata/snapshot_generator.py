"""When a node writes a snapshot of its image: so many bytes, or so much time, after the last one.

Leaves out retention, which is the log's business.

Source:  KIP-630, KIP-876; SnapshotGenerator.
"""

from __future__ import annotations

from minicluster.effects import Effect
from minicluster.metadata.batch_loader import Provenance
from minicluster.metadata.image.metadata_image import MetadataImage

MAX_BYTES_DEFAULT = 20 << 20
"""``metadata.log.max.record.bytes.between.snapshots``"""
MAX_INTERVAL_MS_DEFAULT = 3_600_000
"""``metadata.log.max.snapshot.interval.ms``; 0 turns it off."""


class WriteSnapshot(Effect, kw_only=True):
    """Write this image as a snapshot, and report the end.

    Units:   snapshot_id is (end offset, exclusive; epoch).
    """

    snapshot_id: tuple[int, int]
    image: MetadataImage
    last_contained_log_timestamp: int
    reason: str


class SnapshotGenerator:
    """Counts what the loader publishes to one publisher."""

    def __init__(
        self,
        now_ms: int,
        *,
        max_bytes: int = MAX_BYTES_DEFAULT,
        max_interval_ms: int = MAX_INTERVAL_MS_DEFAULT,
    ) -> None:
        self._max_bytes = max_bytes
        self._max_interval_ms = max_interval_ms
        self._bytes = 0
        self._since_ms = now_ms
        self._is_writing = False
        self.disabled_reason: str | None = None
        """Why no snapshot may be written, if none may: a fault has been seen."""

    def on_snapshot(self, now_ms: int) -> list[Effect]:
        """Start the counts again: the node has a whole image from a snapshot."""
        self._reset(now_ms)
        return []

    def on_image(
        self, image: MetadataImage, provenance: Provenance, num_bytes: int, now_ms: int
    ) -> list[Effect]:
        """Count the bytes that led to this image, and request a snapshot of it when due."""
        self._bytes += num_bytes
        reason = self._due(now_ms)
        if reason is None or self._is_writing or not provenance.offset_batch_aligned:
            return []
        self._reset(now_ms)
        if self.disabled_reason is not None:
            return []
        self._is_writing = True
        return [
            WriteSnapshot(
                snapshot_id=provenance.snapshot_id,
                image=image,
                last_contained_log_timestamp=provenance.last_contained_log_time_ms,
                reason=reason,
            )
        ]

    def on_written(self) -> None:
        """The requested snapshot is written, or could not be; another may follow."""
        self._is_writing = False

    def _due(self, now_ms: int) -> str | None:
        if self._bytes >= self._max_bytes:
            return f"{self._bytes} bytes since the last snapshot"
        waited_ms = now_ms - self._since_ms
        if self._max_interval_ms and waited_ms >= self._max_interval_ms:
            return f"{waited_ms} ms since the last snapshot"
        return None

    def _reset(self, now_ms: int) -> None:
        self._bytes, self._since_ms = 0, now_ms
