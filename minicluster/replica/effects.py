"""The effects of the replica manager, beside those that every shell understands."""

from __future__ import annotations

import uuid
from typing import Any

from minicluster.effects import Effect
from minicluster.protocol import ErrorCode


class CloseConnection(Effect):
    """End the connection of the request that came in with this token, without a response."""

    token: Any


class DirectoryFailed(Effect):
    """A log directory is lost; the lifecycle reports it to the controller (KIP-858)."""

    directory: uuid.UUID


class BrokerHalted(Effect):
    """The process ends at once, as in a crash: it cannot run without this directory."""

    reason: str


class FetchFailed(Effect):
    """A partition is not fetched any more until its next leader epoch."""

    topic_id: uuid.UUID
    partition: int
    reason: str


class AlterPartitionFailed(Effect, kw_only=True):
    """A proposed ISR was rejected; Kafka logs the same.

    Source:  Partition.handleAlterPartitionError.
    """

    topic: str
    partition: int
    isr: tuple[int, ...]
    error: ErrorCode
    reason: str
