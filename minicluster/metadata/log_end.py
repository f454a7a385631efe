"""The end of a metadata log: the state of its cluster, from which a simulated one can continue.

The log is that of several controllers or of one, or a checkpoint alone. A metadata transaction that
is open at the end has no effect: the next active controller would abort it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import Snapshot
from minicluster.log.committed_log import NodeLog, Start
from minicluster.log.control import control_records
from minicluster.log.directory import MetadataFiles
from minicluster.log.errors import LogError
from minicluster.log.text_files import META_PROPERTIES_NAME, read_properties
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.image.folded_run import fold_run, run_length
from minicluster.metadata.image.metadata_image import MetadataImage
from minicluster.metadata.snapshot import image_from_records
from minicluster.protocol.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    KRaftVersionRecord,
    LeaderChangeMessage,
    VersionedRecord,
    VotersRecord,
)
from minicluster.protocol.uuids import parse_uuid
from minicluster.values import Value


class LogEnd(Value, kw_only=True):
    """The state of a cluster where its metadata log ends.

    Shapes:  voters: the record of a dynamic quorum's voters, None for a static quorum;
             voter_ids: empty where nothing names them; directories: of the controllers' logs;
             checkpoint: that with which the log ends, if it does.
    Units:   end_offset is exclusive, epoch that of the record before it; quorum_epoch: the highest
             epoch that a controller has seen; time_ms: the timestamp of the newest record.
    """

    path: Path
    image: MetadataImage
    end_offset: int
    epoch: int
    quorum_epoch: int
    time_ms: int
    cluster_id: str | None
    kraft_version: int
    voters: VotersRecord | None
    voter_ids: tuple[int, ...]
    directories: Mapping[int, UUID]
    checkpoint: Snapshot | None


def log_end(
    path: Path, logs: Sequence[NodeLog], committed: Iterable[RecordBatch], start: Start | None
) -> LogEnd:
    """Fold the committed part of some controllers' logs, from the snapshot with which it begins.

    Errors:  UserError with one line that names the file, where the records do not fit each other or
             the directory of a controller has no valid id.
    """
    fold = _Fold()
    try:
        if start is not None:
            fold.begin(start)
        for batch in committed:
            fold.take(batch)
    except ReplayError as error:
        raise LogError(f"{path}: the records do not fit each other: {error}") from None
    fold.end()
    properties = [of_node for log in logs if (of_node := _properties(log.files))]
    ends_there = start is not None and start.end_offset == fold.end_offset
    return LogEnd(
        path=path,
        image=fold.image,
        end_offset=fold.end_offset,
        epoch=fold.epoch,
        quorum_epoch=max([fold.epoch, *(_epoch_of(log.files) for log in logs)]),
        time_ms=fold.time_ms,
        cluster_id=next((p["cluster.id"] for p in properties if "cluster.id" in p), None),
        kraft_version=fold.kraft_version,
        voters=fold.voters if fold.kraft_version else None,
        voter_ids=fold.voter_ids or _voters_outside(logs),
        directories=_directories(fold.voters, properties),
        checkpoint=start.snapshot if start is not None and ends_there else None,
    )


class _Fold:
    """The fold of committed batches, control records included."""

    def __init__(self) -> None:
        self.image = MetadataImage.EMPTY
        self.end_offset, self.epoch, self.time_ms = 0, 0, 0
        self.kraft_version = 0
        self.voters: VotersRecord | None = None
        self.voter_ids: tuple[int, ...] = ()
        self._before: tuple[MetadataImage, int] | None = None  # an open transaction

    def begin(self, start: Start) -> None:
        """Start from the snapshot that the log begins with."""
        self.image = image_from_records(start.records, offset=start.end_offset - 1)
        self.end_offset, self.epoch = start.end_offset, start.epoch
        self.time_ms = start.snapshot.last_contained_log_timestamp
        for message in start.snapshot.control:
            self.control(message)

    def take(self, batch: RecordBatch) -> None:
        """Apply a batch; what a snapshot has of it already is left out."""
        for control in control_records(batch):
            self.control(control.message)
        records = () if batch.is_control else batch.metadata_records
        start = max(0, self.end_offset - batch.base_offset)
        while start < len(records):
            end = start + run_length(records, start)
            self._apply(records[start:end], batch.base_offset + start)
            start = end
        self.time_ms = max(self.time_ms, batch.max_timestamp)
        if batch.next_offset > self.end_offset:
            self.end_offset, self.epoch = batch.next_offset, batch.leader_epoch

    def control(self, message: Any) -> None:
        """Follow the quorum's voters."""
        if isinstance(message, KRaftVersionRecord):
            self.kraft_version = message.kraft_version
        elif isinstance(message, VotersRecord):
            self.voters = message
            self.voter_ids = tuple(sorted(voter.voter_id for voter in message.voters))
        elif isinstance(message, LeaderChangeMessage) and self.voters is None:
            self.voter_ids = tuple(sorted(voter.voter_id for voter in message.voters))

    def _apply(self, run: tuple[VersionedRecord, ...], offset: int) -> None:
        record = run[0].record
        if isinstance(record, BeginTransactionRecord):
            self._before = self.image, offset
        elif isinstance(record, EndTransactionRecord):
            self._before = None
        elif isinstance(record, AbortTransactionRecord):
            if self._before is not None:
                self.image, self._before = self._before[0], None
        else:
            self.image = fold_run(self.image, run, offset).after

    def end(self) -> None:
        """Drop what an open transaction has changed."""
        if self._before is not None:
            self.image = self._before[0]


def _epoch_of(files: MetadataFiles) -> int:
    state = files.quorum_state
    return 0 if state is None else state.leader_epoch


def _voters_outside(logs: Iterable[NodeLog]) -> tuple[int, ...]:
    """The voters where no record names them: by election state, registrations, folders."""
    for log in logs:
        state = log.files.quorum_state
        if state is not None and state.current_voters:
            return tuple(sorted(state.current_voters))
    return tuple(sorted({log.node for log in logs if log.node >= 0}))


def _properties(files: MetadataFiles) -> dict[str, str] | None:
    folder = files.path if files.path.is_dir() else files.path.parent
    return read_properties(folder.parent / META_PROPERTIES_NAME)


def _directories(
    voters: VotersRecord | None, properties: Iterable[Mapping[str, str]]
) -> dict[int, UUID]:
    """The directory ids of controllers' logs, by node id."""
    directories: dict[int, UUID] = {}
    for values in properties:
        node_id, directory = values.get("node.id", ""), values.get("directory.id")
        if directory and re.fullmatch("[0-9]{1,10}", node_id):
            try:
                directories[int(node_id)] = parse_uuid(directory)
            except ValueError:
                raise UserError(f"{META_PROPERTIES_NAME}: directory.id {directory!r}") from None
    for voter in () if voters is None else voters.voters:
        if voter.voter_directory_id.int:
            directories[voter.voter_id] = voter.voter_directory_id
    return directories
