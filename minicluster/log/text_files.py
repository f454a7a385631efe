"""The small text files of log directories: read if there, replaced at once.

    meta.properties                                  the identity of a directory
    <log>/partition.metadata, leader-epoch-checkpoint    topic id and leader epochs of one log
    {recovery-point-offset,log-start-offset,replication-offset}-checkpoint
                                                     offsets of all logs in a directory
    .kafka_cleanshutdown                             the broker epoch that a clean shutdown leaves

Source:  MetaProperties, PartitionMetadataFile, LeaderEpochCheckpointFile; OffsetCheckpointFile,
         CleanShutdownFileHandler, LogManager.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

from minicluster.files import UnusableFile, read_bytes
from minicluster.log.errors import LogError
from minicluster.protocol.uuids import format_uuid

MAX_TEXT_BYTES = 16 << 20
META_PROPERTIES_NAME = "meta.properties"
PARTITION_METADATA_NAME = "partition.metadata"
EPOCH_CHECKPOINT_NAME = "leader-epoch-checkpoint"
RECOVERY_POINTS_NAME = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS_NAME = "log-start-offset-checkpoint"
HIGH_WATERMARKS_NAME = "replication-offset-checkpoint"
CLEAN_SHUTDOWN_NAME = ".kafka_cleanshutdown"
_VERSION = 0

Offsets = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""


def read_text(path: Path) -> str | None:
    """The text of a file, None if there is none.

    Errors:  LogError if it is there and cannot be read as text.
    """
    try:
        return read_bytes(path, max_bytes=MAX_TEXT_BYTES).decode("utf-8")
    except FileNotFoundError:
        return None
    except UnusableFile as error:
        raise LogError(str(error)) from None
    except UnicodeDecodeError:
        raise LogError(f"{path}: not a text file") from None
    except OSError as error:
        raise LogError(f"{path}: cannot be read: {error.strerror}") from None


def write_atomically(path: Path, text: str) -> None:
    """Write beside the file, flush to disk, then rename over it."""
    beside = path.with_name(path.name + ".tmp")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


# --- the files of one log, and the identity of a directory --------------------------------------


def read_properties(path: Path) -> dict[str, str] | None:
    """Read ``key=value`` lines; ``#`` begins a comment. None if there is no file."""
    text = read_text(path)
    if text is None:
        return None
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    return {key.strip(): value.strip() for key, _, value in pairs}


def properties_text(values: Mapping[str, str]) -> str:
    """``key=value`` lines in ASCII, as Java reads them (java.util.Properties.load)."""
    return "".join(f"{key}={_of_java(value)}\n" for key, value in values.items())


def _of_java(value: str) -> str:
    utf_16 = value.replace("\\", "\\\\").encode("utf-16-be")
    units = (int.from_bytes(utf_16[at : at + 2], "big") for at in range(0, len(utf_16), 2))
    text = "".join(chr(unit) if 32 <= unit < 127 else f"\\u{unit:04x}" for unit in units)
    return f"\\{text}" if text.startswith(" ") else text


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
    return f"{_VERSION}\n{len(entries)}\n{lines}"


def partition_metadata_text(topic_id: UUID) -> str:
    """The topic id of a log."""
    return f"version: 0\ntopic_id: {format_uuid(topic_id)}"


# --- the files of a log directory about all logs in it ------------------------------------------


def offset_checkpoint_text(offsets: Offsets) -> str:
    """``topic partition offset`` lines under a version and their number."""
    lines = "".join(
        f"{topic} {index} {offset}\n" for (topic, index), offset in sorted(offsets.items())
    )
    return f"{_VERSION}\n{len(offsets)}\n{lines}"


def clean_shutdown_text(broker_epoch: int) -> str:
    """The broker epoch that the next registration refers to (KIP-966)."""
    return json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
