"""The ways in which a controller refuses: a whole request, one item of it, or itself."""

from __future__ import annotations

from minicluster.controller.refusal import Reason
from minicluster.errors import MiniclusterError
from minicluster.lazy_dataclass import dataclass
from minicluster.log.format.limits import MAX_RECORDS_PER_BATCH
from minicluster.protocol import ErrorCode
from minicluster.protocol.error_responses.texts import TEXTS

MAX_RECORDS_PER_USER_OP = MAX_RECORDS_PER_BATCH
"""A user's request that would need more is POLICY_VIOLATION."""


class Refused(MiniclusterError):
    """The whole operation is refused; the error goes back to the caller (Kafka's ApiException)."""

    def __init__(self, error: ErrorCode, message: str = "", reason: Reason | None = None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message or None
        self.reason = reason


class TooLarge(Refused):
    """The request as a whole needs more records than one operation may write."""


def refuse_too_many_records(count: int) -> None:
    """Refuse a user's request that is too large to be one batch.

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


@dataclass(frozen=True, slots=True)
class ApiError:
    """The error of one item of a request, or none."""

    error: ErrorCode = ErrorCode.NONE
    message: str | None = None

    @classmethod
    def of(cls, refused: Refused) -> ApiError:
        """The error and message of an exception; the text of the code alone is no message.

        Source:  ApiError.fromThrowable.
        """
        return cls(refused.error, refused.message)

    @classmethod
    def of_code(cls, error: ErrorCode) -> ApiError:
        """An error whose message is the text of its code.

        Source:  ApiError, the constructor without a message.
        """
        return cls(error, TEXTS[error])

    def __bool__(self) -> bool:
        """True where there is an error."""
        return self.error is not ErrorCode.NONE
