"""The moves of a broker: copy, report the new directory, then replace the log.

    copying --caught up--> queued --the controller has taken the directory--> replaced
                             └--the log has grown--> copying (and still queued)

A step copies as much as one fetch, and other inputs come between two steps. Where the metadata has
no directories (below metadata.version 3.7-IV2) a copy that has caught up replaces the log at once.

Leaves out: the throttle of moves (replica.alter.log.dirs.io.max.bytes.per.second).
Source:     KIP-113, KIP-858; ReplicaAlterLogDirsManager, ReplicaAlterLogDirsThread,
            Partition.maybeReplaceCurrentWithFutureReplica, LogManager.replaceCurrentWithFutureLog.
"""

from __future__ import annotations

import uuid

from minicluster.effects import SetTimer
from minicluster.replica.log_manager import log_name
from minicluster.replica.moving.future_replica import FutureReplica, copy_some, is_caught_up
from minicluster.replica.partition.partition import Partition
from minicluster.replica.state.replica_manager_state import ReplicaManagerState

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
    """Go on with a move that an earlier incarnation has begun."""
    found = state.store.future(_name(partition))
    if found is None:
        return
    if (
        found.topic_id != partition.topic_id
        or found.directory not in state.store.online_directories
    ):
        state.store.delete_future(_name(partition))
        return
    partition.future = FutureReplica(found.directory, found.log)
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
    """Let every move go on as far as it can without copying, and have what is left copied."""
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
    for key in state.moving:
        partition = state.partitions.get(key)
        if partition is not None and partition.future is not None:
            copy_some(partition.future, partition.log)
    poll_moves(state, now_ms)


def _schedule(state: ReplicaManagerState, now_ms: int) -> None:
    if not state.copy_is_due:
        state.copy_is_due = True
        state.effects.append(SetTimer(ALTER_LOG_DIRS_TIMER, now_ms))


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
