"""A shard: the state that one partition of an internal topic holds, and the results it decides on.

Source:  CoordinatorShard, CoordinatorResult.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.protocol import ErrorCode
from minicluster.protocol.coordinator_records.framing import CoordinatorRecord, KeyAndValue
from minicluster.values import Value


class OperationError(Exception):
    """An operation is rejected: nothing is written.

    Source:  ApiException, as CoordinatorOperationExceptionHelper reads it.
    """

    def __init__(self, error: ErrorCode, message: str | None = None) -> None:
        super().__init__(message)
        self.error = error
        self.message = message


class Result(Value, kw_only=True):
    """The decision of an operation.

    Shapes:  records are written as one batch. The response is given once they are committed.
             ``is_applied``: the state holds the records already, and replay would repeat them.
             ``on_append`` is called before the response, once the records are committed, or where
             they are not: with the error that clients of a coordinator understand.
             ``on_rejected`` is called where the log has not taken them: it takes back what was
             applied. Records that are committed late, after the time-out, stay applied.
    Units:   timeout_ms is how long the commit may take, None: the write timeout of the runtime.
    Source:  CoordinatorResult; CoordinatorRuntime.failCurrentBatch, which reverts a snapshot.
    """

    records: tuple[CoordinatorRecord, ...] = ()
    response: Any = None
    is_applied: bool = False
    on_append: Callable[[ErrorCode | None, int], None] | None = None
    on_rejected: Callable[[], None] | None = None
    timeout_ms: int | None = None


NOTHING = Result()
"""Neither records nor a response."""


class Shard(Protocol):
    """One shard, as the runtime uses it."""

    record_types: Mapping[int, KeyAndValue]

    def replay(self, record: CoordinatorRecord, offset: int, producer_id: int, epoch: int) -> None:
        """Apply one record; of a transaction without a marker yet, keep it apart.

        Shapes:  producer_id is -1 for what no transactional producer has written.
        """

    def replay_end_transaction(self, producer_id: int, epoch: int, *, committed: bool) -> None:
        """Apply the marker of a transaction."""

    def on_metadata(self, image: MetadataImage, now_ms: int) -> None:
        """A newer image was published."""
