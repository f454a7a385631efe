"""A log directory that has failed: its replicas are offline until the broker restarts.

Source:  ReplicaManager.handleLogDirFailure.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection

from minicluster.effects import Trace
from minicluster.planting import step
from minicluster.protocol.uuids import format_uuid
from minicluster.replica.effects import DirectoryFailed
from minicluster.replica.moving.alter_log_dirs import drop_failed_moves
from minicluster.replica.state.replica_manager_state import ReplicaManagerState
from minicluster.rules import FailedReplicas


def trace_failure(state: ReplicaManagerState, directory: uuid.UUID) -> None:
    """Record from where on the directory is offline here."""
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
