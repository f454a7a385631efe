"""A controller's folder read back as the log that it would start from."""

from __future__ import annotations

from pathlib import Path

from minicluster.log.checkpoint import parse_checkpoint_name
from minicluster.log.directory import read_metadata_log
from minicluster.log.locating import locate
from minicluster.log.log import Log
from minicluster.log.quorum_state import QuorumState
from minicluster.log.segment import TornTail
from minicluster.log.text_files import EPOCH_CHECKPOINT_NAME


def read_epoch_checkpoint(path: Path) -> tuple[tuple[int, int], ...]:
    """The (epoch, start offset) lines below the version and their count."""
    version, count, *lines = path.read_text().split("\n")
    entries = tuple((int(a), int(b)) for a, b in (line.split() for line in lines if line))
    assert (int(version), int(count)) == (0, len(entries)), f"{path}: no leader epoch checkpoint"
    return entries


def read_controller_directory(path: Path) -> tuple[Log, QuorumState | None, TornTail | None]:
    """Load the log from which a controller would start again.

    Shapes:  a ``controller-<id>`` or ``__cluster_metadata-0`` folder
             -> log, quorum state, torn tail.
    """
    located = locate(path)
    files = located.logs[0]
    content = read_metadata_log(files)
    log = Log()
    for checkpoint in files.checkpoints:
        if snapshot_id := parse_checkpoint_name(checkpoint.name):
            log.snapshots[snapshot_id] = checkpoint.read_bytes()
    if content.batches:
        log.truncate_fully(content.start_offset)
        log.extend(placed.batch for placed in content.batches)
    elif log.snapshots:
        log.truncate_fully(max(log.snapshots)[0])
    reached = [end for end, _ in sorted(log.snapshots) if end >= log.start_offset]
    if reached and log.start_offset > 0:  # retention drops whole segments; the log begins later
        log.start_offset = reached[0]
        log.epochs.truncate_from_start(reached[0])
    for epoch, start in read_epoch_checkpoint(files.path / EPOCH_CHECKPOINT_NAME):
        if log.epochs.latest is None or epoch > log.epochs.latest:
            log.epochs.assign(epoch, start)
    log.flush()
    return log, files.quorum_state, content.torn
