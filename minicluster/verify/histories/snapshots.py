"""The snapshots beside the logs of controllers, of a run or of Apache Kafka.

========================  ========================================================================
takes                     the files of snapshots; the fold of the committed log where they end
keeps                     nothing from one snapshot to the next
yields                    ``SnapshotFile``
========================  ========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from minicluster.log.checkpoint import read_checkpoint
from minicluster.log.directory import MetadataFiles
from minicluster.log.errors import LogError
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.snapshot import image_from_records
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import ConfigRecord, TopicRecord, VersionedRecord
from minicluster.values import dataclass
from minicluster.verify.evidence.run import Problem
from minicluster.verify.histories.batches import releases
from minicluster.verify.histories.cluster import TOPIC_RESOURCE
from minicluster.verify.histories.images import images
from minicluster.verify.histories.traced_run import TracedRun, history
from minicluster.verify.judging import Judge
from minicluster.verify.model import Evidence
from minicluster.verify.promises import Release


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """A snapshot, and the batch of the log with which it ends.

    Shapes:  in_log: the log, as far as it is kept and fits together, leads from before the snapshot
             to its end.
             digest: of what it holds; None: its records do not fit each other. expected_…: what the
             log has; None: no batch ends there. orphans: topics of which it has configs, and which
             it lacks. release: the oldest that may have written it.
    Units:   end_offset: exclusive; timestamp_ms: of the last batch, as its header has it.
    """

    node: int
    end_offset: int
    epoch: int
    in_log: bool
    digest: str | None
    timestamp_ms: int
    orphans: tuple[str, ...]
    expected_digest: str | None
    expected_epoch: int | None
    expected_timestamp_ms: int | None
    release: Release


@history(SnapshotFile, reads=())
def snapshots(run: TracedRun, judge: Judge) -> None:
    """Each snapshot of each controller; one that cannot be read accuses nobody."""
    evidence = run.evidence
    if not any(node.snapshots for node in evidence.nodes):
        return
    folds = run.context(images)
    first = folds.first
    last = {batch.last_offset: batch for batch in evidence.committed}
    for node in evidence.nodes:
        for end, epoch, path in node.snapshots:
            # The fold begins with this snapshot, or with a later one: it would be compared with
            # itself, or with a log that is gone.
            is_before = evidence.start is not None and end <= evidence.start.end_offset
            try:
                content = read_checkpoint(path, node.files.limits, _named(path, node.files))
                records = content.records
            except (LogError, ProtocolError) as error:
                run.problem(Problem(evidence=Evidence.SNAPSHOTS, why=str(error)))
                continue
            if first is None:
                continue
            batch = last.get(end - 1)
            is_folded = batch is None or end - 1 in folds.digests
            step = SnapshotFile(
                node=node.node,
                end_offset=end,
                epoch=epoch,
                in_log=end - 1 >= first and not is_before and is_folded,
                digest=_digest(records),
                timestamp_ms=content.last_contained_log_timestamp,
                orphans=_orphans(records),
                expected_digest=None if batch is None else folds.digests.get(end - 1),
                expected_epoch=None if batch is None else batch.leader_epoch,
                expected_timestamp_ms=None if batch is None else batch.max_timestamp,
                release=run.context(releases).at(end - 1),
            )
            judge.take(step, end)


def _named(path: Path, files: MetadataFiles) -> Path:
    """The file of which a path is a copy."""
    return next((file for file in files.checkpoints if file.name == path.name), path)


def _digest(records: Sequence[VersionedRecord]) -> str | None:
    try:
        return image_from_records(records).digest()
    except ReplayError:
        return None


def _orphans(records: Iterable[VersionedRecord]) -> tuple[str, ...]:
    topics, configured = set(), set()
    for record in (versioned.record for versioned in records):
        if isinstance(record, TopicRecord):
            topics.add(record.name)
        elif isinstance(record, ConfigRecord) and record.resource_type == TOPIC_RESOURCE:
            configured.add(record.resource_name)
    return tuple(sorted(configured - topics))
