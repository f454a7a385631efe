"""Log directory ids with a meaning of their own (KIP-858).

Source:  DirectoryId.
"""

from __future__ import annotations

from collections.abc import Collection
from uuid import UUID

MIGRATING = UUID(int=0)
UNASSIGNED = UUID(int=1)
LOST = UUID(int=2)

_RESERVED_IDS = 100


def is_reserved(directory: UUID) -> bool:
    """The id can never name a real directory."""
    return directory.int < _RESERVED_IDS


def is_online(directory: UUID, registered: Collection[UUID]) -> bool:
    """A replica in this directory can be used, given its broker's registered directories.

    A broker that registered none predates directories: all of its replicas count as online.
    """
    if directory in (UNASSIGNED, MIGRATING):
        return True
    if directory == LOST:
        return False
    return not registered or directory in registered


def java_order(directory: UUID) -> tuple[int, int]:
    """The sort key of Kafka's own order of ids, whose halves are signed."""
    high, low = directory.int >> 64, directory.int & (1 << 64) - 1
    return (high ^ 1 << 63, low ^ 1 << 63)
