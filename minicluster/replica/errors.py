"""The rejections of a replica. A call that raises one has changed nothing.

Source:  org.apache.kafka.common.errors; ErrorCode.
"""

from __future__ import annotations

from minicluster.errors import MiniclusterError
from minicluster.protocol import ErrorCode
from minicluster.values import Value


class ReplicaError(MiniclusterError):
    """A request to a partition was rejected."""

    def __init__(self, error: ErrorCode, why: str = "") -> None:
        super().__init__(f"{error.name}: {why}" if why else error.name)
        self.error = error
        self.why = why


class OffsetsOutOfOrder(ReplicaError):
    """A fetch response holds batches whose offsets do not ascend."""

    def __init__(self, why: str = "") -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, why)


class UnexpectedAppendOffset(ReplicaError):
    """A fetch response begins below the end of a log that holds records."""

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"offsets {first_offset} to {last_offset} begin below the log end {log_end_offset}",
        )
        self.first_offset = first_offset
        self.last_offset = last_offset


class RecordError(Value):
    """The rejection of one record of a produced batch.

    Source:  ProduceResponse.RecordError.
    """

    batch_index: int
    message: str

    def __str__(self) -> str:
        return f"RecordError(batchIndex={self.batch_index}, message='{self.message}')"


class InvalidRecords(ReplicaError):
    """Some records of a produced batch are rejected, and the batch with them (KIP-467).

    Source:  RecordValidationException, LogValidator.processRecordErrors.
    """

    def __init__(self, errors: tuple[RecordError, ...], *, invalid_timestamp: bool) -> None:
        if invalid_timestamp:
            error = ErrorCode.INVALID_TIMESTAMP
            self.message = "One or more records have been rejected due to invalid timestamp"
        else:
            error = ErrorCode.INVALID_RECORD
            self.message = (
                f"One or more records have been rejected due to {len(errors)} record errors in "
                "total, and only showing the first three errors at most: "
                f"[{', '.join(map(str, errors[:3]))}]"
            )
        super().__init__(error, self.message)
        self.errors = errors
