"""The logs and checkpoints of a broker, on a disk that outlives its incarnations.

The shell owns the disk and hands the same one to each incarnation. Beside the logs are small files:
the topic id and the directory of each log, the high watermarks, and the broker epoch that a clean
shutdown leaves.

Source:  LogManager, PartitionMetadataFile, OffsetCheckpointFile (replication-offset-checkpoint),
         CleanShutdownFileHandler.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from minicluster.log import Log
from minicluster.log.directory import METADATA_DIRECTORY
from minicluster.log.text_files import (
    CLEAN_SHUTDOWN_NAME,
    HIGH_WATERMARKS_NAME,
    PARTITION_METADATA_NAME,
)
from minicluster.values import Value

# A disk in memory has no volume; 1 TiB is enough for tools that watch the free space.
VOLUME_BYTES = 1 << 40

_FUTURE = ".future"
_OFFLINE_DIRECTORIES = "offline-directories"


def log_name(topic: str, index: int) -> str:
    """The name of a partition's log."""
    return f"{topic}-{index}"


def size_on_disk(log: Log) -> int:
    """The bytes of a log with records that are deleted but whose segment is still there."""
    return sum(batch.size for batch in (*log.deleted, *log.batches))


class Disk(Protocol):
    """The part of a node's disk that is used here."""

    directory_ids: tuple[uuid.UUID, ...]
    logs: dict[str, Log]
    files: dict[str, Any]


class PartitionFile(Value):
    """partition.metadata: the topic id of a log, and its directory (zero id: none known)."""

    topic_id: uuid.UUID
    directory: uuid.UUID


class StoredLog(Value):
    """A log on disk; a future one is the copy that is about to replace the log of its name."""

    topic: str
    index: int
    topic_id: uuid.UUID
    directory: uuid.UUID
    log: Log
    is_future: bool = False


class ReplicaStore:
    """The replicas' logs by name (``orders-0``), with their checkpoints."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._loads: Counter[uuid.UUID] | None = None  # None: to be counted

    @property
    def directory_ids(self) -> tuple[uuid.UUID, ...]:
        """All log directories, with those that have failed."""
        return self._disk.directory_ids

    @property
    def online_directories(self) -> tuple[uuid.UUID, ...]:
        """The log directories that work."""
        failed = self._disk.files.get(_OFFLINE_DIRECTORIES, ())
        return tuple(d for d in self._disk.directory_ids if d not in failed)

    @property
    def usable_bytes(self) -> int:
        """The bytes that the logs leave free on the volume, on which all directories are."""
        return VOLUME_BYTES - sum(size_on_disk(log) for log in self._disk.logs.values())

    def cannot_run(self, metadata_directory: uuid.UUID | None) -> str | None:
        """The reason why no broker can run on this disk; None if one can.

        Source:  LogManager.handleLogDirFailure, createAndValidateLogDirs;
                 MetaPropertiesEnsemble.verify (REQUIRE_METADATA_LOG_DIR).
        """
        online = self.online_directories
        if self.directory_ids and not online:
            return "all log directories have failed"
        if metadata_directory is not None and metadata_directory not in online:
            return "the directory of the metadata log has failed"
        return None

    def names(self) -> tuple[str, ...]:
        """The names of all logs but the metadata log and future logs, in order."""
        return tuple(
            sorted(
                name
                for name in self._disk.logs
                if name != METADATA_DIRECTORY and not name.endswith(_FUTURE)
            )
        )

    def stored_logs(self) -> Iterator[StoredLog]:
        """All logs but the metadata log, by name; a future log follows the one of its name."""
        for name in self.names():
            for stored in (self._stored(name, name), self.future(name)):
                if stored is not None:
                    yield stored

    def partition_file(self, name: str) -> PartitionFile | None:
        """The partition.metadata of a log; None if there is none."""
        file: PartitionFile | None = self._disk.files.get(_partition_file(name))
        return file

    @property
    def loads(self) -> Mapping[uuid.UUID, int]:
        """The number of logs in each directory.

        Counted when a log was deleted, not for each new one: there may be thousands at once.
        """
        if self._loads is None:
            files = map(self.partition_file, self.names())
            self._loads = Counter(file.directory for file in files if file is not None)
        return self._loads

    def open(self, name: str, topic_id: uuid.UUID, directory: uuid.UUID) -> Log:
        """The log of a partition; one of another topic id is replaced by an empty log."""
        stored = self.partition_file(name)
        if stored is not None and stored.topic_id != topic_id:
            self.delete(name)
            stored = None
        if stored is None:
            stored = PartitionFile(topic_id, directory)
            self._disk.files[_partition_file(name)] = stored
        log = self._disk.logs.get(name)
        if log is None:
            log = self._disk.logs[name] = Log()
            if self._loads is not None:
                self._loads[stored.directory] += 1
        return log

    def adopt(self, name: str, topic_id: uuid.UUID) -> None:
        """Give a log to another topic id, as the planted fault Z44 does."""
        known = self.partition_file(name)
        if known is not None:
            self._disk.files[_partition_file(name)] = PartitionFile(topic_id, known.directory)

    def delete(self, name: str) -> None:
        """Remove a log with its metadata file and its checkpoint."""
        self.delete_future(name)
        self._loads = None
        self._disk.logs.pop(name, None)
        self._disk.files.pop(_partition_file(name), None)
        # In place: a topic of n partitions is deleted with n steps, not n times as many.
        self._disk.files.get(HIGH_WATERMARKS_NAME, {}).pop(name, None)

    # --- future logs --------------------------------------------------------------------------

    def future(self, name: str) -> StoredLog | None:
        """The future log of a partition; None if its replica does not move."""
        return self._stored(name, name + _FUTURE)

    def open_future(self, name: str, topic_id: uuid.UUID, directory: uuid.UUID) -> Log:
        """Make an empty future log in a directory."""
        self._disk.files[_partition_file(name + _FUTURE)] = PartitionFile(topic_id, directory)
        log = self._disk.logs[name + _FUTURE] = Log()
        return log

    def delete_future(self, name: str) -> None:
        """Remove a future log; one that is not there is ignored."""
        self._disk.logs.pop(name + _FUTURE, None)
        self._disk.files.pop(_partition_file(name + _FUTURE), None)

    def replace_with_future(self, name: str) -> None:
        """The future log takes the place of the log; its directory is now the replica's.

        Source:  LogManager.replaceCurrentWithFutureLog.
        """
        self._loads = None
        self._disk.logs[name] = self._disk.logs[name + _FUTURE]
        self._disk.files[_partition_file(name)] = self._disk.files[_partition_file(name + _FUTURE)]
        self.delete_future(name)

    def _stored(self, name: str, key: str) -> StoredLog | None:
        log, known = self._disk.logs.get(key), self.partition_file(key)
        if log is None or known is None:
            return None
        topic, _, index = name.rpartition("-")
        is_future = key != name
        return StoredLog(topic, int(index), known.topic_id, known.directory, log, is_future)

    # --- checkpoints --------------------------------------------------------------------------

    def high_watermarks(self) -> Mapping[str, int]:
        """The high watermarks as last checkpointed, by log name."""
        checkpoint: Mapping[str, int] = self._disk.files.get(HIGH_WATERMARKS_NAME, {})
        return checkpoint

    def checkpoint(self, high_watermarks: Mapping[str, int]) -> None:
        """Write the high watermarks of these logs; those of others stay."""
        self._disk.files.setdefault(HIGH_WATERMARKS_NAME, {}).update(high_watermarks)

    def flush(self) -> None:
        """Flush every log, so that a crash loses none of its present records."""
        for name, log in self._disk.logs.items():
            if log.flushed_offset != log.end_offset and self.partition_file(name) is not None:
                log.flush()

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        """Write the epoch of this incarnation for the next one's registration (KIP-966)."""
        self._disk.files[CLEAN_SHUTDOWN_NAME] = broker_epoch

    @property
    def previous_epoch(self) -> int:
        """The epoch of a clean shutdown, -1 after a crash."""
        epoch: int = self._disk.files.get(CLEAN_SHUTDOWN_NAME, -1)
        return epoch

    def take_previous_epoch(self) -> int:
        """The epoch of a clean shutdown, -1 after a crash; reading removes it."""
        epoch = self.previous_epoch
        self._disk.files.pop(CLEAN_SHUTDOWN_NAME, None)
        return epoch

    def fail_directory(self, directory: uuid.UUID) -> tuple[str, ...]:
        """A directory fails.

        Shapes:  -> the names of the logs in it.
        """
        failed = self._disk.files.get(_OFFLINE_DIRECTORIES, ())
        if directory not in failed:
            self._disk.files[_OFFLINE_DIRECTORIES] = (*failed, directory)
        return tuple(
            name
            for name in self.names()
            if (known := self.partition_file(name)) is not None and known.directory == directory
        )

    def repair_directory(self, directory: uuid.UUID) -> None:
        """A directory works again, from the next start of the broker on."""
        failed = self._disk.files.get(_OFFLINE_DIRECTORIES, ())
        self._disk.files[_OFFLINE_DIRECTORIES] = tuple(d for d in failed if d != directory)


def _partition_file(name: str) -> str:
    return f"{name}/{PARTITION_METADATA_NAME}"
