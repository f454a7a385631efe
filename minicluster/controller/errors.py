"""The ways in which a controller rejects: a whole request, one part of it, or itself.

| what is rejected | by | and |
|---|---|---|
| a whole request | ``Rejected``, raised | the error goes to the caller |
| one partition of a leader's request | ``Refusal``, returned | its reason is logged and traced |
| one item of an administrator's request | ``ApiError``, returned | error and message go back |
| the controller itself | ``ControllerFault``, raised | it resigns; the state is broken |

A refusal has a reason beside its error, since one code has several: INVALID_REQUEST has seven.

Source:  the log lines of ReplicationControlManager and ClusterControlManager; ApiError.
"""

from __future__ import annotations

from enum import StrEnum

from minicluster.errors import MiniclusterError
from minicluster.log.format.limits import MAX_RECORDS_PER_BATCH
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses.texts import TEXTS
from minicluster.values import Value

MAX_RECORDS_PER_USER_OP = MAX_RECORDS_PER_BATCH
"""A user's request that would need more is POLICY_VIOLATION."""


class Reason(StrEnum):
    """Why a controller rejects a request of a broker, or a partition of it."""

    # The sender.
    NOT_REGISTERED = "not registered"
    BROKER_EPOCH_MISMATCH = "broker epoch mismatch"
    CLUSTER_ID_MISMATCH = "cluster id mismatch"
    DUPLICATE_REGISTRATION = "duplicate registration"
    ZK_BROKER = "ZooKeeper broker"
    INVALID_DIRECTORIES = "invalid directories"
    UNSUPPORTED_FEATURE_LEVEL = "unsupported feature level"
    UNSUPPORTED_METADATA_VERSION = "unsupported metadata.version"
    API_NOT_SERVED = "API not served"
    # The partition.
    UNKNOWN_TOPIC = "unknown topic"
    UNKNOWN_PARTITION = "unknown partition"
    LEADER_EPOCH_AHEAD = "leader epoch ahead of the controller"
    PARTITION_EPOCH_AHEAD = "partition epoch ahead of the controller"
    STALE_LEADER_EPOCH = "stale leader epoch"
    STALE_PARTITION_EPOCH = "stale partition epoch"
    NOT_LEADER = "not the leader"
    NOT_A_REPLICA = "not a replica"
    # The proposed ISR.
    DUPLICATE_IN_ISR = "duplicate in ISR"
    NOT_IN_REPLICAS = "not in replicas"
    LEADER_NOT_IN_ISR = "leader not in ISR"
    ISR_GROWS_WHILE_RECOVERING = "ISR of several while recovering"
    RECOVERED_TO_RECOVERING = "recovered to recovering"
    UNKNOWN_RECOVERY_STATE = "unknown recovery state"
    SHUTTING_DOWN = "shutting down"
    FENCED = "fenced"
    REPLICA_OFFLINE = "replica offline"
    REFUSED_WITH_ANOTHER = "refused with another partition"
    LEADER_CHANGED = "leader changed by this request"


class Refusal(Value, kw_only=True):
    """One refusal of a request, or of one partition of it.

    Shapes:  message is what Kafka logs; topic is empty and partition -1 for a whole request.
    """

    error: ErrorCode
    reason: Reason
    message: str
    topic: str = ""
    partition: int = -1


class Rejected(MiniclusterError):
    """The whole operation is rejected; the error goes back to the caller (Kafka's ApiException)."""

    def __init__(self, error: ErrorCode, message: str = "", reason: Reason | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message or None
        self.reason = reason


class TooLarge(Rejected):
    """The request as a whole needs more records than one operation may write."""


def reject_too_many_records(count: int) -> None:
    """Reject a user's request that is too large to be one batch.

    Errors:  TooLarge with POLICY_VIOLATION.
    """
    if count > MAX_RECORDS_PER_USER_OP:
        raise TooLarge(
            ErrorCode.POLICY_VIOLATION,
            "Unable to perform excessively large batch operation.",
        )


class ControllerFault(MiniclusterError):
    """The controller's own state is broken: UNKNOWN_SERVER_ERROR to the caller, and it renounces.

    Source:  QuorumController.handleEventException, FaultHandler.
    """


def wrong_controller(latest: int | None) -> str:
    """The message of a controller that is not active, with the one that seems to be.

    Source:  ControllerExceptions.newWrongControllerException.
    """
    if latest is None:
        return "No controller appears to be active."
    return f"The active controller appears to be node {latest}."


class ApiError(Value):
    """The error of one item of a request, or none."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @classmethod
    def of(cls, rejected: Rejected) -> ApiError:
        """The error and message of an exception; the text of the code alone is not a message.

        Source:  ApiError.fromThrowable.
        """
        return cls(rejected.error, rejected.message)

    @classmethod
    def of_code(cls, error: ErrorCode) -> ApiError:
        """An error whose message is the text of its code.

        Source:  ApiError, the constructor without a message.
        """
        return cls(error, TEXTS[error])

    def __bool__(self) -> bool:
        """True where there is an error."""
        return self.error is not ErrorCode.NONE
