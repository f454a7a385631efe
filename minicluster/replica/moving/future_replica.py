"""The copy of a log that is about to replace it from another directory.

Source:  Partition.futureLog, ReplicaAlterLogDirsThread.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from minicluster.log import Log

REPLICA_FETCH_MAX_BYTES = 1024 * 1024


@dataclass(slots=True)
class FutureReplica:
    """A future log and its directory.

    Shapes:  is_queued: the new directory is reported to the controller (ReassignmentState.Queued).
    """

    directory: uuid.UUID
    log: Log
    is_queued: bool = False


def is_caught_up(future: FutureReplica, current: Log) -> bool:
    """The future log holds what the current one holds."""
    _truncate_to_common(future.log, current)
    return future.log.end_offset == current.end_offset


def copy_some(future: FutureReplica, current: Log) -> None:
    """Copy as many batches as one fetch of a replica reads.

    Source:  LocalLeaderEndPoint.fetch, ReplicaAlterLogDirsThread.processPartitionData.
    """
    log = future.log
    _truncate_to_common(log, current)
    for batch in current.read(log.end_offset, REPLICA_FETCH_MAX_BYTES, current.end_offset):
        log.epochs.assign(batch.leader_epoch, batch.base_offset)
        log.append(batch)
    log.delete_before(current.start_offset)


def _truncate_to_common(log: Log, current: Log) -> None:
    """Truncate a future log to what it has in common with the current one.

    A future log that ends below the start of the current one begins anew there.
    """
    while (latest := log.epochs.latest) is not None:
        epoch, end_offset = current.end_offset_for(latest)
        end_offset = min(end_offset, current.end_offset)
        if epoch == latest and end_offset >= log.end_offset:
            break
        before = log.end_offset, latest
        log.truncate(min(max(end_offset, log.start_offset), log.end_offset))
        log.epochs.truncate_from_end(log.end_offset)
        if (log.end_offset, log.epochs.latest) == before:
            break
    if not current.start_offset <= log.end_offset <= current.end_offset:
        log.truncate_fully(current.start_offset)
