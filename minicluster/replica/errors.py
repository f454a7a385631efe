"""The refusals of a replica. A call that raises one has changed nothing.

Source:  org.apache.kafka.common.errors; ErrorCode.
"""

from __future__ import annotations

from minicluster.errors import MiniclusterError
from minicluster.protocol import ErrorCode


class ReplicaError(MiniclusterError):
    """A request to a partition was refused."""

    def __init__(self, error: ErrorCode, why: str = "") -> None:
        super().__init__(f"{error.name}: {why}" if why else error.name)
        self.error = error


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
