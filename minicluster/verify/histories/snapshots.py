"""The snapshots beside the logs of controllers, of a run or of Apache Kafka.

========================  ========================================================================
takes                     the files of snapshots; the fold of the committed log where they end
keeps                     nothing from one snapshot to the next
yields                    ``SnapshotFile``
========================  ========================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from minicluster.log.checkpoint import Snapshot
from minicluster.log.committed_log import NodeLog
from minicluster.log.errors import LogError
from minicluster.metadata.errors import ReplayError
from minicluster.metadata.snapshot import image_from_records
from minicluster.protocol.errors import ProtocolError
from minicluster.protocol.records import ConfigRecord, TopicRecord, VersionedRecord
from minicluster.values import dataclass
from minicluster.verify.evidence.run import Problem
from minicluster.verify.histories.cluster import TOPIC_RESOURCE
from minicluster.verify.histories.image_fold import ImageFold
from minicluster.verify.histories.releases import Releases
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


def judge_snapshots(
    judge: Judge,
    logs: Iterable[NodeLog],
    folds: ImageFold,
    releases: Releases,
    read: Callable[[NodeLog, Path], Snapshot],
) -> None:
    """Judge each snapshot of each controller; one that cannot be read accuses nobody.

    Shapes:  folds: the fold of the committed log, where each snapshot ends.
    """
    for log in logs:
        for end, epoch, path in log.snapshots:
            try:
                content = read(log, path)
            except (LogError, ProtocolError) as error:
                judge.problems.append(Problem(evidence=Evidence.SNAPSHOTS, why=str(error)))
                continue
            if folds.first is None:
                continue
            last, batch = end - 1, folds.ends.get(end - 1)
            # The fold begins with this snapshot, or with a later one: it would be compared with
            # itself, or with a log that is gone.
            is_before = folds.begins_at is not None and end <= folds.begins_at
            is_folded = batch is None or last in folds.digests
            step = SnapshotFile(
                node=log.node,
                end_offset=end,
                epoch=epoch,
                in_log=last >= folds.first and not is_before and is_folded,
                digest=_digest(content.records),
                timestamp_ms=content.last_contained_log_timestamp,
                orphans=_orphans(content.records),
                expected_digest=None if batch is None else folds.digests.get(last),
                expected_epoch=None if batch is None else batch[0],
                expected_timestamp_ms=None if batch is None else batch[1],
                release=releases.at(last),
            )
            judge.take(step, end)


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
