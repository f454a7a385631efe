"""The log directories of a broker as Kafka lays them out, in the cluster's own time.

    <directory>/meta.properties
    <directory>/.kafka_cleanshutdown              where it ended cleanly
    <directory>/<three offset checkpoints>
    <directory>/orders-0/                         ``replica_folder``
    <directory>/orders-0/<end offset>.snapshot    its producers

A run folder holds them as ``broker-<id>.zip``: one file, however many partitions there are. The
copy of the metadata log is left out: a broker fetches it again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from uuid import UUID
from zipfile import ZipFile, ZipInfo

from minicluster.actors.nodes.disk import Disk
from minicluster.actors.recording.run_place import escaped_name
from minicluster.log.indexes import TransactionIndex
from minicluster.log.log import Log
from minicluster.log.replica_folder import future_name, replica_files
from minicluster.log.text_files import (
    CLEAN_SHUTDOWN_NAME,
    HIGH_WATERMARKS_NAME,
    LOG_START_OFFSETS_NAME,
    META_PROPERTIES_NAME,
    RECOVERY_POINTS_NAME,
    Offsets,
    clean_shutdown_text,
    meta_properties_text,
    offset_checkpoint_text,
)
from minicluster.replica.log_manager import ReplicaStore, StoredLog, log_name
from minicluster.replica.producers.snapshot_file import encode_producers, snapshot_name
from minicluster.replica.producers.states import ProducerStates
from minicluster.values import Value

Files = Iterator[tuple[str, bytes]]
"""Paths and contents."""


class BrokerEnd(Value, kw_only=True):
    """The end of a broker's process, with a run that ends before the process does.

    Shapes:  epoch: of a clean end, None after a crash; high_watermarks: by log name.
    """

    epoch: int | None
    high_watermarks: Mapping[str, int]


def archive_name(broker_id: int) -> str:
    """The file with a broker's log directories."""
    return f"broker-{broker_id}.zip"


def directory_names(log_dirs: Sequence[str]) -> tuple[str, ...]:
    """The folders of log directories in that of their broker."""
    return tuple(escaped_name(name) for name in log_dirs)


def write_broker(
    path: Path, disk: Disk, end: BrokerEnd, *, log_dirs: Sequence[str], cluster_id: str
) -> None:
    """Write the archive of a broker: the same bytes for the same contents."""
    with ZipFile(path, "w") as archive:
        for name, content in _broker_files(disk, end, directory_names(log_dirs), cluster_id):
            archive.writestr(ZipInfo(name), content)


def _broker_files(disk: Disk, end: BrokerEnd, names: Sequence[str], cluster_id: str) -> Files:
    in_directory: dict[UUID, list[StoredLog]] = {each: [] for each in disk.directory_ids}
    for stored in ReplicaStore(disk).stored_logs():
        # One that names no directory lies in the first.
        logs_there = in_directory.get(stored.directory, in_directory[disk.directory_ids[0]])
        logs_there.append(stored)
    for name, (directory_id, logs) in zip(names, in_directory.items(), strict=True):
        identity = meta_properties_text(
            node_id=disk.node_id, cluster_id=cluster_id, directory_id=directory_id
        )
        yield f"{name}/{META_PROPERTIES_NAME}", identity.encode()
        for file, content in _directory_files(logs, end):
            yield f"{name}/{file}", content


def _directory_files(stored: Sequence[StoredLog], end: BrokerEnd) -> Files:
    current = {
        (replica.topic, replica.index): replica.log for replica in stored if not replica.is_future
    }
    checkpoints: Mapping[str, Offsets] = {
        RECOVERY_POINTS_NAME: {
            key: log.flushed_offset if end.epoch is None else log.end_offset
            for key, log in current.items()
        },
        LOG_START_OFFSETS_NAME: {
            key: log.start_offset
            for key, log in current.items()
            if log.start_offset > log.segments[0].base_offset
        },
        HIGH_WATERMARKS_NAME: {
            key: end.high_watermarks[log_name(*key)]
            for key in current
            if log_name(*key) in end.high_watermarks
        },
    }
    for name, offsets in checkpoints.items():
        yield name, offset_checkpoint_text(offsets).encode()
    if end.epoch is not None:
        yield CLEAN_SHUTDOWN_NAME, clean_shutdown_text(end.epoch).encode()
    for replica in stored:
        key = replica.topic, replica.index
        folder = future_name(*key, replica.topic_id) if replica.is_future else log_name(*key)
        for name, content in _log_files(replica.log, replica.topic_id):
            yield f"{folder}/{name}", content


def _log_files(log: Log, topic_id: UUID) -> Files:
    yield from replica_files(log, topic_id)
    if log.end_offset > log.start_offset:
        yield snapshot_name(log.end_offset), encode_producers(_producers_of(log).snapshot())


def _producers_of(log: Log) -> ProducerStates:
    """The producers at the end of a log, as a broker that loads it has them."""
    active = log.segments[-1]
    producers = ProducerStates(TransactionIndex())
    producers.rebuild(active.producers, log.batches_from(active.base_offset))
    return producers
