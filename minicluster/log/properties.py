"""The text files of a log folder: meta.properties, partition.metadata, epoch checkpoints.

Source:  MetaProperties, PartitionMetadataFile, LeaderEpochCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from minicluster.log.textfile import read_text, write_atomically

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


def write_properties(path: Path, values: Mapping[str, str]) -> None:
    """Write ``key=value`` lines."""
    write_atomically(path, "".join(f"{key}={value}\n" for key, value in values.items()))


def write_epoch_checkpoint(path: Path, entries: Sequence[tuple[int, int]]) -> None:
    """Write (epoch, start offset) lines."""
    lines = "".join(f"{epoch} {start}\n" for epoch, start in entries)
    write_atomically(path, f"0\n{len(entries)}\n{lines}")
