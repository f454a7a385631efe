"""A controller's folder as Kafka lays it out: the files of its metadata log, read and written.

    controller-<id>/meta.properties
    controller-<id>/bootstrap.checkpoint
    controller-<id>/__cluster_metadata-0/<base offset>.log
    controller-<id>/__cluster_metadata-0/<end offset>-<epoch>.checkpoint
    controller-<id>/__cluster_metadata-0/{quorum-state,leader-epoch-checkpoint,partition.metadata}

``locating`` finds these files from any path that names some of them.

Source:  KafkaRaftLog, LogManager, MetaProperties.
"""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import BOOTSTRAP_NAME, checkpoint_name
from minicluster.log.errors import LogCorruption
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.log import Log, SnapshotId
from minicluster.log.quorum_state import (
    QUORUM_STATE_NAME,
    QuorumState,
    read_quorum_state,
    write_quorum_state,
)
from minicluster.log.segment import PlacedBatch, TornTail, read_segment, segment_name, write_segment
from minicluster.log.text_files import (
    EPOCH_CHECKPOINT_NAME,
    META_PROPERTIES_NAME,
    PARTITION_METADATA_NAME,
    epoch_checkpoint_text,
    meta_properties_text,
    partition_metadata_text,
    write_atomically,
)
from minicluster.protocol.topics import METADATA_TOPIC
from minicluster.protocol.uuids import METADATA_TOPIC_ID
from minicluster.values import Value

METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
SEGMENT_BYTES = 1 << 30


class MetadataFiles(Value):
    """The files of one metadata log, in order of offset; the node's id where a folder names it."""

    path: Path
    node_id: int | None
    segments: tuple[Path, ...]
    checkpoints: tuple[Path, ...]
    bootstrap: Path | None = None
    limits: ReadLimits = DEFAULT_LIMITS

    @property
    def quorum_state(self) -> QuorumState | None:
        """The election state that the node persisted."""
        return read_quorum_state(self.path / QUORUM_STATE_NAME) if self.path.is_dir() else None


class MetadataLogContent(Value):
    """The batches of one metadata log over all its segments, with the torn tail, if any."""

    files: MetadataFiles
    batches: tuple[PlacedBatch, ...]
    torn: TornTail | None

    @property
    def start_offset(self) -> int:
        """Where its first file begins."""
        return self.batches[0].batch.base_offset if self.batches else 0


def read_metadata_log(files: MetadataFiles) -> MetadataLogContent:
    """Read all segments; only the last may have a torn tail.

    Errors:  NotALog, LogCorruption (also for a gap or an overlap between segments).
    """
    placed: list[PlacedBatch] = []
    torn: TornTail | None = None
    for index, path in enumerate(files.segments):
        last = index == len(files.segments) - 1
        content = read_segment(path, whole=not last, limits=files.limits)
        if content.batches and placed:
            expected = placed[-1].batch.next_offset
            first_offset = content.batches[0].batch.base_offset
            if first_offset != expected:
                why = f"the segment before ends at offset {expected}"
                raise LogCorruption(file=str(path), position=0, base_offset=first_offset, why=why)
        placed += content.batches
        torn = content.torn
    return MetadataLogContent(files, tuple(placed), torn)


def write_controller_directory(
    path: Path,
    log: Log,
    *,
    node_id: int,
    cluster_id: str,
    directory_id: UUID,
    quorum_state: QuorumState | None = None,
    bootstrap: bytes | None = None,
    segment_bytes: int = SEGMENT_BYTES,
) -> None:
    """Write a controller's folder as Kafka lays it out."""
    folder = path / METADATA_DIRECTORY
    folder.mkdir(parents=True, exist_ok=True)
    identity = meta_properties_text(
        node_id=node_id, cluster_id=cluster_id, directory_id=directory_id
    )
    write_atomically(path / META_PROPERTIES_NAME, identity)
    if bootstrap is not None:
        (path / BOOTSTRAP_NAME).write_bytes(bootstrap)
    for base_offset, batches in _segments(log, segment_bytes):
        write_segment(folder / segment_name(base_offset), batches)
    for snapshot_id in sorted(log.snapshots):
        write_checkpoint(folder, snapshot_id, log.snapshots[snapshot_id])
    write_atomically(folder / EPOCH_CHECKPOINT_NAME, epoch_checkpoint_text(log.epochs.entries))
    write_atomically(folder / PARTITION_METADATA_NAME, partition_metadata_text(METADATA_TOPIC_ID))
    if quorum_state is not None:
        write_quorum_state(folder / QUORUM_STATE_NAME, quorum_state)


def write_checkpoint(folder: Path, snapshot_id: SnapshotId, content: bytes) -> Path:
    """Write a snapshot under its name, at once."""
    final = folder / checkpoint_name(snapshot_id)
    part = final.with_name(final.name + ".part")
    part.write_bytes(content)
    return part.replace(final)


def _segments(log: Log, segment_bytes: int) -> list[tuple[int, list[RecordBatch]]]:
    segments: list[tuple[int, list[RecordBatch]]] = []
    size = 0
    for batch in log.batches:
        if not segments or (size and size + batch.size > segment_bytes):
            segments.append((batch.base_offset, []))
            size = 0
        segments[-1][1].append(batch)
        size += batch.size
    return segments or [(log.start_offset, [])]
