"""The result of an operation: records to append, and a response that leaves when they commit."""

from __future__ import annotations

from typing import Any

from minicluster.controller.errors import Refusal
from minicluster.controller.state.broker_heartbeat_manager import SoftChange
from minicluster.controller.state.offline_replicas import ReplicaStateChange
from minicluster.controller.state.pending_alter_isr import PendingAlterIsrChange
from minicluster.protocol.records import VersionedRecord
from minicluster.values import Value


class Decision(Value, kw_only=True):
    """An operation's result; nothing has changed yet.

    Shapes:  records in the order of the log; soft changes touch only the state that no record
             holds (heartbeats, reported replicas, pending ISR changes) and that a new active
             controller starts without; refusals are those of single partitions.
    Source:  ControllerResult.
    """

    records: tuple[VersionedRecord, ...] = ()
    response: Any = None
    atomic: bool = False
    soft: tuple[SoftChange | ReplicaStateChange | PendingAlterIsrChange, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    kraft_version: int | None = None  # the level that the quorum raises kraft.version to, first


class KRaftVersion(Value):
    """kraft.version as the quorum has it: the level, and why it cannot rise now, if so."""

    level: int = 0
    why_not: str | None = None
