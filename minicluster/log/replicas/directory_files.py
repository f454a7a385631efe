"""The files of a log directory about all logs in it: offsets by partition, clean shutdown.

Source:  OffsetCheckpointFile, CleanShutdownFileHandler, LogManager.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

RECOVERY_POINTS_NAME = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS_NAME = "log-start-offset-checkpoint"
HIGH_WATERMARKS_NAME = "replication-offset-checkpoint"
CLEAN_SHUTDOWN_NAME = ".kafka_cleanshutdown"
_VERSION = 0

Offsets = Mapping[tuple[str, int], int]
"""Offsets by topic and partition."""


def offset_checkpoint_text(offsets: Offsets) -> str:
    """``topic partition offset`` lines under a version and their number."""
    lines = "".join(
        f"{topic} {index} {offset}\n" for (topic, index), offset in sorted(offsets.items())
    )
    return f"{_VERSION}\n{len(offsets)}\n{lines}"


def clean_shutdown_text(broker_epoch: int) -> str:
    """The broker epoch that the next registration refers to (KIP-966)."""
    return json.dumps({"version": _VERSION, "brokerEpoch": broker_epoch}, separators=(",", ":"))
