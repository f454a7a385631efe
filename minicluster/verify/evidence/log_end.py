"""The end of a metadata log: the state of its cluster, from which a simulated one can continue.

The log is that of a run, of several controllers or of one, or a checkpoint alone. Of several logs
the part that a majority holds counts. A metadata transaction that is open at the end has no effect:
the next active controller would abort it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from minicluster.errors import UserError
from minicluster.log.batch import RecordBatch
from minicluster.log.checkpoint import Snapshot
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
from minicluster.values import dataclass
from minicluster.verify.evidence.reading import read_run
from minicluster.verify.evidence.run import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEnd:
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


def read_log_end(path: Path) -> LogEnd:
    """Read a metadata log, and fold it.

    Errors:  UserError (NotALog, LogCorruption, …) with one line that names the file, for a path
             without a log, a broken log, or one whose state cannot be known.
    """
    run = read_run(path, path.name)
    run.check_state()
    fold = _Fold()
    try:
        _begin(fold, run)
        for batch in run.committed:
            fold.take(batch)
    except ReplayError as error:
        raise LogError(f"{path}: the records do not fit each other: {error}") from None
    fold.end()
    epochs = [fold.epoch, *(_epoch_of(node.files) for node in run.nodes)]
    properties = [of_node for node in run.nodes if (of_node := _properties(node.files))]
    return LogEnd(
        path=path,
        image=fold.image,
        end_offset=fold.end_offset,
        epoch=fold.epoch,
        quorum_epoch=max(epochs),
        time_ms=fold.time_ms,
        cluster_id=next((p["cluster.id"] for p in properties if "cluster.id" in p), None),
        kraft_version=fold.kraft_version,
        voters=fold.voters if fold.kraft_version else None,
        voter_ids=fold.voter_ids or _voters_outside(run),
        directories=_directories(fold.voters, properties),
        checkpoint=_checkpoint_at(fold.end_offset, run),
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


def _begin(fold: _Fold, run: Run) -> None:
    """Start from the snapshot that the log begins with."""
    if run.start is None:
        return
    start = run.start
    fold.image = image_from_records(start.records, offset=start.end_offset - 1)
    fold.end_offset, fold.epoch = start.end_offset, start.epoch
    fold.time_ms = start.snapshot.last_contained_log_timestamp
    for message in start.snapshot.control:
        fold.control(message)


def _checkpoint_at(end_offset: int, run: Run) -> Snapshot | None:
    """The snapshot that the log begins with, if nothing follows it."""
    start = run.start
    return None if start is None or start.end_offset != end_offset else start.snapshot


def _epoch_of(files: MetadataFiles) -> int:
    state = files.quorum_state
    return 0 if state is None else state.leader_epoch


def _voters_outside(run: Run) -> tuple[int, ...]:
    """The voters where no record names them: by election state, registrations, folders."""
    for node in run.nodes:
        state = node.files.quorum_state
        if state is not None and state.current_voters:
            return tuple(sorted(state.current_voters))
    return tuple(sorted({node.node for node in run.nodes if node.node >= 0}))


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
