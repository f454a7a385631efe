"""What an operation returns: records to append, an answer to give once they are committed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from minicluster.controller.state.heartbeat_manager import SoftChange
from minicluster.controller.state.offline_replicas import ReplicaStateChange
from minicluster.controller.state.pending_alter_isr import IsrProposalChange
from minicluster.errors import MiniclusterError
from minicluster.protocol import ErrorCode
from minicluster.protocol.records import VersionedRecord

MAX_RECORDS_PER_BATCH = 10_000
MAX_RECORDS_PER_USER_OP = MAX_RECORDS_PER_BATCH
"""A user's request that would need more is POLICY_VIOLATION."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """An operation's result; nothing has changed yet.

    Shapes:  records in the order of the log; soft changes touch only what this controller alone
             knows (heartbeats, reported replicas, ISR proposals) and are lost with it; fault_hits
             names the planted faults that acted.
    Source:  ControllerResult.
    """

    records: tuple[VersionedRecord, ...] = ()
    response: Any = None
    atomic: bool = False
    soft: tuple[SoftChange | ReplicaStateChange | IsrProposalChange, ...] = ()
    fault_hits: tuple[str, ...] = ()
    kraft_version: int | None = None  # what the quorum shall raise kraft.version to, before that


@dataclass(frozen=True, slots=True)
class KRaftVersion:
    """kraft.version as the quorum has it: the level, and why it cannot rise now, if so."""

    level: int = 0
    why_not: str | None = None


class Refused(MiniclusterError):
    """The whole operation is refused; the error goes back to the caller (Kafka's ApiException)."""

    def __init__(self, error: ErrorCode, message: str = "") -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message or None


class TooLarge(Refused):
    """The request as a whole needs more records than one operation may write."""


def refuse_too_many_records(count: int) -> None:
    """Refuse a user's request that is too large to be one batch.

    Errors:  TooLarge with POLICY_VIOLATION.
    """
    if count > MAX_RECORDS_PER_USER_OP:
        raise TooLarge(
            ErrorCode.POLICY_VIOLATION,
            f"The request needs {count} records; {MAX_RECORDS_PER_USER_OP} are allowed.",
        )


class ControllerFault(MiniclusterError):
    """The controller's own state is broken: the caller hears UNKNOWN_SERVER_ERROR, it renounces."""


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error of one item of a request, or none."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @classmethod
    def of(cls, refused: Refused) -> ApiError:
        """The same as an exception says."""
        return cls(refused.error, refused.message)

    def __bool__(self) -> bool:
        """Whether something is wrong."""
        return self.error is not ErrorCode.NONE
