"""The text files of a log folder: meta.properties, partition.metadata, epoch checkpoints.

Source:  MetaProperties, PartitionMetadataFile, LeaderEpochCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from minicluster.log.textfile import read_text
from minicluster.protocol.uuids import format_uuid

META_PROPERTIES_NAME = "meta.properties"
PARTITION_METADATA_NAME = "partition.metadata"
EPOCH_CHECKPOINT_NAME = "leader-epoch-checkpoint"


def read_properties(path: Path) -> dict[str, str] | None:
    """Read ``key=value`` lines; ``#`` begins a comment. None if there is no file."""
    text = read_text(path)
    if text is None:
        return None
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def properties_text(values: Mapping[str, str]) -> str:
    """``key=value`` lines, with backslashes as Java reads them."""
    escaped = ((key, value.replace("\\", "\\\\")) for key, value in values.items())
    return "".join(f"{key}={value}\n" for key, value in escaped)


def meta_properties_text(*, node_id: int, cluster_id: str, directory_id: UUID) -> str:
    """The identity of a log directory."""
    return properties_text(
        {
            "node.id": str(node_id),
            "directory.id": format_uuid(directory_id),
            "version": "1",
            "cluster.id": cluster_id,
        }
    )


def epoch_checkpoint_text(entries: Sequence[tuple[int, int]]) -> str:
    """The lines of (epoch, start offset) under a version and their number."""
    lines = "".join(f"{epoch} {start}\n" for epoch, start in entries)
    return f"0\n{len(entries)}\n{lines}"


def partition_metadata_text(topic_id: UUID) -> str:
    """The topic id of a log."""
    return f"version: 0\ntopic_id: {format_uuid(topic_id)}"
