"""What of a broker survives its process: its log directories, their logs and checkpoints.

The shell owns a ``Disk`` and hands it to each incarnation of the broker.

Source:  LogManager, OffsetCheckpointFile (replication-offset-checkpoint), meta.properties.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from minicluster.log.log import Log

Key = tuple[uuid.UUID, int]  # (topic id, partition)


@dataclass(slots=True, kw_only=True)
class StoredReplica:
    """One partition directory."""

    topic: str
    directory: uuid.UUID
    log: Log
    high_watermark: int = 0  # as last checkpointed


@dataclass(slots=True, kw_only=True)
class Disk:
    """The disk of one broker.

    Shapes:  ``directories`` says of each log directory id whether it is online.
    """

    directories: dict[uuid.UUID, bool]
    replicas: dict[Key, StoredReplica] = field(default_factory=dict)
    clean_shutdown_epoch: int = -1  # the broker epoch of a clean shutdown, -1 after a crash

    @classmethod
    def of(cls, *directories: uuid.UUID) -> Disk:
        """An empty disk with these log directories."""
        return cls(directories=dict.fromkeys(directories, True))

    @property
    def online(self) -> tuple[uuid.UUID, ...]:
        """The directories that work."""
        return tuple(d for d, works in self.directories.items() if works)

    def create(self, key: Key, topic: str, directory: uuid.UUID) -> StoredReplica:
        """Make an empty log in a directory."""
        stored = StoredReplica(topic=topic, directory=directory, log=Log())
        self.replicas[key] = stored
        return stored

    def delete(self, key: Key) -> None:
        """Remove a log and what was checkpointed of it."""
        self.replicas.pop(key, None)

    def mark_clean_shutdown(self, broker_epoch: int) -> None:
        """Flush everything and leave the note that a clean shutdown leaves (KIP-966)."""
        for stored in self.replicas.values():
            stored.log.flush()
        self.clean_shutdown_epoch = broker_epoch

    def take_clean_shutdown_epoch(self) -> int:
        """Read the note of the last shutdown; reading removes it.

        Units:   the previous broker epoch to register with, -1 if there was a crash.
        """
        epoch, self.clean_shutdown_epoch = self.clean_shutdown_epoch, -1
        return epoch

    def lose_unflushed(self) -> None:
        """What a crash of the machine does: what was never flushed is gone."""
        for stored in self.replicas.values():
            stored.log.lose_unflushed()
            stored.high_watermark = min(stored.high_watermark, stored.log.end_offset)

    def wipe(self) -> None:
        """Lose everything but the directories themselves."""
        self.replicas.clear()
        self.clean_shutdown_epoch = -1
