"""The log directories of a broker: replicas that move between them, and directories that fail.

A move copies the log, reports the new directory, then replaces the log (KIP-113, KIP-858):

    copying --caught up--> queued --the controller has taken the directory--> replaced
                             └--the log has grown--> copying (and still queued)

The controller first, the log after: were the log replaced before the controller has the directory,
a failure of that directory would not take the replica out of its ISR.

A step copies as much as one fetch, and other inputs come between two steps. Where the metadata has
no directories (below metadata.version 3.7-IV2) a copy that has caught up replaces the log at once.

While more is copied than replica.alter.log.dirs.io.max.bytes.per.second, nothing is (KIP-113).

Source:     KIP-113, KIP-858; ReplicaAlterLogDirsManager, ReplicaAlterLogDirsThread,
            Partition.maybeReplaceCurrentWithFutureReplica, LogManager.replaceCurrentWithFutureLog;
            ReplicaManager.handleLogDirFailure.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection

from minicluster.effects import SetTimer, Trace
from minicluster.log import Log
from minicluster.planting import step
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.effects import DirectoryFailed
from minicluster.replica.log_manager import log_name
from minicluster.replica.partition.partition import FutureReplica, Partition
from minicluster.replica.replica_manager_state import ReplicaManagerState
from minicluster.rules import FailedReplicas

ALTER_LOG_DIRS_TIMER = "alter-log-dirs"


def begin_move(
    state: ReplicaManagerState, partition: Partition, directory: uuid.UUID, now_ms: int
) -> None:
    """Make an empty future log in a directory and begin to copy."""
    log = state.store.open_future(_name(partition), partition.topic_id, directory)
    partition.future = FutureReplica(directory, log)
    state.moving[partition.key] = None
    poll_moves(state, now_ms)


def resume_move(state: ReplicaManagerState, partition: Partition) -> None:
    """Continue a move that an earlier incarnation has begun."""
    stored = state.store.future(_name(partition))
    if stored is None:
        return
    if (
        stored.topic_id != partition.topic_id
        or stored.directory not in state.store.online_directories
    ):
        state.store.delete_future(_name(partition))
        return
    partition.future = FutureReplica(stored.directory, stored.log)
    state.moving[partition.key] = None


def cancel_move(state: ReplicaManagerState, partition: Partition, now_ms: int) -> None:
    """Delete the future log; a directory that was reported is taken back.

    Source:  ReplicaAlterLogDirsThread.removePartitions, Partition.removeFutureLocalReplica.
    """
    future = partition.future
    if future is None:
        return
    state.store.delete_future(_name(partition))
    partition.future = None
    state.moving.pop(partition.key, None)
    current = state.store.partition_file(_name(partition))
    if future.is_queued and current is not None:
        state.assignments.assign({partition.key: current.directory}, now_ms)


def drop_failed_moves(state: ReplicaManagerState, directory: uuid.UUID, now_ms: int) -> None:
    """End the moves into a directory that has failed.

    Source:  ReplicaManager.handleLogDirFailure.
    """
    for key in list(state.moving):
        partition = state.partitions.get(key)
        future = None if partition is None else partition.future
        if partition is not None and future is not None and future.directory == directory:
            cancel_move(state, partition, now_ms)


def poll_moves(state: ReplicaManagerState, now_ms: int) -> None:
    """Let every move continue as far as it can without copying, and have the rest copied."""
    for key in list(state.moving):
        partition = state.partitions.get(key)
        if partition is None or partition.future is None:
            del state.moving[key]
        elif not is_caught_up(partition.future, partition.log):
            _schedule(state, now_ms)
        elif not state.image.metadata_version.directory_assignment_supported:
            _replace_log(state, partition, partition.future)
        elif not partition.future.is_queued:
            partition.future.is_queued = True
            state.assignments.assign({key: partition.future.directory}, now_ms)
        elif key not in state.assignments.pending:
            _replace_log(state, partition, partition.future)


def on_copy_timer(state: ReplicaManagerState, now_ms: int) -> None:
    """Copy a part of each log that its future log lacks."""
    state.copy_is_due = False
    quota = state.quotas.alter_log_dirs
    for key in state.moving:
        partition = state.partitions.get(key)
        if partition is None or partition.future is None or quota.is_exceeded(now_ms):
            continue
        max_bytes = state.config.fetcher.partition_max_bytes
        quota.record(copy_some(partition.future, partition.log, max_bytes), now_ms)
    poll_moves(state, now_ms)


def _schedule(state: ReplicaManagerState, now_ms: int) -> None:
    if not state.copy_is_due:
        state.copy_is_due = True
        is_exceeded = state.quotas.alter_log_dirs.is_exceeded(now_ms)
        wait_ms = state.fetcher_config.backoff_ms if is_exceeded else 0
        state.effects.append(SetTimer(ALTER_LOG_DIRS_TIMER, now_ms + wait_ms))


def _replace_log(state: ReplicaManagerState, partition: Partition, future: FutureReplica) -> None:
    """The future log becomes the log of the replica, and the old one is deleted."""
    future.log.delete_before(partition.log_start_offset)
    for epoch, start_offset in partition.log.epochs.entries:
        future.log.epochs.assign(epoch, start_offset)
    state.store.replace_with_future(_name(partition))
    partition.replace_log(future.log, future.directory)
    partition.future = None
    del state.moving[partition.key]


def _name(partition: Partition) -> str:
    return log_name(partition.topic, partition.partition)


# --- the copy -----------------------------------------------------------------------------------


def is_caught_up(future: FutureReplica, current: Log) -> bool:
    """The future log holds what the current one holds."""
    _truncate_to_common(future.log, current)
    return future.log.end_offset == current.end_offset


def copy_some(future: FutureReplica, current: Log, max_bytes: int) -> int:
    """Copy as many batches as one fetch of a replica reads (replica.fetch.max.bytes).

    The first batch may begin below the start of the log, where records within it were deleted; an
    empty future log then begins with it.

    Shapes:  -> how many bytes.
    Source:  LocalLeaderEndPoint.fetch, ReplicaAlterLogDirsThread.processPartitionData,
             Partition.appendRecordsToFollowerOrFutureReplica (UnexpectedAppendOffsetException).
    """
    log = future.log
    copied = 0
    _truncate_to_common(log, current)
    for batch in current.read(log.end_offset, max_bytes, current.end_offset):
        if batch.base_offset < log.end_offset and log.is_empty:
            log.truncate_fully(batch.base_offset)
        log.epochs.assign(batch.leader_epoch, batch.base_offset)
        log.append(batch)
        copied += batch.size
    log.delete_before(current.start_offset)
    return copied


def _truncate_to_common(log: Log, current: Log) -> None:
    """Truncate a future log to what it has in common with the current one.

    A future log that ends below the start of the current one begins again there.
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


# --- a directory that has failed ----------------------------------------------------------------


def trace_failure(state: ReplicaManagerState, directory: uuid.UUID) -> None:
    """Record that the directory is offline here from now on."""
    row = {"action": "fail_dir", "targets": [state.broker_id], "phase": "note"}
    row |= {"detail": "its replicas are offline", "directory": format_uuid(directory)}
    state.effects.append(Trace("fault", row))


@step
def take_offline(
    state: ReplicaManagerState, directory: uuid.UUID, logs: Collection[str], now_ms: int
) -> None:
    """Stop the replicas in the directory, and report it by heartbeat (KIP-858)."""
    drop_failed_moves(state, directory, now_ms)
    state.take_offline(logs, now_ms)
    if state.rules.failed_replicas_reported_by is FailedReplicas.HEARTBEAT:
        state.effects.append(DirectoryFailed(directory))
