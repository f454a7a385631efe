"""Snapshots on disk: ``<end offset>-<epoch>.checkpoint``, ``bootstrap.checkpoint``.

A header batch (with KRaftVersion and KRaftVoters where kraft.version is 1), data batches, a
footer batch. Offsets inside are positions within the file, not offsets of the log.

Source:  KIP-630, KIP-853; Snapshots, RecordsSnapshotWriter, BootstrapDirectory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from minicluster.log.batch import RecordBatch, metadata_batch
from minicluster.log.control import control_batch, control_records
from minicluster.log.errors import LogCorruption
from minicluster.log.format.limits import DEFAULT_LIMITS, ReadLimits
from minicluster.log.log import SnapshotId
from minicluster.log.segment import SegmentContent, bytes_of, check_contents, read_batches
from minicluster.protocol.records import (
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VersionedRecord,
)
from minicluster.values import dataclass, replace

CHECKPOINT_SUFFIX = ".checkpoint"
BOOTSTRAP_NAME = "bootstrap.checkpoint"
_RECORDS_PER_BATCH = 1024
_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


def checkpoint_name(snapshot_id: SnapshotId) -> str:
    """The file name of a snapshot."""
    end_offset, epoch = snapshot_id
    return f"{end_offset:020d}-{epoch:010d}{CHECKPOINT_SUFFIX}"


def parse_checkpoint_name(name: str) -> SnapshotId | None:
    """The id in a file name, None if it names no snapshot."""
    match = _NAME.fullmatch(name)
    return (int(match[1]), int(match[2])) if match else None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The content of a snapshot."""

    records: tuple[VersionedRecord, ...]
    last_contained_log_timestamp: int
    control: tuple[Any, ...] = ()  # KRaftVersionRecord and VotersRecord, if any
    content: bytes = field(default=b"", compare=False, repr=False)  # where it was read


def encode_snapshot(snapshot: Snapshot, *, epoch: int, timestamp_ms: int) -> bytes:
    """Write a snapshot as bytes that Apache Kafka reads."""
    return b"".join(batch.encoded for batch in _batches(snapshot, epoch, timestamp_ms))


def _batches(snapshot: Snapshot, epoch: int, timestamp_ms: int) -> Iterator[RecordBatch]:
    header = SnapshotHeaderRecord(
        version=0, last_contained_log_timestamp=snapshot.last_contained_log_timestamp
    )
    first = control_batch(0, epoch, timestamp_ms, (header, *snapshot.control))
    yield first
    offset = first.next_offset
    for start in range(0, len(snapshot.records), _RECORDS_PER_BATCH):
        records = snapshot.records[start : start + _RECORDS_PER_BATCH]
        yield metadata_batch(offset, epoch, timestamp_ms, records)
        offset += len(records)
    yield control_batch(offset, epoch, timestamp_ms, (SnapshotFooterRecord(version=0),))


def read_checkpoint(path: Path, limits: ReadLimits = DEFAULT_LIMITS) -> Snapshot:
    """Read a snapshot file.

    Errors:  as ``checkpoint_of``; NotALog where there is none.
    """
    return checkpoint_of(path, bytes_of(path), limits)


def checkpoint_of(path: Path, content: bytes, limits: ReadLimits = DEFAULT_LIMITS) -> Snapshot:
    """A snapshot by the bytes of its file.

    Errors:  NotALog; LogCorruption for damaged bytes or a missing header or footer.
    """
    snapshot = checked_snapshot(read_batches(path, content, whole=True, limits=limits))
    return replace(snapshot, content=content)


def decode_snapshot(buffer: bytes, name: str = "snapshot") -> Snapshot:
    """Read a snapshot from its bytes."""
    return snapshot_of(read_batches(Path(name), buffer, whole=True))


def checked_snapshot(content: SegmentContent) -> Snapshot:
    """Take the batches of a file apart, each of which holds the records of its header.

    Errors:  LogCorruption with the place in the file.
    """
    for placed in content.batches:
        check_contents(content.path, placed)
    return snapshot_of(content)


def snapshot_of(content: SegmentContent) -> Snapshot:
    """Take a snapshot's batches apart."""
    batches: Sequence[RecordBatch] = [placed.batch for placed in content.batches]
    if not batches:
        raise _incomplete(content, 0, "it is empty")
    control = [record.message for batch in batches for record in control_records(batch)]
    if not control or not isinstance(control[0], SnapshotHeaderRecord):
        raise _incomplete(content, 0, "it does not begin with a snapshot header")
    # A data batch behind the footer is not part of a snapshot, though the footer is the last of the
    # control records.
    if not isinstance(control[-1], SnapshotFooterRecord) or not batches[-1].is_control:
        last = content.batches[-1]
        end = last.position + last.batch.size
        raise _incomplete(content, end, "it does not end with a snapshot footer")
    return Snapshot(
        records=tuple(record for batch in batches for record in batch.metadata_records),
        last_contained_log_timestamp=control[0].last_contained_log_timestamp,
        control=tuple(control[1:-1]),
    )


def _incomplete(content: SegmentContent, position: int, why: str) -> LogCorruption:
    return LogCorruption(file=str(content.path), position=position, base_offset=None, why=why)
