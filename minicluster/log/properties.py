"""The text files of a log folder: meta.properties, partition.metadata, epoch checkpoints.

Source:  MetaProperties, PartitionMetadataFile, LeaderEpochCheckpointFile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from minicluster.log.errors import LogError
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


def read_epoch_checkpoint(path: Path) -> tuple[tuple[int, int], ...]:
    """Read (epoch, start offset) lines; none if there is no file.

    Errors:  LogError if the file is not in the form 0, count, entries.
    """
    text = read_text(path)
    if text is None:
        return ()
    try:
        version, count, *lines = text.split("\n")
        entries = tuple((int(a), int(b)) for a, b in (line.split() for line in lines if line))
        if int(version) != 0 or int(count) != len(entries):
            raise ValueError("version or count")
    except ValueError:
        raise LogError(f"{path}: not a leader epoch checkpoint") from None
    return entries


def write_epoch_checkpoint(path: Path, entries: Sequence[tuple[int, int]]) -> None:
    """Write (epoch, start offset) lines."""
    lines = "".join(f"{epoch} {start}\n" for epoch, start in entries)
    write_atomically(path, f"0\n{len(entries)}\n{lines}")
