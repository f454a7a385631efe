"""How a replica refuses: one exception with Kafka's error code. What raises it has changed nothing.

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

    @property
    def kafka_name(self) -> str:
        """The name of the error code, or of Kafka's exception where no code says it."""
        return self.error.name


class OffsetsOutOfOrder(ReplicaError):
    """A leader's answer holds batches whose offsets do not ascend."""

    def __init__(self, why: str = "") -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, why)

    @property
    def kafka_name(self) -> str:
        """Kafka's exception."""
        return "OffsetsOutOfOrderException"


class UnexpectedAppendOffset(ReplicaError):
    """A leader's answer begins below the end of a log that holds records."""

    def __init__(self, first_offset: int, last_offset: int, log_end_offset: int) -> None:
        super().__init__(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            f"offsets {first_offset} to {last_offset} begin below the log end {log_end_offset}",
        )
        self.first_offset = first_offset
        self.last_offset = last_offset

    @property
    def kafka_name(self) -> str:
        """Kafka's exception."""
        return "UnexpectedAppendOffsetException"
