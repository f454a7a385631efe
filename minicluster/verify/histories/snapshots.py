"""The snapshots beside the logs of controllers, of a run or of Apache Kafka.

========================  ========================================================================
takes                     the files of snapshots; the fold of the committed log where they end
keeps                     nothing from one snapshot to the next
yields                    ``SnapshotFile``
========================  ========================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from minicluster.log.checkpoint import read_checkpoint
from minicluster.log.errors import LogError
from minicluster.log.format.limits import ReadLimits
from minicluster.metadata.errors import ReplayError
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import ConfigRecord, TopicRecord, VersionedRecord
from minicluster.verify.evidence.independent_fold import IndependentFold
from minicluster.verify.histories.cluster import TOPIC_RESOURCE
from minicluster.verify.histories.images import images
from minicluster.verify.histories.traced_run import TracedRun, history
from minicluster.verify.judging import Judge


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotFile:
    """A snapshot, and the batch of the log with which it ends.

    Shapes:  in_log: the log, as far as it is kept, leads from before the snapshot to its end.
             digest: of what it holds; None: it cannot be read. expected_…: what the log has;
             None: no batch ends there. orphans: topics of which it has configs, and which it lacks;
             None: its records cannot be read.
    Units:   end_offset: exclusive; timestamp_ms: of the last batch, as its header has it.
    """

    node: int
    end_offset: int
    epoch: int
    in_log: bool
    digest: str | None
    timestamp_ms: int | None
    orphans: tuple[str, ...] | None
    expected_digest: str | None
    expected_epoch: int | None
    expected_timestamp_ms: int | None


@history(SnapshotFile, reads=())
def snapshots(run: TracedRun, judge: Judge) -> None:
    """Each snapshot of each controller."""
    evidence = run.evidence
    if not any(node.snapshots for node in evidence.nodes):
        return
    folds = run.context(images)
    first = folds.first
    if first is None:
        return
    last = {batch.last_offset: batch for batch in evidence.committed}
    for node in evidence.nodes:
        for end, epoch, path in node.snapshots:
            # The fold begins with this snapshot, or with a later one: it would be compared with
            # itself, or with a log that is gone.
            is_before = evidence.start is not None and end <= evidence.start.end_offset
            digest, timestamp_ms, orphans = _content(path, node.files.limits)
            batch = last.get(end - 1)
            step = SnapshotFile(
                node=node.node,
                end_offset=end,
                epoch=epoch,
                in_log=end - 1 >= first and not is_before,
                digest=digest,
                timestamp_ms=timestamp_ms,
                orphans=orphans,
                expected_digest=None if batch is None else folds.digests.get(end - 1),
                expected_epoch=None if batch is None else batch.leader_epoch,
                expected_timestamp_ms=None if batch is None else batch.max_timestamp,
            )
            judge.take(step, end)


def _content(
    path: Path, limits: ReadLimits
) -> tuple[str | None, int | None, tuple[str, ...] | None]:
    """The digest, the time and the orphans of a snapshot, as far as it can be read."""
    timestamp_ms: int | None = None
    orphans: tuple[str, ...] | None = None
    try:
        content = read_checkpoint(path, limits)
        timestamp_ms = content.last_contained_log_timestamp
        orphans = _orphans(content.records)
        return IndependentFold(content.records).digest(), timestamp_ms, orphans
    except (LogError, ProtocolError, ReplayError):
        return None, timestamp_ms, orphans


def _orphans(records: Iterable[VersionedRecord]) -> tuple[str, ...]:
    topics, configured = set(), set()
    for record in (versioned.record for versioned in records):
        if isinstance(record, TopicRecord):
            topics.add(record.name)
        elif isinstance(record, ConfigRecord) and record.resource_type == TOPIC_RESOURCE:
            configured.add(record.resource_name)
    return tuple(sorted(configured - topics))
